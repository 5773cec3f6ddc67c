"""Indexes over a slice: rows in the order of a key, of a value, or of time, and ranges found in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.expr.evaluate import evaluate
from weir.expr.nodes import Column, Expr
from weir.kernel.keys import Int64s, as_int64, combine, unscaled


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
    """Sorted values and, beside each, the number of its row; None where the rows lie in this order."""

    values: npt.NDArray[Any]
    rows: npt.NDArray[np.intp] | None

    def pick(self, positions: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """The rows at these positions of the index."""
        return positions if self.rows is None else self.rows[positions]


def index_rows(
    spec: Spec,
    fetch: Callable[[Column], pa.Array],
    numbers: Callable[[str], Int64s],
    rows: int,
    lead: str,
    in_time: bool = False,
) -> Index:
    """Sort rows by an index; `numbers` gives stored int64 columns, `fetch` payload columns.

    With `in_time`, rows of one key are known to stand in the order of time, which is half the work.
    """
    if isinstance(spec, ByKey):
        codes, times = combine([numbers(name) for name in spec.keys]), numbers(lead)
        in_time = in_time or bool((times[1:] >= times[:-1]).all())
        order = _argsort(codes) if in_time else np.lexsort((times, codes))
        return Index(codes[order], order)
    values, valid = _values(spec, fetch, numbers, rows, lead)
    known = np.arange(rows) if valid is None else np.flatnonzero(valid)
    order = known[np.argsort(values[known], kind="stable")]
    return Index(values[order], order)


def _argsort(codes: Int64s) -> npt.NDArray[np.intp]:
    """A stable order of codes; NumPy sorts 16-bit numbers by radix, many times faster than wider ones."""
    least = int(codes.min(initial=0))
    if int(codes.max(initial=0)) - least < 1 << 16:
        return np.argsort((codes - least).astype(np.uint16), kind="stable")
    return np.argsort(codes, kind="stable")


def index_sorted_rows(
    spec: Spec,
    fetch: Callable[[Column], pa.Array],
    numbers: Callable[[str], Int64s],
    rows: int,
    lead: str,
) -> Index:
    """The same for rows that lie in the order of the index already."""
    if isinstance(spec, ByKey):
        return Index(combine([numbers(name) for name in spec.keys]), None)
    values, valid = _values(spec, fetch, numbers, rows, lead)
    return Index(values if valid is None else values[: int(valid.sum())], None)


def _values(
    spec: ByValue | ByTime,
    fetch: Callable[[Column], pa.Array],
    numbers: Callable[[str], Int64s],
    rows: int,
    lead: str,
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
    return (numbers(lead), None) if isinstance(spec, ByTime) else searchable(evaluate(spec.expr, fetch, rows))


def is_searchable(kind: pa.DataType) -> bool:
    """True if values of this type can be searched as plain numbers in SQL's order."""
    types = pa.types
    if types.is_decimal(kind):
        return bool(kind.precision <= 18)
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_temporal(kind))


def searchable(values: pa.Array) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
    """Numbers in SQL's order (NaN last, as Spark has it), and which of them are not null (None: all)."""
    valid = None if not values.null_count else values.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_floating(values.type):
        filled = values if valid is None else values.fill_null(0.0)
        return filled.to_numpy(zero_copy_only=False), valid
    if pa.types.is_decimal(values.type):
        return unscaled(values)[:, 0], valid
    return as_int64(values), valid


def refine(values: Int64s, low: Int64s, high: Int64s, target: Int64s, after: bool) -> Int64s:
    """Per range [low, high) of positions: the first whose value is >= target, or > target if `after`.

    Many binary searches in step: each range is sorted in itself, as times are below one key.
    """
    low, high = low.copy(), high.copy()
    active = np.flatnonzero(low < high)
    while len(active):
        lo, hi = low[active], high[active]
        middle = (lo + hi) >> 1
        found = values[middle]
        right = found <= target[active] if after else found < target[active]
        low[active] = np.where(right, middle + 1, lo)
        high[active] = np.where(right, hi, middle)
        active = active[low[active] < high[active]]
    return low
