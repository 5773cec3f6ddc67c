"""Data errors: which rows of an evaluation fail, in which call, and the sentence that says so.

Spark evaluates the arguments of a call from left to right and skips those that cannot change the result: the
rest of a conjunction after FALSE, a branch that is not chosen, the second operand if the first is NULL. A
failure of an argument counts for the rows only for which it is evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import EvaluationError
from weir.expr.conditional import equal
from weir.expr.nodes import Call, Column, Expr, columns_of, is_internal
from weir.expr.to_sql import to_sql
from weir.expr.types import spark_name
from weir.expr.values import Value

Bools = npt.NDArray[np.bool_]
Picks = npt.NDArray[np.intp]
# The rows that fail, and the call in which they do.
Failures = tuple[tuple[Call, Bools], ...]


def find_null_results(value: Value, args: Sequence[Value], rows: int) -> Bools | None:
    """Return the rows whose value is NULL although no argument is; None if there are none."""
    if not value.null_count if isinstance(value, pa.Array) else value.is_valid:
        return None
    failed = _mask(pc.is_null, value, rows) & _all(pc.is_valid, args, rows)
    return failed if failed.any() else None


def restrict(failures: Failures, rows: Bools) -> Failures:
    """Keep the failures of these rows."""
    kept = ((call, failed & rows) for call, failed in failures)
    return tuple((call, failed) for call, failed in kept if failed.any())


def any_failed(failures: Failures) -> Bools:
    """Return the rows that fail in some call."""
    return reduce(np.logical_or, (failed for _, failed in failures))


def evaluated_rows(call: Call, number: int, values: Sequence[Value], rows: int) -> Bools:
    """Return the rows for which a function evaluates the argument of that number, given all their values."""
    name = call.function
    if name in _EAGER:
        return np.ones(rows, np.bool_)
    if name in _DIVISIONS and not call.mode.ansi:
        return _after_nonzero_divisor(number, values, rows)
    return _LAZY.get(name, _after_valid)(number, values, rows)


def _mask(kernel: Callable[[Value], Any], value: Value, rows: int) -> Bools:
    result = kernel(value)
    if isinstance(result, pa.Scalar):
        return np.full(rows, result.as_py() is True)
    return np.asarray(pc.fill_null(result, False).to_numpy(zero_copy_only=False))


def _all(kernel: Callable[[Value], Any], values: Iterable[Value], rows: int) -> Bools:
    return reduce(np.logical_and, (_mask(kernel, value, rows) for value in values), np.ones(rows, np.bool_))


def _none_is(constant: bool, values: Iterable[Value], rows: int) -> Bools:
    return _all(lambda value: pc.fill_null(pc.not_equal(value, constant), True), values, rows)


def _after_valid(number: int, values: Sequence[Value], rows: int) -> Bools:
    return _all(pc.is_valid, values[:number], rows)


def _after_divisor(number: int, values: Sequence[Value], rows: int) -> Bools:
    return _all(pc.is_valid, values[1:] if number == 0 else (), rows)


def _after_nonzero_divisor(number: int, values: Sequence[Value], rows: int) -> Bools:
    if number:
        return np.ones(rows, np.bool_)
    return _all(lambda divisor: pc.not_equal(pc.cast(divisor, pa.float64()), 0.0), values[1:], rows)


def _choose(number: int, values: Sequence[Value], rows: int) -> Bools:
    """Conditions and values alternate: a value is evaluated if its condition holds and none before it."""
    *earlier, last = values[:number:2] or [pa.scalar(False)]
    if number % 2 == 0:
        return _none_is(True, (*earlier, last), rows)
    return _none_is(True, earlier, rows) & _mask(lambda condition: condition, last, rows)


def _second_or_third(number: int, values: Sequence[Value], rows: int) -> Bools:
    return _all(pc.is_valid if number == 1 else pc.is_null, values[: min(number, 1)], rows)


def _until_found(number: int, values: Sequence[Value], rows: int) -> Bools:
    value, *items = values
    equalities = [equal(value, item) for item in items[: max(number - 1, 0)]]
    return _all(pc.is_valid, values[: min(number, 1)], rows) & _none_is(True, equalities, rows)


# They evaluate the divisor first; one that is zero is NULL without ANSI mode, and decides.
_DIVISIONS = ("/", "%", "div", "pmod", "try_divide", "try_mod")
_EAGER = {"udf", "eager and", "concat", "concat_ws", "greatest", "least", "<=>", "nullif"}
_LAZY: dict[str, Callable[[int, Sequence[Value], int], Bools]] = {
    "and": lambda number, values, rows: _none_is(False, values[:number], rows),
    "or": lambda number, values, rows: _none_is(True, values[:number], rows),
    "case": _choose,
    "if": _choose,
    "coalesce": lambda number, values, rows: _all(pc.is_null, values[:number], rows),
    "nvl2": _second_or_third,
    "in": _until_found,
    "nanvl": lambda number, values, rows: _all(pc.is_nan, values[:number], rows),
    **dict.fromkeys(_DIVISIONS, _after_divisor),
}


@dataclass(frozen=True)
class FailedRows:
    """The rows for which an expression fails, and why.

    `fetch` returns a column of all rows; `args_of` evaluates the arguments of a call for some of them.
    """

    expr: Expr
    failures: Failures
    fetch: Callable[[Column], pa.Array]
    args_of: Callable[[Call, Picks], list[tuple[Any, ...]]]

    @cached_property
    def mask(self) -> Bools:
        """Which rows fail."""
        return any_failed(self.failures)

    def explain(self, rows: Picks) -> list[tuple[Call, str]]:
        """Return, for some rows that fail, the first call that does and the reason."""
        reasons: list[tuple[Call, str] | None] = [None] * len(rows)
        for call, failed in self.failures:
            own = [at for at, row in enumerate(rows.tolist()) if failed[row] and reasons[at] is None]
            for at, args in zip(own, self.args_of(call, rows[own]) if own else (), strict=True):
                reasons[at] = call, _reason(call, args)
        return [reason for reason in reasons if reason is not None]


def describe_failure(failed: FailedRows) -> EvaluationError:
    """Return the error for the first row that fails."""
    row = int(np.argmax(failed.mask))
    ((call, reason),) = failed.explain(np.array([row], np.intp))
    where = ", ".join(
        f"{column} = {to_python(failed.fetch(column)[row])}"
        for column in columns_of(failed.expr)
        if not is_internal(column.name)
    )
    inside = "" if call == failed.expr else f" of {to_sql(failed.expr)}"
    given = f" for the row with {where}" if where else ""
    advice = f"use {_advice(call)}, or pass on_error='null' or 'quarantine'"
    return EvaluationError(f"{to_sql(call)}{inside} fails{given}: {reason}; {advice}")


def to_python(scalar: pa.Scalar) -> Any:
    """Return the value of a scalar; a description if Python has no such date, or the bytes are no text."""
    try:
        return scalar.as_py()
    except (ValueError, OverflowError) as error:  # a UnicodeDecodeError is a ValueError
        if pa.types.is_nested(scalar.type):
            return f"a value of {spark_name(scalar.type)} that Python cannot show"
        if isinstance(error, UnicodeDecodeError):
            return scalar.as_buffer().to_pybytes()
        return f"{spark_name(scalar.type)} number {scalar.value}"


def _reason(call: Call, args: Sequence[Any]) -> str:
    if call.function == "checked":
        inputs = args[2] if len(args) > 2 else None
        return "Spark cannot compute it" + (f" for {inputs}" if inputs else "")
    if call.function in ("/", "%", "div", "pmod") and args[1] == 0:
        return "division by zero"
    if call.function == "cast":
        return (
            f"{args[0]!r} is not a valid {spark_name(call.type)}"
            if isinstance(args[0], str)
            else f"{args[0]} does not fit {spark_name(call.type)}"
        )
    if call.function in ("[]", "element_at"):
        return f"the array has no item {args[1]}"
    if call.function in ("to_date", "to_timestamp"):
        return f"{args[0]!r} is not a valid {spark_name(call.type)}"
    return f"the result does not fit {spark_name(call.type)}"


def _advice(call: Call) -> str:
    tries = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide", "%": "try_mod",
             "cast": "try_cast", "element_at": "try_element_at", "[]": "get(array, index)",
             "to_timestamp": "try_to_timestamp", "to_date": "try_to_date"}  # fmt: skip
    if call.function == "checked":
        return "a try_ function"
    return tries.get(call.function, "a CASE that leaves the row out")
