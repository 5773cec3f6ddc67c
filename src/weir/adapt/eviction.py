"""Which slices are kept when the state of a query takes more memory than it may."""

from __future__ import annotations

from collections.abc import Sequence

from weir.adapt.slice_summary import SliceSummary, to_come
from weir.stats.lag_histogram import LagHistograms


def choose_kept(
    slices: Sequence[SliceSummary], allowed: int, now: int | None, lags: LagHistograms | None = None
) -> list[bool]:
    """Which slices stay, so that together they take no more bytes than allowed: those worth most a byte.

    A row is worth the results it may still be part of: by the learned lags, or else by the rest of its life.
    A slice that does not fit into what is left goes, and smaller ones may take its place. Rows of row windows
    have no deadline and always stay.
    """
    if sum(one.bytes for one in slices) <= allowed:
        return [True] * len(slices)
    worth = [one.rows * to_come(one, now, lags) / max(one.bytes, 1) for one in slices]
    kept = [one.deadline is None for one in slices]
    left = allowed - sum(one.bytes for one in slices if one.deadline is None)
    # Of slices worth the same, the younger.
    for i in sorted(range(len(slices)), key=lambda i: (worth[i], slices[i].last), reverse=True):
        if not kept[i] and slices[i].bytes <= left:
            kept[i] = True
            left -= slices[i].bytes
    return kept
