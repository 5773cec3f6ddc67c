"""Row windows: decide at whose arrival each row leaves a window that counts rows.

Ingest gives every row of a batch a *sequence number* among the rows of all streams (by event time, stream
and content) and a *row number* within its own stream. A row of a window of n rows leaves it when its n-th
successor arrives, so a pair (s, t) may join if

    sequence(t) < leaves_at(s)   and   sequence(s) < leaves_at(t)

where `leaves_at` is the sequence number of the n-th successor, or never while that one has not arrived.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weir.kernel.keys import Int64s
from weir.kernel.slice import Slice
from weir.kernel.state_schema import RowWindowColumns, StateSchema

NEVER = np.int64(2**62)
_BEFORE_THIS_BATCH = np.int64(-1)


@dataclass(frozen=True, slots=True)
class RowWindowOrder:
    """The rows that enter a row window during one batch, whose row numbers begin with `first`.

    `arrivals` holds their sequence numbers, between one for earlier successors and one for later ones.
    """

    window: RowWindowColumns
    first: int
    arrivals: Int64s

    def leaves_at(self, row_numbers: Int64s) -> Int64s:
        """Return the sequence number at whose arrival each row leaves the window."""
        successor = row_numbers + (self.window.rows - self.first)
        return self.arrivals[np.clip(successor + 1, 0, len(self.arrivals) - 1)]


def order_row_window(
    window: RowWindowColumns, sequence: str, next_row_number: int, slices: Iterable[Slice], batch: int
) -> RowWindowOrder:
    """Collect the rows that a batch brings into a window; `next_row_number` follows that of its last row."""
    new = [s for s in slices if s.batch == batch]
    first = min((s.spans[window.row_number][0] for s in new), default=next_row_number)
    arrivals = np.full(sum(s.rows for s in new) + 2, NEVER)
    arrivals[0] = _BEFORE_THIS_BATCH
    for s in new:
        arrivals[s.numbers(window.row_number) - first + 1] = s.numbers(sequence)
    return RowWindowOrder(window, first, arrivals)


def number_rows(*keys: Sequence[Int64s]) -> list[Int64s]:
    """Number rows that come in several parts; each key lists its values per part, the last decides first."""
    order = np.lexsort([np.concatenate(key) for key in keys])
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.arange(len(order))
    return np.split(numbers, np.cumsum([len(part) for part in keys[0]])[:-1])


def has_left(slice_: Slice, next_row_numbers: Mapping[str, int]) -> bool:
    """True if every row of a slice has left one of its row windows."""
    return any(
        slice_.spans[window.row_number][1] + window.rows < next_row_numbers.get(window.name, 0)
        for window in slice_.schema.row_windows
    )


def sequence_columns(schema: StateSchema) -> tuple[str, ...]:
    """Return the stored column with the sequence number of a row, if its state has one."""
    return () if schema.sequence is None else (schema.sequence,)
