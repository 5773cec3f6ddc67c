"""Record time lags between the rows of sampled results, for harvesting (Gedik et al. 2007, section V-B).

Sampled rows look at everything, so what they find tells of all results, whatever ages the others look at.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from weir.kernel.keys import Int64s
from weir.kernel.partial import Partial
from weir.kernel.physical_plan import PhysicalPlan
from weir.kernel.probe_sample import ProbeSample
from weir.kernel.state_schema import time_name
from weir.query.model import Query
from weir.query.windows import RowWindow
from weir.shed.allowance import Allowance
from weir.stats.lag_histogram import LagHistogram, LagHistograms

# Over all lags that the windows allow: fine beside the few ranges that a window is divided into.
_BUCKETS = 128


class LagRecorder:
    """Running histograms of T(t_i) - T(t_1), for each stream i after the first.

    `samples` say who is sampled among the results of each driver.
    """

    def __init__(self, query: Query, samples: Mapping[str, ProbeSample]) -> None:
        first, *others = query.names
        self._first, self._samples = first, samples
        self._ranges = {name: _range(query, name) for name in others}
        self._counts: dict[str, Int64s] = {name: np.zeros(_BUCKETS, np.int64) for name in others}

    @staticmethod
    def of(program: PhysicalPlan, allowance: Allowance | None, batch: int) -> LagRecorder | None:
        """For the results of a batch; None without a sample, or if it is no mjoin over windows of time."""
        query, root = program.query, program.root
        in_rows = any(isinstance(window, RowWindow) for window in query.windows)
        if in_rows or any(name not in query.names for name in root.inputs):
            return None
        found = {path[0].hop.driver: ProbeSample.of(allowance, path[0].hop, batch) for path in root.paths}
        samples = {driver: sample for driver, sample in found.items() if sample is not None}
        return LagRecorder(query, samples) if samples else None

    def add(self, results: Partial) -> None:
        """Count the rows of those results that are sampled."""
        marks = self._samples[results.groups[0].layout.node].marks(results)
        sampled = results.pick(np.flatnonzero(marks))
        base = sampled.numbers(time_name(self._first))
        for name, (low, high) in self._ranges.items():
            lags = sampled.numbers(time_name(name)) - base
            buckets = (lags - low) * _BUCKETS // (high - low)
            self._counts[name] += np.bincount(np.clip(buckets, 0, _BUCKETS - 1), minlength=_BUCKETS)

    def get(self) -> LagHistograms:
        """What was counted."""
        lags = {
            name: LagHistogram(low / 1e6, high / 1e6, tuple(map(float, self._counts[name])))
            for name, (low, high) in self._ranges.items()
        }
        return LagHistograms(self._first, lags)


def _range(query: Query, name: str) -> tuple[int, int]:
    """The least and the greatest lag of a stream that the windows allow, in microseconds."""
    upper, first, own = query.bounds.upper, 0, query.names.index(name)
    known = [abs(bound) for row in upper for bound in row if bound is not None]
    widest = max(known, default=1) + 1
    ahead, back = upper[first][own], upper[own][first]
    low, high = -widest if back is None else -back, widest if ahead is None else ahead + 1
    return (low, high) if low < high else (low, low + 1)
