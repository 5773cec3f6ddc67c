"""Eviction: choose how much of each slice to keep when the states exceed the memory budget.

A slice is not evicted without a trace: a rest of its rows stays, chosen by hash, so that the results lost
with the others can be estimated (`weir.kernel.path_weights`). Rests take a small part of the memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weir.adapt.slice_summary import SliceSummary
from weir.stats.lag_histogram import LagHistograms

# The part of the memory for rests of evicted slices, and the most that is left of one.
_REST_PART = 1 / 8
_MOST_LEFT = 1 / 4
# The least that is left of a slice: so little that its bytes do not count.
_LEAST_LEFT = 1 / 1024


def choose_shares(
    slices: Sequence[SliceSummary],
    allowed: int,
    clocks: Mapping[str, int],
    lags: LagHistograms | None = None,
) -> list[float]:
    """Return for each slice the share of its rows to keep, so that all take about `allowed` bytes at most.

    `clocks` tell which rows will next join those of each state; of a state without a clock, none has come.
    Whole slices are kept greedily by expected results per byte, of equal ones the younger first; of a slice
    that does not fit a rest is kept, and smaller ones may take its place. Rows of row windows have no
    deadline and always stay.
    """
    if sum(summary.bytes for summary in slices) <= allowed:
        return [1.0] * len(slices)

    def rank(i: int) -> tuple[float, int]:
        summary = slices[i]
        results = summary.rows * summary.estimate_remaining_share(clocks.get(summary.node), lags)
        return results / max(summary.bytes, 1), summary.last

    kept = {i for i, summary in enumerate(slices) if summary.deadline is None}
    rests = {i for i, summary in enumerate(slices) if summary.is_rest} - kept
    free = allowed - sum(slices[i].bytes for i in kept)
    for i in sorted(set(range(len(slices))) - kept - rests, key=rank, reverse=True):
        if slices[i].bytes <= free - _REST_PART * allowed:
            kept.add(i)
            free -= slices[i].bytes
    evicted = set(range(len(slices))) - kept - rests
    left_of_rests, left = _divide(free, *(sum(slices[i].bytes for i in some) for some in (rests, evicted)))
    shares = dict.fromkeys(kept, 1.0) | dict.fromkeys(rests, left_of_rests) | dict.fromkeys(evicted, left)
    return [shares[i] for i in range(len(slices))]


def _divide(free: float, rests: int, evicted: int) -> tuple[float, float]:
    """Divide the bytes for rests: the share of earlier rests that stays, and what is left of evicted slices.

    Room stays for those of the next batches: earlier rests are halved when they take more than half of it,
    and new ones take half of what they leave.
    """
    stays = 1.0
    while stays > _LEAST_LEFT and stays * rests > free / 2:
        stays /= 2
    left = max(0.0, free - stays * rests) / 2 / max(evicted, 1)
    return stays, min(_MOST_LEFT, max(_LEAST_LEFT, left))
