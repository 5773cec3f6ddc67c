"""Index of a state's slices by time, so that a probe opens only slices that can hold a match.

slice      start ────── end            probe range
s0         0 ──── 9                     │  │
s1            5 ─────────────── 40      │  │   overlaps
s2                  12 ─ 14             │  │   overlaps
running maximum of ends: 9, 40, 40      └──┘   found by two binary searches
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from weir.kernel.index import ByKey
from weir.kernel.slice import Slice, combine_slices

# Slices are combined in memory if that takes fewer steps than it saves, and copies at most so many bytes. A
# probe of a slice is a step, the calls for a slice are about a thousand, to sort a row and to copy it takes a
# few, depending on its width.
_STEPS_OF_CALLS = 1000
_STEPS_TO_SORT_A_ROW = 4
_BYTES_COPIED_IN_A_STEP = 64
_MOST_BYTES_COMBINED = 1 << 26


class SliceIndex:
    """The slices of one state, sorted by the start of their lead time.

    With `combines`, partials may come to hold rows of slices that exist only during the probe.
    """

    def __init__(self, slices: Iterable[Slice], combines: bool = True) -> None:
        self._combines = combines
        self._slices = sorted((s for s in slices if s.rows), key=lambda s: s.span[0])
        self.rows = sum(s.rows for s in self._slices)
        self._starts = [s.span[0] for s in self._slices]
        self._ends = list(accumulate((s.span[1] for s in self._slices), max))
        self._oldest_batch = min((s.batch for s in self._slices), default=None)
        self._lowest_rank = min((s.rank for s in self._slices), default=0)
        self._combined: dict[tuple[ByKey, int], Slice] = {}
        self._visible: dict[tuple[int, int], tuple[list[Slice], list[Slice]]] = {}

    def find_overlapping(self, first: int, last: int, batch: int, rank: int) -> Iterator[Slice]:
        """Yield the slices with times in [first, last] of which rows of this batch and rank may see some."""
        begin, end = bisect_left(self._ends, first), bisect_right(self._starts, last)
        return (s for s in self._slices[begin:end] if s.span[1] >= first and s.is_visible_to(batch, rank))

    def lowest_rank(self, batch: int) -> int | None:
        """Return the lowest rank that rows of a batch must exceed to see some row; None: no row sees any."""
        if self._oldest_batch is None:
            return None
        return -1 if self._oldest_batch < batch else self._lowest_rank

    def combine(
        self, slices: Sequence[Slice], spec: ByKey, batch: int, rank: int, probes: int
    ) -> list[Slice]:
        """Replace slices by one slice of their rows where so many probes by key make that pay.

        Dense windows are many slices, and most probes search all of them. The combined slice has all rows of
        earlier batches, or all rows of lower ranks, and serves later probes as well.
        """
        if not self._combines or len(slices) < 2:
            return list(slices)
        earlier = [s for s in slices if s.batch < batch]
        later = [s for s in slices if s.batch >= batch]
        all_earlier, all_later = self._find_visible(batch, rank)
        return [
            *self._combine(earlier, all_earlier, (spec, -1), probes),
            # A higher rank sees all that a lower one sees, so their number tells which slices these are.
            *self._combine(later, all_later, (spec, len(all_later)), probes),
        ]

    def _find_visible(self, batch: int, rank: int) -> tuple[list[Slice], list[Slice]]:
        """Return all slices that rows see, of earlier batches and of their own; once, not for each probe."""
        if (batch, rank) not in self._visible:
            earlier = [s for s in self._slices if s.batch < batch]
            later = [s for s in self._slices if batch <= s.batch and s.rank < rank]
            self._visible[batch, rank] = earlier, later
        return self._visible[batch, rank]

    def _combine(
        self, slices: list[Slice], visible: list[Slice], key: tuple[ByKey, int], probes: int
    ) -> list[Slice]:
        if len(slices) < 2 or 2 * len(slices) < len(visible):
            return slices
        if key not in self._combined:
            saved = (probes + _STEPS_OF_CALLS) * (len(slices) - 1)
            rows, bytes_ = sum(s.rows for s in visible), sum(s.bytes for s in visible)
            spent = _STEPS_TO_SORT_A_ROW * rows + bytes_ // _BYTES_COPIED_IN_A_STEP
            if saved < spent or bytes_ > _MOST_BYTES_COMBINED:
                return slices
            self._combined[key] = combine_slices(visible, key[0])
        return [self._combined[key]]
