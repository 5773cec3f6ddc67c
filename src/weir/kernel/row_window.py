"""Row windows: which rows stand in line, and at whose arrival each leaves it.

All rows of a batch get a *place* among all rows of all streams (by event time, then stream, then content) and
a *number* in their own stream. A row of a window of n rows is joinable with every row that stands before its
n-th successor: a pair (s, t) needs `place(t) < leaves(s)` and `place(s) < leaves(t)`, where `leaves` is the
place of the n-th successor, or never while that one has not come.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from weir.kernel.keys import Int64s
from weir.kernel.slice import Slice
from weir.kernel.state_schema import RowWindowColumns, StateSchema

NEVER = np.int64(2**62)
GONE = np.int64(-1)


@dataclass(frozen=True, slots=True)
class RowWindowOrder:
    """One line during one batch: the numbers from `first` on came in this batch, at `places`."""

    line: RowWindowColumns
    first: int
    places: Int64s

    def leaves(self, numbers: Int64s) -> Int64s:
        """The place at whose arrival each row leaves the window."""
        successor = numbers + (self.line.rows - self.first)
        known = np.clip(successor, 0, max(len(self.places) - 1, 0))
        place = self.places[known] if len(self.places) else np.full(len(numbers), NEVER)
        place = np.where(successor >= len(self.places), NEVER, place)
        return np.where(successor < 0, GONE, place)


def queue(
    line: RowWindowColumns, place: str, next_number: int, slices: Iterable[Slice], batch: int
) -> RowWindowOrder:
    """The line as the rows of this batch leave it; `next_number` is the number after its last row."""
    new = [s for s in slices if s.batch == batch]
    if not new:
        return RowWindowOrder(line, next_number, np.empty(0, np.int64))
    numbers = np.concatenate([s.numbers(line.number) for s in new])
    places = np.concatenate([s.numbers(place) for s in new])
    order = np.argsort(numbers)
    return RowWindowOrder(line, int(numbers[order[0]]), places[order])


def is_over(one: Slice, next_numbers: dict[str, int]) -> bool:
    """True if every row of a slice has left some line it stands in."""
    return any(
        one.spans[line.number][1] + line.rows < next_numbers.get(line.name, 0) for line in one.layout.lines
    )


def latest_place(layout: StateSchema) -> tuple[str, ...]:
    """The stored column with the place of a row, if its state has one."""
    return () if layout.place is None else (layout.place,)
