"""Build typed calls: look up the function, cast its arguments and fold constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from inspect import signature

import pyarrow as pa

from weir.errors import EvaluationError, QueryError, find_nearest
from weir.expr.casts import CASTS, can_cast
from weir.expr.evaluate import ALIASES, FUNCTIONS, evaluate
from weir.expr.nodes import PLAIN, Call, Column, Expr, Literal, Mode, columns_of, walk
from weir.expr.scope import UserFunction
from weir.expr.to_sql import to_sql
from weir.expr.type_rules import Function
from weir.expr.types import DOUBLE, STRING, is_integer, is_number, is_time, parsed_type, spark_name

_COMPARISONS = {"=", "<=>", "<>", "<", "<=", ">", ">="}
# Functions that cast their arguments to a common type.
_SHARING = {
    "+", "-", "*", "%", "pmod", *_COMPARISONS, "in", "coalesce", "case", "if", "nvl2", "nullif", "greatest",
    "least", "try_add", "try_subtract", "try_multiply", "try_mod",
}  # fmt: skip

# Functions that may not evaluate an argument.
_CHOOSING = ("case", "if", "coalesce", "nvl2", "nullif", "nanvl")


def call(name: str, args: Sequence[Expr], mode: Mode = PLAIN) -> Expr:
    """Build a call of a function of the table, with its arguments cast to the types that it takes.

    >>> str(call("<", [Literal(1, pa.int32()), Literal(0.5, pa.float64())]))
    'False'
    """
    function = ALIASES.get(name.lower(), name.lower())
    if function not in FUNCTIONS:
        raise _unknown_function(name)
    if function in _COMPARISONS:
        args = _parse_text(args, mode)
    if mode.ansi and function in _SHARING:
        args = [args[0], *_widen_floats(args[1:])] if function == "nvl2" and args else _widen_floats(args)
    if not mode.ansi and function == "in":
        args = _compare_texts(args, mode)
    try:
        types, out = FUNCTIONS[function].rule(args)
    except QueryError as error:
        raise _name_call(error, name, Call(function, tuple(args), pa.null())) from None
    cast_args = tuple(cast(arg, type, mode=mode) for arg, type in zip(args, types, strict=True))
    return _fold(Call(function, cast_args, out, _reduce(mode, FUNCTIONS[function], cast_args, out)))


def _parse_text(args: Sequence[Expr], mode: Mode) -> Sequence[Expr]:
    """Cast text that is compared with a number to a number."""
    numbers = [arg.type for arg in args if is_number(arg.type)]
    if len(args) != 2 or len(numbers) != 1:
        return args
    kind = parsed_type(numbers[0], mode.ansi)
    return [cast(arg, kind, mode=mode) if pa.types.is_string(arg.type) else arg for arg in args]


def _widen_floats(args: Sequence[Expr]) -> Sequence[Expr]:
    """Cast floats beside whole numbers to doubles, the common type that ANSI mode has for them."""
    if not any(is_integer(arg.type) for arg in args):
        return args
    return [cast(arg, DOUBLE) if arg.type == pa.float32() else arg for arg in args]


def _compare_texts(args: Sequence[Expr], mode: Mode) -> Sequence[Expr]:
    """Cast the values of IN to text, if some are: without ANSI mode, text is not parsed there."""
    if not any(pa.types.is_string(arg.type) for arg in args):
        return args
    return [cast(arg, STRING, mode=mode) if is_time(arg.type) else arg for arg in args]


def _reduce(mode: Mode, function: Function, args: Sequence[Expr], out: pa.DataType) -> Mode:
    """Return what a call takes from the session; equal calls are equal where the session does not matter."""
    is_zoned = function.is_zoned is not None and function.is_zoned(args, out)
    can_fail = function.can_fail is not None and function.can_fail(args, out) and mode.ansi
    can_fail = can_fail or (function.always_fails is not None and function.always_fails(args, out))
    # Text that is not UTF-8 makes calls fail that otherwise cannot, so that all say what happens then.
    return Mode(mode.zone if is_zoned else None, can_fail, mode.on_error)


def callable_names() -> list[str]:
    """List the names that can be called in SQL text, without operators."""
    return sorted(name for name in {*FUNCTIONS, *ALIASES} if name.isidentifier())


def _unknown_function(name: str) -> QueryError:
    near = find_nearest(name, callable_names())
    hint = "; a" if near is None else f"; did you mean '{near}'? A"
    return QueryError(
        f"unknown function '{name}'{hint} function of your own "
        "can be passed as functions={'name': weir.udf(...)}"
    )


def _name_call(error: QueryError, name: str, call: Call) -> QueryError:
    """Add the name of the function and its arguments to the error of a type rule."""
    text, where = str(error), to_sql(call)
    if text.startswith("wrong types"):
        return QueryError(
            f"{text} in {where}; cast one side, e.g. cast(x AS {spark_name(call.args[0].type)})"
        )
    return QueryError(f"'{name}' {text}, in {where}")


def cast(expr: Expr, type: pa.DataType, name: str = "cast", mode: Mode = PLAIN) -> Expr:
    """Cast the expression by `cast` or `try_cast`, unless it has that type already."""
    if expr.type == type:
        return expr
    if not can_cast(expr.type, type):
        raise QueryError(f"cannot cast {to_sql(expr)} from {spark_name(expr.type)} to {spark_name(type)}")
    return _fold(Call(name, (expr,), type, _reduce(mode, CASTS[name], (expr,), type)))


def call_user(function: UserFunction, name: str, args: Sequence[Expr]) -> Expr:
    """Build a call of a user-defined function."""
    if not args:
        raise QueryError(f"function '{name}' needs at least one argument")
    if not function.takes(len(args)):
        raise QueryError(
            f"function '{name}' cannot be called with {len(args)} argument{'s' * (len(args) != 1)}: "
            f"it is defined as {name}{signature(function.fn)}"
        )
    named = Literal(replace(function, name=name), function.returns)
    return Call("udf", (named, *args), function.returns)


def _fold(expr: Call) -> Expr:
    """Reduce a call of constants to its value, unless it fails: it may never be evaluated."""
    if not all(isinstance(arg, Literal) for arg in expr.args):
        return expr
    try:
        return _evaluate_constant(expr)
    except EvaluationError:
        return expr


def fold_constant(expr: Expr) -> Literal | None:
    """Reduce an expression that reads no column to its value; None for one that does, or that fails."""
    if isinstance(expr, Literal):
        return expr
    if columns_of(expr):
        return None
    try:
        return _evaluate_constant(expr)
    except EvaluationError:
        return None


def find_failing_constant(expr: Expr) -> Expr | None:
    """Return a part that reads no column and fails, if it is evaluated for every row; else None."""
    if not isinstance(expr, Call) or any(
        isinstance(each, Call) and each.function == "udf" for each in walk(expr)
    ):
        return None
    if not columns_of(expr):
        return expr if fold_constant(expr) is None else None
    if expr.function in _CHOOSING or expr.function.startswith("try_"):
        return None
    args = expr.args[:1] if expr.function in ("and", "or") else expr.args
    return next((found for arg in args if (found := find_failing_constant(arg)) is not None), None)


def _is_text(scalar: pa.Scalar) -> bool:
    try:
        scalar.as_py()
    except UnicodeDecodeError:
        return False
    return True


def _evaluate_constant(expr: Expr) -> Literal:
    try:
        value = evaluate(expr, dict[Column, pa.Array]().__getitem__, 1)  # there is no column to fetch
    except pa.ArrowInvalid as error:  # a setting that fails for all rows, like a pattern
        raise QueryError(f"{to_sql(expr)} cannot be evaluated: {error}") from None
    scalar = value if isinstance(value, pa.Scalar) else value[0]
    if pa.types.is_string(scalar.type) and not _is_text(scalar):
        raise QueryError(f"{to_sql(expr)} is no text: its bytes are not valid UTF-8")
    # Times stay integers, so that neither a time zone nor Python's calendar comes in between.
    is_time = pa.types.is_temporal(scalar.type)
    return Literal(scalar.value if is_time and scalar.is_valid else scalar.as_py(), expr.type)
