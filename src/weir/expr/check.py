"""Try an expression on no rows and on a few extreme values, so that what cannot run is refused early.

A running query would otherwise stop at the first batch, or at the first row of an unusual kind. Data errors
are no reason to refuse: they are handled when they occur.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pyarrow as pa

from weir.errors import EvaluationError, QueryError
from weir.expr.evaluate import evaluate_rows
from weir.expr.nodes import Call, Column, Expr, columns_of, walk
from weir.expr.to_sql import to_sql
from weir.expr.types import is_array

_ROWS = 24
_LONG = "long text, " * 12
_TEXTS = (
    "",
    "a",
    " 7 ",
    "-1.5e3",
    "2024-02-30",
    "2024-11-03 01:30:00 Europe/Paris",
    "ß\u0000😀İ",
    _LONG,
    "%_\\",
    "NaN",
)


def check_expression(expr: Expr) -> None:
    """Raise a `QueryError` if the expression cannot be evaluated; functions of the user are not tried."""
    if isinstance(expr, Column) or any(
        isinstance(node, Call) and node.function == "udf" for node in walk(expr)
    ):
        return
    for rows in (0, 1, _ROWS):
        columns = {column: _extremes(column.type, i)[:rows] for i, column in enumerate(columns_of(expr))}
        try:
            evaluate_rows(expr, columns.__getitem__, rows)
        except EvaluationError:
            continue
        except Exception as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise QueryError(f"{to_sql(expr)} cannot be evaluated: {reason}; write it another way") from error


@cache
def _extremes(type: pa.DataType, shift: int) -> pa.Array:
    """Return the extreme values of a type and NULL, repeated; columns that meet start at different ones."""
    values = _values_of(type)
    places = [(row * (shift + 1) + shift) % len(values) for row in range(_ROWS)]
    return values.take(pa.array(places))


def _values_of(type: pa.DataType) -> pa.Array:
    if pa.types.is_integer(type):
        most = 2 ** (type.bit_width - 1) - 1
        return pa.array([0, None, most, -most - 1, 1, -1, 7], type)
    if pa.types.is_floating(type):
        numbers = [0.0, None, float("nan"), float("inf"), -float("inf"), -0.0, 1e-30, 3e38, -2.5]
        return pa.array(numbers, pa.float64()).cast(type)
    if pa.types.is_decimal(type):
        whole, fraction = "9" * (type.precision - type.scale) or "0", "9" * type.scale
        texts = ["0", None, f"{whole}.{fraction}", f"-{whole}.{fraction}", "1" if whole != "0" else "0.1"]
        return pa.array(texts).cast(type)
    if pa.types.is_string(type):
        return pa.array([*_TEXTS, None], type)
    if pa.types.is_binary(type):
        return pa.array([b"", None, b"\x00\xff", b"abc", b"\xc3(" * 50], type)
    if pa.types.is_boolean(type):
        return pa.array([True, False, None])
    return _nested_values(type) if pa.types.is_nested(type) else _times_of(type)


def _times_of(type: pa.DataType) -> pa.Array:
    """Return the ends of the calendar, and times near 1970 and near a change of clocks."""
    if pa.types.is_null(type):
        return pa.nulls(3)
    if pa.types.is_date(type):
        return pa.array([0, None, 2**31 - 1, -(2**31), 19792, -1, 2932896], pa.int32()).view(type)
    if pa.types.is_temporal(type):
        micros = [0, None, 2**63 - 1, -(2**63), 1_710_055_800_000_000, -1, 253_402_300_799_999_999]
        return pa.array(micros, pa.int64()).view(type)
    return pa.nulls(3, type)


def _nested_values(type: Any) -> pa.Array:
    """Return empty, short and missing arrays or structs."""
    if pa.types.is_struct(type):
        parts = [_extremes(field.type, i) for i, field in enumerate(type)]
        missing = pa.array([row % 5 == 4 for row in range(_ROWS)])
        return (
            pa.StructArray.from_arrays(parts, fields=list(type), mask=missing) if parts else pa.nulls(3, type)
        )
    if not is_array(type):
        return pa.nulls(3, type)
    items = _extremes(type.value_type, 0)
    if pa.types.is_fixed_size_list(type):
        size = type.list_size
        rows = [
            items.take(pa.array([(row + i) % _ROWS for i in range(size)])).to_pylist() for row in range(3)
        ]
        return pa.array([*rows, None], type)
    offsets = pa.array([0, 0, None, 3, 4, 9], pa.int32())
    return pa.ListArray.from_arrays(offsets, items[:9], type=type)
