"""The slices of one state in the order of time: a probe finds those it reaches without looking at all."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from weir.kernel.slice import Slice


class SliceIndex:
    """Slices sorted by the start of their lead time."""

    def __init__(self, slices: Iterable[Slice]) -> None:
        self._slices = sorted(slices, key=_start)
        self._starts = [_start(one) for one in self._slices]
        spans = [one.spans[one.layout.lead] for one in self._slices]
        self._longest = max((last - first for first, last in spans), default=0)

    def between(self, first: int, last: int, batch: int, rank: int) -> Iterator[Slice]:
        """The slices that may hold rows in a time range and that rows of this batch and rank may see."""
        begin = bisect_left(self._starts, first - self._longest)
        end = bisect_right(self._starts, last)
        return (one for one in self._slices[begin:end] if one.is_seen_by(batch, rank))

    def shows_any(self, batch: int, rank: int) -> bool:
        """True if rows of this batch and rank may see some slice."""
        return any(one.is_seen_by(batch, rank) for one in self._slices)


def _start(one: Slice) -> int:
    return one.spans[one.layout.lead][0]
