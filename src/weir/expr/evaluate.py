"""Evaluation of bound expressions over Arrow columns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.expr.casts import cast, try_cast
from weir.expr.functions import FUNCTIONS
from weir.expr.nodes import Call, Column, Expr, Literal, columns_of
from weir.expr.user import run_user
from weir.expr.values import Value, as_array

CASTS = {"cast": cast, "try_cast": try_cast}
Columns = Callable[[Column], pa.Array]


def evaluate(expr: Expr, columns: Columns, rows: int) -> Value:
    """The values of an expression over `rows` rows; a scalar only if it reads no column.

    >>> x = Column("a", "x", pa.int32())
    >>> evaluate(Call("+", (x, x), pa.int32()), lambda column: pa.array([1, 2], pa.int32()), 2).to_pylist()
    [2, 4]
    """
    seen: dict[Column, pa.Array] = {}

    def fetch(column: Column) -> pa.Array:
        # To fetch a column may mean to gather it, so once is enough.
        if column not in seen:
            seen[column] = columns(column)
        return seen[column]

    value = _value(expr, fetch, rows)
    return as_array(value, rows) if isinstance(value, pa.Scalar) and columns_of(expr) else value


def holds(expr: Expr, columns: Columns, rows: int) -> npt.NDArray[np.bool_]:
    """Where a predicate is TRUE; NULL counts as false."""
    answer = evaluate(expr, columns, rows)
    if isinstance(answer, pa.Scalar):
        return np.full(rows, answer.as_py() is True)
    return _true_bits(answer)


def _true_bits(answer: pa.Array) -> npt.NDArray[np.bool_]:
    # Several times faster than Arrow's own way from bits to bytes.
    validity, values = (
        None if buffer is None else np.frombuffer(buffer, np.uint8) for buffer in answer.buffers()
    )
    if values is None:
        return np.zeros(len(answer), np.bool_)
    used = slice(answer.offset // 8, (answer.offset + len(answer) + 7) // 8)
    bits = values[used] if validity is None else values[used] & validity[used]
    skip = answer.offset % 8
    return np.unpackbits(bits, count=skip + len(answer), bitorder="little")[skip:].view(np.bool_)


def _value(expr: Expr, fetch: Columns, rows: int) -> Value:
    if isinstance(expr, Column):
        return fetch(expr)
    if isinstance(expr, Literal):
        return pa.scalar(expr.value, expr.type)
    if expr.function == "udf":
        return _call_user(expr, fetch, rows)
    values = [_value(arg, fetch, rows) for arg in expr.args]
    if expr.function in CASTS:
        return CASTS[expr.function](expr.type, values[0])
    return FUNCTIONS[expr.function].run(expr.type, *values)


def _call_user(expr: Call, fetch: Columns, rows: int) -> pa.Array:
    function, *args = expr.args
    assert isinstance(function, Literal)
    return run_user(function.value, [as_array(_value(arg, fetch, rows), rows) for arg in args], rows)
