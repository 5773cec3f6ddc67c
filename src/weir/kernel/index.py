"""Indexes over a slice: its rows sorted by key, by value or by time, for binary searches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.expr.nodes import Expr
from weir.kernel.keys import Bools, Int64s, as_int64, unscaled


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
        return unscaled(values)[:, 0], valid
    return as_int64(values), valid


def refine(values: Int64s, low: Int64s, high: Int64s, target: Int64s, after: bool) -> Int64s:
    """Find in each range [low, high) of positions the first value >= target, or > target if `after`.

    Runs many binary searches in lockstep; each range is sorted in itself, as times are within one key.
    """
    low, high = low.copy(), high.copy()
    active = np.flatnonzero(low < high)
    while len(active):
        lo, hi = low[active], high[active]
        middle = (lo + hi) >> 1
        right = values[middle] <= target[active] if after else values[middle] < target[active]
        low[active] = np.where(right, middle + 1, lo)
        high[active] = np.where(right, hi, middle)
        active = active[low[active] < high[active]]
    return low
