"""What is known of slices, of whichever engine: how many of their rows can still join."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from weir.kernel.slice import Slice
from weir.stats.lag_histogram import LagHistograms

# What a row is worth of its life where no result of such a lag was seen yet.
_UNSEEN = 0.01


@dataclass(frozen=True, slots=True)
class SliceSummary:
    """One slice: its state, its size, and its times (µs).

    `first` and `last` are the times of its rows; from `deadline` on none of them can join, None if they can
    for ever.
    """

    node: str
    rows: int
    bytes: int
    first: int
    last: int
    deadline: int | None

    @staticmethod
    def of(one: Slice) -> SliceSummary:
        """What a slice tells."""
        first, last = one.spans[one.layout.lead]
        return SliceSummary(one.layout.node, one.rows, one.bytes, first, last, one.deadline)

    def alive(self, now: int | None) -> float:
        """How many of its rows can still join with one of the time `now`, if they are spread evenly."""
        if now is None or self.deadline is None:
            return float(self.rows)
        left = (self.deadline - now) / max(self.last - self.first, 1)
        return self.rows * min(1.0, max(0.0, left))


def live_summaries(slices: Iterable[SliceSummary], now: int | None) -> dict[str, float]:
    """The rows of each state that can still join with one of the time `now`."""
    found: dict[str, float] = defaultdict(float)
    for one in slices:
        found[one.node] += one.alive(now)
    return dict(found)


def to_come(one: SliceSummary, now: int | None, lags: LagHistograms | None) -> float:
    """The share of the results of a row of the slice that are still to come, or the share of its life."""
    if now is None or one.deadline is None:
        return 1.0
    middle = (one.first + one.last) / 2
    life = one.deadline - middle
    share = min(1.0, max(0.0, (one.deadline - now) / life)) if life > 0 else 0.0
    if lags is None or not any(any(found.counts) for found in lags.lags.values()):
        return share
    drivers = [name for name in (lags.first, *lags.lags) if name != one.node]
    if len(drivers) > len(lags.lags):
        # A joined state has no lag of its own.
        return share
    ages = np.array([-life, (now - middle), life]) / 1e6
    ages[1] = min(max(ages[1], ages[0]), ages[2])
    found = [lags.ages(driver, one.node, ages) for driver in drivers]
    later, whole = sum(float(part[1]) for part in found), sum(float(part.sum()) for part in found)
    return max(later / whole, _UNSEEN * share) if whole > 0 else share


def lost_results(
    gone: Iterable[SliceSummary],
    slices: Iterable[SliceSummary],
    now: int | None,
    lags: LagHistograms | None = None,
) -> dict[str, float]:
    """The share of what each state's rows could still give that was let go, by the lags as far as known."""
    lost, there = (_worth(some, now, lags) for some in (gone, slices))
    return {node: worth / (worth + there.get(node, 0.0)) for node, worth in lost.items() if worth > 0}


def _worth(slices: Iterable[SliceSummary], now: int | None, lags: LagHistograms | None) -> dict[str, float]:
    found: dict[str, float] = defaultdict(float)
    for one in slices:
        found[one.node] += one.alive(now) if lags is None else one.rows * to_come(one, now, lags)
    return dict(found)
