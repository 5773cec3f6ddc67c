"""Which times of a partner the rows of a partial can reach."""

from __future__ import annotations

from functools import cached_property, reduce

import numpy as np

from weir.kernel.keys import Bools, Int64s
from weir.kernel.partial import Partial, Picks
from weir.kernel.physical_plan import TimeReach
from weir.kernel.slice import Slice

_BEFORE, _AFTER = -(2**62), 2**62


class TimeRange:
    """A partner's time range per driver row; computed only where the slices' spans do not decide alone."""

    def __init__(self, reach: TimeReach, partial: Partial) -> None:
        self.name = reach.name
        self._reach, self._partial = reach, partial
        lows = [(partial.span(name), back) for name, back in reach.lows]
        highs = [(partial.span(name), ahead) for name, ahead in reach.highs]
        self.least_low = max((first - back for (first, _), back in lows), default=_BEFORE)
        self._most_low = max((last - back for (_, last), back in lows), default=_BEFORE)
        self._least_high = min((first + ahead for (first, _), ahead in highs), default=_AFTER)
        self.most_high = min((last + ahead for (_, last), ahead in highs), default=_AFTER)

    def misses(self, one: Slice) -> bool:
        """True if no driver row can reach into the slice."""
        first, last = one.spans[self.name]
        return last < self.least_low or first > self.most_high

    def covers(self, one: Slice) -> bool:
        """True if every driver row reaches all of the slice."""
        first, last = one.spans[self.name]
        return self._most_low <= first and last <= self._least_high

    @cached_property
    def low(self) -> Int64s | None:
        """The least time per driver row; None if nothing bounds it."""
        ends = [self._partial.numbers(name) - back for name, back in self._reach.lows]
        return reduce(np.maximum, ends) if ends else None

    @cached_property
    def high(self) -> Int64s | None:
        """The greatest time per driver row; None if nothing bounds it."""
        ends = [self._partial.numbers(name) + ahead for name, ahead in self._reach.highs]
        return reduce(np.minimum, ends) if ends else None

    def allows(self, times: Int64s, drivers: Picks) -> Bools:
        """Per pair: is the partner's time in its driver's range?"""
        allowed = np.ones(len(drivers), np.bool_)
        if self.low is not None:
            allowed &= times >= self.low[drivers]
        if self.high is not None:
            allowed &= times <= self.high[drivers]
        return allowed
