"""Beyond the paper: an endless stream in a window, on weir's engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from weir.plan.tree import join
from weir.query.windows import TimeWindow
from weir_lab.driver.engine import Batches, Delta, build_table, compare_with_fixed
from weir_lab.driver.settings import COMPARED

STREAMS = ("S1", "S2", "S3")
SECOND = 1_000_000
# Of a window's rows, a probe finds so many of each stream, and so many batches are in a window.
PER_KEY = (1, 3, 10)
WINDOW = 10
TOLD = (
    f"keys drawn evenly, {PER_KEY[0]}, {PER_KEY[1]} and {PER_KEY[2]} rows of each in a window of S1, S2 and "
    f"S3, which is {WINDOW} batches long; S3 comes at half its mean rate for five batches and at one and a "
    "half times it for the next five"
)


def run_endless(keys: int, batches: int, repeats: int, tell: Callable[[str], None]) -> Iterator[Batches]:
    """All policies over so many one-second batches; `keys` says how large they are."""
    tell("the endless stream")
    deltas = list(_deltas(keys, batches))
    window = TimeWindow(WINDOW * SECOND)
    yield from compare_with_fixed("endless", "1 s", join(*STREAMS), window, deltas, COMPARED, repeats)


def _deltas(keys: int, batches: int) -> Iterator[Delta]:
    rng = np.random.default_rng(3)
    for batch in range(batches):
        delta = {}
        for name, per_key in zip(STREAMS, PER_KEY, strict=True):
            rate = keys * per_key / WINDOW
            rows = round(rate * ((1.5 if batch // 5 % 2 else 0.5) if name == "S3" else 1))
            times = batch * SECOND + np.sort(rng.integers(0, SECOND, rows))
            delta[name] = build_table(times, rng.integers(0, keys, rows))
        yield delta
