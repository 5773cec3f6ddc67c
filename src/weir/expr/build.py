"""Typed calls: look the function up, cast its arguments, fold what is constant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from inspect import signature
from typing import Any

import pyarrow as pa
from pyarrow import types as is_a

from weir.errors import QueryError, nearest
from weir.expr.casts import can_cast
from weir.expr.evaluate import evaluate
from weir.expr.functions import FUNCTIONS, callable_names, canonical
from weir.expr.nodes import Call, Expr, Literal
from weir.expr.scope import UserFunction
from weir.expr.text import show
from weir.expr.types import spark_name


def call(name: str, args: Sequence[Expr]) -> Expr:
    """A call of a function of the table, with its arguments cast to what it takes.

    >>> str(call("<", [Literal(1, pa.int32()), Literal(0.5, pa.float64())]))
    'False'
    """
    function = FUNCTIONS.get(canonical(name))
    if function is None:
        raise _unknown_function(name)
    try:
        types, out = function.rule(args)
    except QueryError as error:
        raise _located(error, name, args) from None
    ready = tuple(cast(arg, type) for arg, type in zip(args, types, strict=True))
    return fold(Call(canonical(name), ready, out))


def _unknown_function(name: str) -> QueryError:
    near = nearest(name, callable_names())
    hint = "; a" if near is None else f"; did you mean '{near}'? A"
    return QueryError(
        f"function '{name}' is not known{hint} function of your own "
        "can be passed as functions={'name': weir.udf(...)}"
    )


def _located(error: QueryError, name: str, args: Sequence[Expr]) -> QueryError:
    where = show(Call(canonical(name), tuple(args), pa.null()))
    text = str(error)
    if text.startswith("wrong types"):
        return QueryError(f"{text} in {where}; cast one side, e.g. cast(x AS {spark_name(args[0].type)})")
    return QueryError(f"'{name}' {text}, in {where}")


def cast(expr: Expr, type: pa.DataType, name: str = "cast") -> Expr:
    """The expression in another type, by `cast` or `try_cast`; itself if it has that type already."""
    if expr.type == type:
        return expr
    if not can_cast(expr.type, type):
        raise QueryError(f"cannot cast {show(expr)} from {spark_name(expr.type)} to {spark_name(type)}")
    return fold(Call(name, (expr,), type))


def call_user(function: UserFunction, name: str, args: Sequence[Expr]) -> Expr:
    """A call of the user's own function."""
    if not args:
        raise QueryError(f"function '{name}' needs at least one argument")
    if not function.takes(len(args)):
        raise QueryError(
            f"function '{name}' cannot be called with {len(args)} argument{'s' * (len(args) != 1)}: "
            f"it is defined as {name}{signature(function.fn)}"
        )
    named = Literal(replace(function, name=name), function.returns)
    return Call("udf", (named, *args), function.returns)


def fold(expr: Call) -> Expr:
    """The constant an expression amounts to if it reads no column, else the expression."""
    if not all(isinstance(arg, Literal) for arg in expr.args):
        return expr
    value = evaluate(expr, _no_column, 1)
    return Literal(_python(value), expr.type)


def _no_column(column: Any) -> pa.Array:
    raise AssertionError(f"a constant reads {column}")


def _python(value: Any) -> Any:
    # Times stay whole numbers, so that no time zone or calendar of Python's comes in between.
    if not value.is_valid:
        return None
    type = value.type
    return (
        value.value
        if is_a.is_date(type) or is_a.is_timestamp(type) or is_a.is_duration(type)
        else value.as_py()
    )
