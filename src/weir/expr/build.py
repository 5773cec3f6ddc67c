"""Build typed calls: look up the function, cast its arguments and fold constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from inspect import signature

import pyarrow as pa

from weir.errors import QueryError, find_nearest
from weir.expr.casts import can_cast
from weir.expr.evaluate import ALIASES, FUNCTIONS, evaluate
from weir.expr.nodes import Call, Column, Expr, Literal, columns_of
from weir.expr.scope import UserFunction
from weir.expr.to_sql import to_sql
from weir.expr.types import spark_name


def call(name: str, args: Sequence[Expr]) -> Expr:
    """Build a call of a function of the table, with its arguments cast to the types that it takes.

    >>> str(call("<", [Literal(1, pa.int32()), Literal(0.5, pa.float64())]))
    'False'
    """
    function = ALIASES.get(name.lower(), name.lower())
    if function not in FUNCTIONS:
        raise _unknown_function(name)
    try:
        types, out = FUNCTIONS[function].rule(args)
    except QueryError as error:
        raise _name_call(error, name, Call(function, tuple(args), pa.null())) from None
    cast_args = tuple(cast(arg, type) for arg, type in zip(args, types, strict=True))
    return _fold(Call(function, cast_args, out))


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


def cast(expr: Expr, type: pa.DataType, name: str = "cast") -> Expr:
    """Cast the expression by `cast` or `try_cast`, unless it has that type already."""
    if expr.type == type:
        return expr
    if not can_cast(expr.type, type):
        raise QueryError(f"cannot cast {to_sql(expr)} from {spark_name(expr.type)} to {spark_name(type)}")
    return _fold(Call(name, (expr,), type))


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
    return _evaluate_constant(expr) if all(isinstance(arg, Literal) for arg in expr.args) else expr


def fold_constant(expr: Expr) -> Literal | None:
    """Reduce an expression that reads no column to its value; None for one that does."""
    if isinstance(expr, Literal):
        return expr
    return None if columns_of(expr) else _evaluate_constant(expr)


def _evaluate_constant(expr: Expr) -> Literal:
    value = evaluate(expr, dict[Column, pa.Array]().__getitem__, 1)  # there is no column to fetch
    scalar = value if isinstance(value, pa.Scalar) else value[0]
    # Times stay integers, so that neither a time zone nor Python's calendar comes in between.
    is_time = pa.types.is_temporal(scalar.type)
    return Literal(scalar.value if is_time and scalar.is_valid else scalar.as_py(), expr.type)
