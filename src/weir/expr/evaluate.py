"""Evaluate bound expressions over Arrow columns, by the table of all operators and functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import QueryError
from weir.expr import arithmetic, arrays, conditional, dates, maths, strings
from weir.expr.casts import cast, try_cast
from weir.expr.nodes import Call, Column, Expr, Literal, columns_of
from weir.expr.type_rules import Function
from weir.expr.values import Value, as_array

_MODULES = (conditional, arithmetic, maths, strings, dates, arrays)
FUNCTIONS: dict[str, Function] = {name: fn for module in _MODULES for name, fn in module.FUNCTIONS.items()}
ALIASES: dict[str, str] = {alias: name for module in _MODULES for alias, name in module.ALIASES.items()}
CASTS = {"cast": cast, "try_cast": try_cast}
Columns = Callable[[Column], pa.Array]


def evaluate(expr: Expr, columns: Columns, rows: int) -> Value:
    """Evaluate an expression over `rows` rows; the result is a scalar only if it reads no column.

    >>> x = Column("a", "x", pa.int32())
    >>> evaluate(Call("+", (x, x), pa.int32()), lambda column: pa.array([1, 2], pa.int32()), 2).to_pylist()
    [2, 4]
    """
    value = _evaluate(expr, cache(columns), rows)  # fetching a column may gather its rows
    return as_array(value, rows) if columns_of(expr) else value


def evaluate_predicate(expr: Expr, columns: Columns, rows: int) -> npt.NDArray[np.bool_]:
    """Evaluate a predicate to a mask of the rows for which it is TRUE; NULL counts as false."""
    value = evaluate(expr, columns, rows)
    return np.full(rows, value.as_py() is True) if isinstance(value, pa.Scalar) else _to_mask(value)


def _to_mask(booleans: pa.Array) -> npt.NDArray[np.bool_]:
    # Several times faster than Arrow's own conversion from bits to bytes.
    validity, values = (
        None if buffer is None else np.frombuffer(buffer, np.uint8) for buffer in booleans.buffers()
    )
    if values is None:
        return np.zeros(len(booleans), np.bool_)
    used = slice(booleans.offset // 8, (booleans.offset + len(booleans) + 7) // 8)
    bits = values[used] if validity is None else values[used] & validity[used]
    skip = booleans.offset % 8
    return np.unpackbits(bits, count=skip + len(booleans), bitorder="little")[skip:].view(np.bool_)


def _check_flags(column: Column, values: pa.Array, failed: pa.Array) -> pa.Array:
    """Return the values of a computed column, or raise if its expression failed for one of these rows."""
    # Errors wait in the flag until here, since most rows of a stream may join nothing.
    if pc.any(failed).as_py():
        raise QueryError(
            f"'{column.text}' of stream '{column.stream}' fails for a row that joins, as Spark does in ANSI "
            "mode; use the try_ form of the function, or set spark.sql.ansi.enabled to false"
        )
    return values


def _evaluate(expr: Expr, fetch: Columns, rows: int) -> Value:
    match expr:
        case Column():
            return fetch(expr)
        case Literal(value, type):
            return pa.scalar(value, type)
        case Call("checked", (Column() as column, flag)):
            return _check_flags(column, fetch(column), as_array(_evaluate(flag, fetch, rows), rows))
        case Call("udf", (Literal(user), *args)):
            return user.call([as_array(_evaluate(arg, fetch, rows), rows) for arg in args], rows)
        case Call(name, args, type):
            run = CASTS[name] if name in CASTS else FUNCTIONS[name].run
            return run(type, *(_evaluate(arg, fetch, rows) for arg in args))
