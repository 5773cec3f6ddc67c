"""A windowed average: old batches fade, and a jump shows within two."""

from __future__ import annotations

import math
from dataclasses import dataclass

# How a batch weighs beside the next one.
KEPT = 0.8
# A batch that is so many times off, and the next one too, makes what was before worthless.
_JUMP = 1.5
# What is counted is off for certain only if it is by so many times what chance brings.
_SURE = 4.0


@dataclass(frozen=True, slots=True)
class Average:
    """A sum, and what it was counted over; `off` tells if the last batch lay far above or below.

    >>> Average().after(10, 2).after(10, 2).value
    5.0
    """

    total: float = 0.0
    over: float = 0.0
    off: int = 0

    @property
    def value(self) -> float | None:
        """The average; None as long as there is nothing to divide by."""
        return self.total / self.over if self.over > 0 else None

    def after(self, total: float, over: float, counted: bool = True, sure: bool = False) -> Average:
        """With one batch more; `counted` things vary by chance, seconds and bytes do not.

        A jump is believed with the second batch; at once, if other things make it `sure`.
        """
        if over <= 0:
            return self
        off = self.jumps(total, over, counted)
        if off and (sure or off == self.off):
            return Average(total, over, off)
        return Average(KEPT * self.total + total, KEPT * self.over + over, off)

    def faded(self) -> Average:
        """After a batch that tells nothing of it: the same, but less sure, down to a single count."""
        kept = max(KEPT, 1 / self.total) if self.total > 1 else 1.0
        return Average(kept * self.total, kept * self.over, self.off)

    def jumps(self, total: float, over: float, counted: bool = True) -> int:
        """1 if a batch lies far above the average, -1 if far below, else 0."""
        if self.value is None or over <= 0:
            return 0
        expected = self.value * over
        if expected / _JUMP <= total <= expected * _JUMP:
            return 0
        if counted and abs(total - expected) <= _SURE * math.sqrt(max(total, expected)):
            return 0
        return 1 if total > expected else -1
