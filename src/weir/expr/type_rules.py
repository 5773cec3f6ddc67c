"""Type rules: infer, from the arguments of a call, the types to cast them to and the type of the result.

    a.k + b.price          arguments: int, decimal(10,2)
    rule of "+"         →  casts:     decimal(10,0), decimal(10,2)
                           result:    decimal(13,2)

A rule raises a `QueryError` without the function's name; `weir.expr.build.call` adds the name and the call.
The rules of one module's functions stand there; here are those that several modules share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from weir.errors import QueryError
from weir.expr.nodes import Expr
from weir.expr.types import DOUBLE, common_type_of, is_float, is_integer, is_number, is_time, spark_name
from weir.expr.values import Value, map_numbers

Signature = tuple[Sequence[pa.DataType], pa.DataType]
Rule = Callable[[Sequence[Expr]], Signature]


Test = Callable[[Sequence[Expr], pa.DataType], bool]


def always(args: Sequence[Expr], out: pa.DataType) -> bool:
    """True for every call."""
    return True


@dataclass(frozen=True, slots=True)
class Function:
    """An entry of the function table: `rule` types a call, `run` takes the result type and the values.

    Where `can_fail` says that data can make a call fail, `strict` runs in ANSI mode in place of `run`: it
    returns NULL for data errors, even where `run` wraps around, or `Failing` where NULL may be a value.
    Without `strict`, NULL from `run` is an error. Where `always_fails` is true, that holds without ANSI mode
    too. Where `is_zoned` is true, both take the time zone as the keyword `zone`.
    """

    rule: Rule
    run: Callable[..., Value]
    strict: Callable[..., Any] | None = None
    can_fail: Test | None = None
    always_fails: Test | None = None
    is_zoned: Test | None = None


def wrap(rule: Rule, kernel: Callable[..., Any], **properties: Any) -> Function:
    """Make a function of a kernel that takes the values only, not the result type."""
    return Function(rule, lambda _, *values: kernel(*values), **properties)


def wrap_numbers(rule: Rule, fn: Callable[..., Any], **properties: Any) -> Function:
    """Make a function of one over NumPy numbers: days of dates, microseconds of timestamps and intervals."""
    return Function(rule, lambda out, *values: map_numbers(out, fn, *values), **properties)


def types_of(args: Sequence[Expr]) -> list[pa.DataType]:
    """Return the types of the arguments."""
    return [arg.type for arg in args]


def wrong_types(args: Sequence[Expr], wanted: str) -> QueryError:
    """Return the error for arguments of the wrong types."""
    got = ", ".join(map(spark_name, types_of(args))) or "nothing"
    return QueryError(f"takes {wanted}, not ({got})")


def wrong_comparison(*types: pa.DataType) -> QueryError:
    """Return the error for values without a common type to compare in."""
    return QueryError(f"wrong types compared: {' and '.join(dict.fromkeys(map(spark_name, types)))}")


def check_count(args: Sequence[Expr], least: int, most: int | None = None) -> None:
    """Raise unless there are `least` to `most` arguments; `most` defaults to `least`."""
    most = least if most is None else most
    if not least <= len(args) <= most:
        wanted = str(least) if least == most else f"{least} to {most}" if most < 99 else f"at least {least}"
        raise QueryError(f"takes {wanted} argument{'s' * (wanted != '1')}, not {len(args)}")


def check_types(args: Sequence[Expr], wanted: str, *tests: Callable[[pa.DataType], bool]) -> None:
    """Raise unless there are as many arguments as tests, and the type of each passes its test."""
    check_count(args, len(tests))
    if not all(test(arg.type) for test, arg in zip(tests, args, strict=True)):
        raise wrong_types(args, wanted)


def is_number_or_null(type: pa.DataType) -> bool:
    """True for what arithmetic takes."""
    return is_number(type) or bool(pa.types.is_null(type))


def can_pass(given: pa.DataType, wanted: pa.DataType) -> bool:
    """True if an argument is cast implicitly; stricter than Spark, which also parses strings as numbers."""
    if given == wanted or pa.types.is_null(given) or (is_time(given) and is_time(wanted)):
        return True
    if pa.types.is_string(given):
        return is_time(wanted)
    return (is_integer(given) and is_integer(wanted)) or (is_number(given) and is_float(wanted))


def take(out: pa.DataType, *types: pa.DataType, optional: int = 0) -> Rule:
    """Make a rule for arguments of fixed types, the last few of them optional."""

    def rule(args: Sequence[Expr]) -> Signature:
        check_count(args, len(types) - optional, len(types))
        if not all(can_pass(arg.type, type) for arg, type in zip(args, types, strict=False)):
            raise wrong_types(args, ", ".join(map(spark_name, types)))
        return types[: len(args)], out

    return rule


def take_doubles(count: int, optional: int = 0) -> Rule:
    """Make a rule for `count` doubles that returns a double."""
    return take(DOUBLE, *[DOUBLE] * count, optional=optional)


def shared_type(args: Sequence[Expr]) -> pa.DataType:
    """Return the common type of the arguments, or raise."""
    type = common_type_of(types_of(args))
    if type is None:
        raise wrong_types(args, "values of one type")
    return type
