"""Slice summaries: size and times of a slice, and how many of its rows or results are still to come."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from weir.stats.lag_histogram import LagHistograms

# The lags may know no result at the ages that a slice has left. It then keeps this part of the worth that its
# remaining lifetime gives it, so that the longest-lived of such slices is evicted last.
_UNSEEN_LAG_WEIGHT = 0.01


@dataclass(frozen=True, slots=True)
class SliceSummary:
    """State, size and event times (µs) of a slice.

    Its rows lie between `first` and `last`. From `deadline` on none of them can join; None: no such time. An
    `is_rest` slice is what eviction has left of larger ones.
    """

    node: str
    rows: int
    bytes: int
    first: int
    last: int
    deadline: int | None
    is_rest: bool = False

    def estimate_live_rows(self, now: int | None) -> float:
        """Estimate how many rows can still join at the time `now`, as if rows were spread evenly."""
        if now is None or self.deadline is None:
            return float(self.rows)
        live_share = (self.deadline - now) / max(self.last - self.first, 1)
        return self.rows * min(1.0, max(0.0, live_share))

    def estimate_remaining_share(self, now: int | None, lags: LagHistograms | None) -> float:
        """Estimate the share of a row's results that are still to come.

        By the lags of earlier results or, where they say nothing, by the remaining share of its lifetime.
        """
        if now is None or self.deadline is None:
            return 1.0
        middle = (self.first + self.last) / 2
        lifetime = self.deadline - middle
        remaining = min(1.0, max(0.0, (self.deadline - now) / lifetime)) if lifetime > 0 else 0.0
        if lags is None or not any(any(histogram.counts) for histogram in lags.lags.values()):
            return remaining
        drivers = [name for name in (lags.first, *lags.lags) if name != self.node]
        if len(drivers) > len(lags.lags):  # an intermediate state: lags are known of streams only
            return remaining
        age = min(max(now - middle, -lifetime), lifetime)
        ages = np.array([-lifetime, age, lifetime]) / 1e6
        before_and_after = [lags.age_shares(driver, self.node, ages) for driver in drivers]
        total = sum(float(shares.sum()) for shares in before_and_after)
        to_come = sum(float(shares[1]) for shares in before_and_after)
        return max(to_come / total, _UNSEEN_LAG_WEIGHT * remaining) if total > 0 else remaining


def estimate_live_rows(slices: Iterable[SliceSummary], now: int | None) -> dict[str, float]:
    """Estimate how many rows of each state can still join at the time `now`."""
    rows: dict[str, float] = defaultdict(float)
    for summary in slices:
        rows[summary.node] += summary.estimate_live_rows(now)
    return dict(rows)
