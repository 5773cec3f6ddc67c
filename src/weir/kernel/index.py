"""Indexes over a slice: its rows sorted by key, by value or by time, for binary searches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.expr.nodes import Expr
from weir.kernel.keys import Bools, Int64s, as_int64, get_decimal_words

_CODE_BITS = 63
_MIN, _MAX = -(2**63), 2**63 - 1
# A lookup table has at most so many numbers for a key; a large one, which the cache does not hold, two.
_SPARSEST_LOOKUP, _SPARSEST_LARGE_LOOKUP = 16, 2
_LARGE_LOOKUP = 1 << 17


@dataclass(frozen=True, slots=True)
class ByKey:
    """Sorted by the codes of one or more attribute classes, then by time."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ByValue:
    """Sorted by the value of an expression; rows where it is null are left out."""

    expr: Expr


@dataclass(frozen=True, slots=True)
class ByTime:
    """Sorted by time alone."""


Spec = ByKey | ByValue | ByTime


@dataclass(frozen=True, slots=True)
class Index:
    """Sorted values and, for each, its row number; None if the rows are stored in this order."""

    values: npt.NDArray[Any]
    rows: npt.NDArray[np.intp] | None

    def pick(self, positions: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Return the row numbers at these positions of the index."""
        return positions if self.rows is None else self.rows[positions]


@dataclass(frozen=True, slots=True)
class KeyIndex:
    """Keys of a slice and, in one sorted number per row, the key's rank and the time.

    If keys are near each other, `lookup` has the rank of each number from the least key on, -1 for one that
    is no key. A code is `rank << bits | offset`, with the time's offset from `first`. If that takes more than
    63 bits, the offset counts the slice's distinct `times` instead.

        keys       7          9
        starts     0          3       5        rows of key 7: 0 to 2
        codes      0|5 0|8 0|9 1|2 1|8         rows of key 9 with offsets from 2 to 6: 3
    """

    keys: Int64s
    starts: Int64s
    codes: Int64s
    first: int
    bits: int
    times: Int64s | None
    lookup: Int64s | None

    @staticmethod
    def of(keys: Int64s, times: Int64s) -> KeyIndex:
        """Index rows that are sorted by key, then by time."""
        is_new = np.empty(len(keys), np.bool_)
        is_new[:1] = True
        np.not_equal(keys[1:], keys[:-1], out=is_new[1:])
        starts = np.flatnonzero(is_new)
        first, last = int(times.min(initial=0)), int(times.max(initial=0))
        # One more than the largest offset: the range of a driver may begin behind the last row.
        bits, distinct, offsets = (last - first + 1).bit_length(), None, times - first
        if bits + len(starts).bit_length() > _CODE_BITS:
            distinct, offsets = np.unique(times, return_inverse=True)
            bits = len(distinct).bit_length()
        codes = ((np.cumsum(is_new) - 1) << bits) | offsets
        ends = np.append(starts, len(keys))
        return KeyIndex(keys[starts], ends, codes, first, bits, distinct, _make_lookup(keys[starts]))

    def find_ranks(self, codes: Int64s, valid: Bools | None) -> tuple[Int64s, Bools]:
        """Return the rank of each code, and which of the codes are keys here."""
        present: Bools
        if self.lookup is not None:
            nearest = np.clip(codes, self.keys[0], self.keys[-1])
            ranks = self.lookup[nearest - self.keys[0]]
            present = (nearest == codes) & (ranks >= 0)
        else:
            ranks = np.searchsorted(self.keys, codes)
            present = self.keys[np.minimum(ranks, len(self.keys) - 1)] == codes
        return ranks, present if valid is None else present & valid

    def find_rows(self, ranks: Int64s, low: Int64s | None, high: Int64s | None) -> tuple[Int64s, Int64s]:
        """Return the range of rows of each rank with times from `low` to `high`."""
        first, last = self.starts[ranks], self.starts[ranks + 1]
        base = ranks << self.bits
        if low is not None:
            first = np.searchsorted(self.codes, base + self.offset(low, "left"), "left")
        if high is not None:
            last = np.searchsorted(self.codes, base + self.offset(high, "right"), "right")
        return first, last

    def offset(self, times: Int64s, side: Literal["left", "right"]) -> Int64s:
        """Return the offsets that stand for these times as the first or the last of a range."""
        if self.times is not None:
            return np.searchsorted(self.times, times, side) - (side == "right")
        # Bounded before the subtraction, which could overflow; a bound that is no int64 bounds nothing.
        least, most = self.first - (side == "right"), self.first + (1 << self.bits) - 1
        return np.clip(times, max(least, _MIN), min(most, _MAX)) - self.first


def _make_lookup(keys: Int64s) -> Int64s | None:
    """Return the rank of each number between the least and the greatest key; None if that would be sparse."""
    numbers = int(keys[-1]) - int(keys[0]) + 1 if len(keys) else 0
    sparsest = _SPARSEST_LOOKUP if numbers < _LARGE_LOOKUP else _SPARSEST_LARGE_LOOKUP
    if not 0 < numbers <= sparsest * len(keys):
        return None
    lookup = np.full(numbers, -1)
    lookup[keys - keys[0]] = np.arange(len(keys))
    return lookup


def is_sortable(kind: pa.DataType) -> bool:
    """True if values of this type can be sorted as plain numbers in SQL's order."""
    types = pa.types
    if types.is_decimal(kind):
        return bool(kind.precision <= 18)
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_temporal(kind))


def to_sortable(values: pa.Array) -> tuple[npt.NDArray[Any], Bools | None]:
    """Return numbers in SQL's order (NaN last, as in Spark), and which of them are not null (None: all)."""
    valid = None if not values.null_count else values.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_floating(values.type):
        filled = values if valid is None else values.fill_null(0.0)
        return filled.to_numpy(zero_copy_only=False), valid
    if pa.types.is_decimal(values.type):
        return get_decimal_words(values)[:, 0], valid
    return as_int64(values), valid
