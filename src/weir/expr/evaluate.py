"""Evaluate bound expressions over Arrow columns, by the table of all operators and functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.expr import arithmetic, arrays, conditional, dates, maths, strings
from weir.expr.casts import CASTS
from weir.expr.failures import (
    Bools,
    FailedRows,
    Failures,
    Picks,
    any_failed,
    describe_failure,
    evaluated_rows,
    find_null_results,
    restrict,
    to_python,
)
from weir.expr.nodes import Call, Column, Expr, Literal, columns_of, without_failing
from weir.expr.to_sql import to_sql
from weir.expr.type_rules import Function
from weir.expr.values import Failing, Value, as_array, null_where

_MODULES = (conditional, arithmetic, maths, strings, dates, arrays)
FUNCTIONS: dict[str, Function] = {name: fn for module in _MODULES for name, fn in module.FUNCTIONS.items()}
ALIASES: dict[str, str] = {alias: name for module in _MODULES for alias, name in module.ALIASES.items()}
Columns = Callable[[Column], pa.Array]
# Is told which rows are to be left out because the expression fails for them.
Report: TypeAlias = Callable[[FailedRows], None]
_NO_FAILURES: Failures = ()


def evaluate(
    expr: Expr, columns: Columns, rows: int, among: Bools | None = None, report: Report | None = None
) -> Value:
    """Evaluate an expression over `rows` rows; the result is a scalar only if it reads no column.

    Where data makes it fail, raise an `EvaluationError`, return NULL, or return NULL and `report` the rows,
    as the expression was bound; with `among`, failures of other rows do not count.

    >>> x = Column("a", "x", pa.int32())
    >>> evaluate(Call("+", (x, x), pa.int32()), lambda column: pa.array([1, 2], pa.int32()), 2).to_pylist()
    [2, 4]
    """
    fetch = cache(columns)  # fetching a column may gather its rows
    value, failures = _evaluate(expr, fetch, rows)
    if failures:
        failures = failures if among is None else restrict(failures, among)
        value = _handle(expr, value, failures, fetch, report)
    return as_array(value, rows) if columns_of(expr) else value


def evaluate_rows(expr: Expr, columns: Columns, rows: int) -> tuple[pa.Array, Bools]:
    """Evaluate an expression; return its values, NULL where it fails, and the rows for which it does."""
    value, failures = _evaluate(expr, cache(columns), rows)
    failed = any_failed(failures) if failures else np.zeros(rows, np.bool_)
    return null_where(pa.array(failed), as_array(value, rows)), failed


def evaluate_predicate(
    expr: Expr, columns: Columns, rows: int, among: Bools | None = None, report: Report | None = None
) -> npt.NDArray[np.bool_]:
    """Evaluate a predicate to a mask of the rows for which it is TRUE; NULL counts as false."""
    value = evaluate(expr, columns, rows, among, report)
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


def _evaluate(expr: Expr, fetch: Columns, rows: int) -> tuple[Value, Failures]:
    match expr:
        case Column():
            return fetch(expr), _NO_FAILURES
        case Literal(value, type):
            return pa.scalar(value, type), _NO_FAILURES
        case Call("checked", (Column() as column, flag, *_)):
            # Errors wait in the flag until here, since most rows of a stream may join nothing.
            value, _ = _evaluate(flag, fetch, rows)
            failed = _to_mask(as_array(value, rows))
            return fetch(column), ((expr, failed),) if failed.any() else _NO_FAILURES
        case Call("succeeds", (inner,)):
            return pa.scalar(True), _evaluate(inner, fetch, rows)[1]
        case Call("udf", (Literal(user), *args)):
            values, failures = _evaluate_args(expr, args, fetch, rows)
            return user.call([as_array(value, rows) for value in values], rows), failures
        case Call(_, args):
            values, failures = _evaluate_args(expr, args, fetch, rows)
            value, own_failures = _run(expr, values, rows)
            return value, (*failures, *own_failures) if failures or own_failures else _NO_FAILURES


def _evaluate_args(
    call: Call, args: Sequence[Expr], fetch: Columns, rows: int
) -> tuple[list[Value], Failures]:
    evaluated = [_evaluate(arg, fetch, rows) for arg in args]
    values, failures = [value for value, _ in evaluated], _NO_FAILURES
    for number, (_, failed) in enumerate(evaluated):
        if failed:
            failures += restrict(failed, evaluated_rows(call, number, values, rows))
    return values, failures


def _run(call: Call, values: list[Value], rows: int) -> tuple[Value, Failures]:
    """Run a function; where data can make it fail, find the rows for which it does."""
    name, mode = call.function, call.mode
    function = CASTS[name] if name in CASTS else FUNCTIONS[name]
    run = function.strict if mode.ansi and function.strict is not None else function.run
    zone = {} if mode.zone is None else {"zone": mode.zone}
    try:
        result = run(call.type, *values, **zone)
    except (pa.ArrowInvalid, pa.ArrowCapacityError, UnicodeDecodeError, OverflowError) as error:
        # Such as text that is not UTF-8, or too long; without the row it is no data error.
        if not rows or not any(isinstance(value, pa.Array) for value in values):
            raise
        return _isolate(call, values, rows, error)
    value, failed = result if isinstance(result, Failing) else (result, None)
    if isinstance(value, pa.Array) and len(value) != rows:
        raise RuntimeError(f"'{name}' returned {len(value)} values for {rows} rows, in {to_sql(call)}")
    if failed is None and mode.ansi:
        failed = find_null_results(value, values, rows)
    return value, _NO_FAILURES if failed is None or not failed.any() else ((_always_failing(call), failed),)


def _isolate(call: Call, values: list[Value], rows: int, error: Exception) -> tuple[Value, Failures]:
    """Run a function that raised an error on halves of its rows; a row for which it still does fails."""
    if rows == 1:
        return pa.nulls(1, call.type), ((_always_failing(call), np.ones(1, np.bool_)),)
    parts, failures, half = [], _NO_FAILURES, rows // 2
    for start, end in ((0, half), (half, rows)):
        part = [value[start:end] if isinstance(value, pa.Array) else value for value in values]
        value, failed = _run(call, part, end - start)
        parts.append(as_array(value, end - start))
        failures += tuple((failing, _place(mask, start, rows)) for failing, mask in failed)
    return pa.concat_arrays(parts), failures


def _always_failing(call: Call) -> Call:
    return replace(call, mode=replace(call.mode, ansi=True))


def _place(mask: Bools, start: int, rows: int) -> Bools:
    whole = np.zeros(rows, np.bool_)
    whole[start : start + len(mask)] = mask
    return whole


def _handle(expr: Expr, value: Value, failures: Failures, fetch: Columns, report: Report | None) -> Value:
    """Raise for rows that fail, or return NULL for them and report those that are to be left out."""
    fatal, reported = (
        tuple(failure for failure in failures if failure[0].mode.on_error == on_error)
        for on_error in ("fail", "quarantine")
    )
    args_of = partial(_args_of_rows, fetch)
    if fatal:
        raise describe_failure(FailedRows(expr, fatal, fetch, args_of))
    if reported and report is not None:
        report(FailedRows(expr, reported, fetch, args_of))
    if not failures:
        return value
    failed = any_failed(failures)
    return null_where(pa.array(failed), as_array(value, len(failed)))


def _args_of_rows(fetch: Columns, call: Call, rows: Picks) -> list[tuple[Any, ...]]:
    """Evaluate the arguments of a call for some rows; return those of each row."""
    picks = pa.array(rows)
    args = [
        evaluate(without_failing(arg), lambda column: fetch(column).take(picks), len(rows))
        for arg in call.args
    ]
    return list(zip(*(map(to_python, as_array(arg, len(rows))) for arg in args), strict=True))
