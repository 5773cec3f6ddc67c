"""Index of a state's slices by time, so that a probe opens only slices that can hold a match.

slice      start ────── end            probe range
s0         0 ──── 9                     │  │
s1            5 ─────────────── 40      │  │   overlaps
s2                  12 ─ 14             │  │   overlaps
running maximum of ends: 9, 40, 40      └──┘   found by two binary searches
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate

from weir.kernel.slice import Slice


class SliceIndex:
    """The slices of one state, sorted by the start of their lead time."""

    def __init__(self, slices: Iterable[Slice]) -> None:
        self._slices = sorted(slices, key=lambda s: s.span[0])
        self._starts = [s.span[0] for s in self._slices]
        self._ends = list(accumulate((s.span[1] for s in self._slices), max))
        self._oldest_batch = min((s.batch for s in self._slices), default=None)
        self._lowest_rank = min((s.rank for s in self._slices), default=0)

    def find_overlapping(self, first: int, last: int, batch: int, rank: int) -> Iterator[Slice]:
        """Yield the slices with times in [first, last] of which rows of this batch and rank may see rows."""
        begin, end = bisect_left(self._ends, first), bisect_right(self._starts, last)
        return (s for s in self._slices[begin:end] if s.span[1] >= first and s.is_visible_to(batch, rank))

    def lowest_rank(self, batch: int) -> int | None:
        """Return the lowest rank that rows of a batch must exceed to see some row; None: no row sees any."""
        if self._oldest_batch is None:
            return None
        return -1 if self._oldest_batch < batch else self._lowest_rank
