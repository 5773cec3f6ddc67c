"""Indexes over a slice: its rows sorted by key, by value or by time, for binary searches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.expr.evaluate import evaluate
from weir.expr.nodes import Column, Expr
from weir.kernel.keys import Bools, Int64s, as_int64, combine, unscaled


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


class RowSource(Protocol):
    """Rows that can be indexed: `numbers` returns stored int64 columns, `fetch` payload columns."""

    @property
    def rows(self) -> int:
        """The number of rows."""

    def times(self) -> Int64s:
        """Return the lead time of every row."""

    def numbers(self, name: str) -> Int64s:
        """Return a stored int64 column."""

    def fetch(self, column: Column) -> pa.Array:
        """Return a payload column."""


def index_rows(spec: Spec, source: RowSource, in_time: bool = False) -> Index:
    """Sort rows by an index; with `in_time`, equal keys are in time order, which saves half of the work."""
    if isinstance(spec, ByKey):
        codes, times = combine([source.numbers(name) for name in spec.keys]), source.times()
        in_time = in_time or bool((times[1:] >= times[:-1]).all())
        order = _argsort(codes) if in_time else np.lexsort((times, codes))
        return Index(codes[order], order)
    values, valid = _values(spec, source)
    not_null = np.arange(source.rows) if valid is None else np.flatnonzero(valid)
    order = not_null[np.argsort(values[not_null], kind="stable")]
    return Index(values[order], order)


def _argsort(codes: Int64s) -> npt.NDArray[np.intp]:
    """Sort codes stably; NumPy sorts 16-bit numbers by radix, many times faster than wider ones."""
    least = int(codes.min(initial=0))
    if int(codes.max(initial=0)) - least < 1 << 16:
        return np.argsort((codes - least).astype(np.uint16), kind="stable")
    return np.argsort(codes, kind="stable")


def index_sorted_rows(spec: Spec, source: RowSource) -> Index:
    """Index rows that are stored in the order of the index."""
    if isinstance(spec, ByKey):
        return Index(combine([source.numbers(name) for name in spec.keys]), None)
    values, valid = _values(spec, source)
    return Index(values if valid is None else values[: int(valid.sum())], None)


def _values(spec: ByValue | ByTime, source: RowSource) -> tuple[npt.NDArray[Any], Bools | None]:
    if isinstance(spec, ByTime):
        return source.times(), None
    return to_sortable(evaluate(spec.expr, source.fetch, source.rows))


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
