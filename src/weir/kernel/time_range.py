"""Time range: the event times of a partner that the rows of a partial can reach."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, reduce

import numpy as np

from weir.kernel.keys import Bools, Int64s
from weir.kernel.partial import Partial, Picks
from weir.kernel.physical_plan import TimeBounds
from weir.kernel.slice import Slice
from weir.kernel.time_shift import MAX_TIME, MIN_TIME, shift_times

# Rows are sorted by time if each of them reaches less than one in so many of the slices that some row
# reaches; that loses the order of keys, in which searches are fast.
_WORTH_SORTING = 4
_FEW_SLICES = 4


class TimeRange:
    """The range of one stored time of a partner, for each row of a partial.

    The spans of the slices decide most cases; the range of each row is computed only if they do not.

        rows of the partial        low ─────────────── high
                                        low ─────────────────── high
        earliest ──────────────────┘    └── covered ──┘              └── latest
    """

    def __init__(self, bounds: TimeBounds, partial: Partial) -> None:
        self.name = bounds.name
        self._partial = partial
        self._lows = [(name, -back, partial.span(name)) for name, back in bounds.lows]
        self._highs = [(name, ahead, partial.span(name)) for name, ahead in bounds.highs]
        self.earliest = max((first + by for _, by, (first, _) in self._lows), default=MIN_TIME)
        self.latest = min((last + by for _, by, (_, last) in self._highs), default=MAX_TIME)
        self._covered_from = max((last + by for _, by, (_, last) in self._lows), default=MIN_TIME)
        self._covered_to = min((first + by for _, by, (first, _) in self._highs), default=MAX_TIME)

    def misses(self, slice_: Slice) -> bool:
        """True if no row of the partial can reach into the slice."""
        first, last = slice_.spans[self.name]
        return last < self.earliest or first > self.latest

    def covers(self, slice_: Slice) -> bool:
        """True if every row of the partial reaches all of the slice."""
        first, last = slice_.spans[self.name]
        return self._covered_from <= first and last <= self._covered_to

    @cached_property
    def low(self) -> Int64s | None:
        """The least time per row of the partial; None if nothing bounds it."""
        ends = [self._shift(*bound) for bound in self._lows]
        ends += [
            np.where(self._partial.numbers(name) < MIN_TIME - by, MAX_TIME, MIN_TIME)
            for name, by, (first, _) in self._highs
            if first + by < MIN_TIME  # such a row reaches no time
        ]
        return reduce(np.maximum, ends) if ends else None

    @cached_property
    def high(self) -> Int64s | None:
        """The greatest time per row of the partial; None if nothing bounds it."""
        ends = [self._shift(*bound) for bound in self._highs]
        ends += [
            np.where(self._partial.numbers(name) > MAX_TIME - by, MIN_TIME, MAX_TIME)
            for name, by, (_, last) in self._lows
            if last + by > MAX_TIME
        ]
        return reduce(np.minimum, ends) if ends else None

    def _shift(self, name: str, by: int, span: tuple[int, int]) -> Int64s:
        return shift_times(self._partial.numbers(name), by, span)

    def find_runs(self, slices: Sequence[Slice]) -> list[tuple[int, int]]:
        """Return for each slice a run of rows that holds all rows of the partial which reach into it.

        A run is short if the rows are in the order of their ranges (`order_rows`).
        """
        first = np.zeros(len(slices), np.int64)
        last = np.full(len(slices), self._partial.rows)
        spans = np.array([s.spans[self.name] for s in slices], np.int64)
        if self.high is not None:
            first = np.searchsorted(np.maximum.accumulate(self.high), spans[:, 0], "left")
        if self.low is not None:
            least_to_come = np.minimum.accumulate(self.low[::-1])[::-1]
            last = np.searchsorted(least_to_come, spans[:, 1], "right")
        return list(zip(first.tolist(), last.tolist(), strict=True))

    def order_rows(self, slices: Sequence[Slice]) -> Picks | None:
        """Return the rows in the order of their ranges; None if most rows reach most slices anyway."""
        if len(slices) < _FEW_SLICES or all(self.covers(s) for s in slices):
            return None
        ends = self.high if self.low is None else self.low
        if ends is None:
            return None
        order = np.argsort(ends, kind="stable")
        spans = np.array([s.spans[self.name] for s in slices], np.int64)
        too_early = 0 if self.high is None else np.searchsorted(np.sort(self.high), spans[:, 0], "left")
        rows = self._partial.rows
        in_time = rows if self.low is None else np.searchsorted(self.low[order], spans[:, 1], "right")
        reached = int(np.sum(in_time - too_early))
        return order if _WORTH_SORTING * reached <= rows * len(slices) else None

    def contains(self, times: Int64s, drivers: Picks) -> Bools:
        """Tell per pair whether the partner's time lies in the range of its driver."""
        inside = np.ones(len(drivers), np.bool_)
        if self.low is not None:
            inside &= times >= self.low[drivers]
        if self.high is not None:
            inside &= times <= self.high[drivers]
        return inside
