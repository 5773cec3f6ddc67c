"""All that the experiment measures, and figure 5."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from weir_lab.driver.decision_time import Choice
from weir_lab.driver.engine import Batches
from weir_lab.driver.play import Curve, Score
from weir_lab.driver.settings import DataSet
from weir_lab.driver.streams import generate
from weir_lab.driver.table2 import Printed
from weir_lab.driver.work import Counted

_BINS = 100


@dataclass(frozen=True, slots=True)
class Arrived:
    """Figure 5: rows per thousand time units, in one hundredth of the time."""

    data_set: str
    stream: str
    arrivals: str
    time: float
    rate: float


@dataclass(frozen=True, slots=True)
class Measured:
    """Tables 2, 4 and 5, the courses behind them, and what goes beyond the paper."""

    printed: list[Printed]
    arrived: list[Arrived]
    scores: list[Score]
    whole: list[Score]
    curves: list[Curve]
    counted: list[Counted]
    more: list[Score]
    more_curves: list[Curve]
    more_counted: list[Counted]
    engine: list[Batches]
    endless: list[Batches]
    choices: list[Choice]


def count_arrivals(data_set: DataSet) -> Iterator[Arrived]:
    """The first repeat's arrivals."""
    streams = generate(data_set, 0)
    for name, pattern in zip(data_set.streams, data_set.arrivals, strict=True):
        rows, edges = np.histogram(streams.times[name], bins=_BINS, range=(0, data_set.span))
        for count, start in zip(rows.tolist(), edges.tolist(), strict=False):
            share = start / data_set.span
            yield Arrived(data_set.name, name, pattern, share, 1e3 * count * _BINS / data_set.span)
