"""Eviction: choose the slices to keep when the states exceed the memory budget."""

from __future__ import annotations

from collections.abc import Sequence

from weir.adapt.slice_summary import SliceSummary
from weir.stats.lag_histogram import LagHistograms


def choose_kept(
    slices: Sequence[SliceSummary], allowed: int, now: int | None, lags: LagHistograms | None = None
) -> list[bool]:
    """Return for each slice whether to keep it, so that those kept take at most `allowed` bytes.

    Slices are kept greedily by expected results per byte, of equal ones the younger first; a slice that does
    not fit is evicted, and smaller ones may take its place. Rows of row windows have no deadline and always
    stay.
    """
    if sum(summary.bytes for summary in slices) <= allowed:
        return [True] * len(slices)

    def rank(i: int) -> tuple[float, int]:
        summary = slices[i]
        results = summary.rows * summary.estimate_remaining_share(now, lags)
        return results / max(summary.bytes, 1), summary.last

    kept = [summary.deadline is None for summary in slices]
    free = allowed - sum(summary.bytes for summary in slices if summary.deadline is None)
    for i in sorted(range(len(slices)), key=rank, reverse=True):
        if not kept[i] and slices[i].bytes <= free:
            kept[i] = True
            free -= slices[i].bytes
    return kept
