"""Type rules: infer, from the arguments of a call, the types to cast them to and the type of the result.

    a.k + b.price          arguments: int, decimal(10,2)
    rule of "+"         →  casts:     decimal(10,0), decimal(10,2)
                           result:    decimal(13,2)

A rule raises a `QueryError` without the function's name; `weir.expr.build.call` adds the name and the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from weir.errors import QueryError
from weir.expr.nodes import Expr, Literal
from weir.expr.types import (
    common_type,
    common_type_of,
    is_float,
    is_integer,
    is_number,
    is_time,
    limit_decimal,
    spark_name,
    to_decimal_type,
)
from weir.expr.values import Value

BOOLEAN, INT, BIGINT, DOUBLE, STRING, DATE = (
    pa.bool_(), pa.int32(), pa.int64(), pa.float64(), pa.string(), pa.date32()
)  # fmt: skip

Signature = tuple[Sequence[pa.DataType], pa.DataType]
Rule = Callable[[Sequence[Expr]], Signature]


@dataclass(frozen=True, slots=True)
class Function:
    """An entry of the function table: `rule` types a call, `run` takes the result type and the values."""

    rule: Rule
    run: Callable[..., Value]


def wrap(rule: Rule, kernel: Callable[..., Any]) -> Function:
    """Make a function of a kernel that takes the values only, not the result type."""
    return Function(rule, lambda _, *values: kernel(*values))


def types_of(args: Sequence[Expr]) -> list[pa.DataType]:
    """Return the types of the arguments."""
    return [arg.type for arg in args]


def wrong_types(args: Sequence[Expr], wanted: str) -> QueryError:
    """Return the error for arguments of the wrong types."""
    got = ", ".join(map(spark_name, types_of(args))) or "nothing"
    return QueryError(f"takes {wanted}, not ({got})")


def check_count(args: Sequence[Expr], least: int, most: int | None = None) -> None:
    """Raise unless there are `least` to `most` arguments; `most` defaults to `least`."""
    most = least if most is None else most
    if not least <= len(args) <= most:
        wanted = str(least) if least == most else f"{least} to {most}" if most < 99 else f"at least {least}"
        raise QueryError(f"takes {wanted} argument{'s' * (wanted != '1')}, not {len(args)}")


def can_pass(given: pa.DataType, wanted: pa.DataType) -> bool:
    """True if an argument is cast implicitly; stricter than Spark, which also parses strings as numbers."""
    if given == wanted or pa.types.is_null(given) or (is_time(given) and is_time(wanted)):
        return True
    if pa.types.is_string(given):
        return is_time(wanted)
    if is_integer(given) and is_integer(wanted):
        return True
    return is_number(given) and is_float(wanted)


def take(out: pa.DataType, *types: pa.DataType, optional: int = 0) -> Rule:
    """Make a rule for arguments of fixed types, the last few of them optional."""

    def rule(args: Sequence[Expr]) -> Signature:
        check_count(args, len(types) - optional, len(types))
        if not all(can_pass(arg.type, type) for arg, type in zip(args, types, strict=False)):
            raise wrong_types(args, ", ".join(map(spark_name, types)))
        return types[: len(args)], out

    return rule


def take_doubles(count: int) -> Rule:
    """Make a rule for `count` doubles that returns a double."""
    return take(DOUBLE, *[DOUBLE] * count)


def comparison_rule(args: Sequence[Expr]) -> Signature:
    """Cast the values to one type that has an order, and return a boolean."""
    type = comparison_type(args)
    if type is None or not has_order(type):
        raise wrong_comparison(args)
    return [type] * len(args), BOOLEAN


def comparison_type(args: Sequence[Expr]) -> pa.DataType | None:
    """Return the type to compare in; a string beside a time is parsed as a time, as in Spark."""
    types = types_of(args)
    times = [type for type in types if is_time(type)]
    if times and any(map(pa.types.is_string, types)):
        types = [type for type in types if not pa.types.is_string(type)]
    return common_type_of(types)


def wrong_comparison(args: Sequence[Expr]) -> QueryError:
    """Return the error for values without a common type to compare in."""
    names = " and ".join(dict.fromkeys(map(spark_name, types_of(args))))
    return QueryError(f"wrong types compared: {names}")


def has_order(type: pa.DataType) -> bool:
    """True if values of the type can be compared with each other."""
    return not pa.types.is_nested(type)


def take_booleans(least: int, most: int | None = None) -> Rule:
    """Make a rule for booleans that returns a boolean."""

    def rule(args: Sequence[Expr]) -> Signature:
        check_count(args, least, most)
        if any(common_type(arg.type, BOOLEAN) != BOOLEAN for arg in args):
            raise wrong_types(args, "boolean")
        return [BOOLEAN] * len(args), BOOLEAN

    return rule


def take_any(out: pa.DataType) -> Rule:
    """Make a rule for one argument of any type."""

    def rule(args: Sequence[Expr]) -> Signature:
        check_count(args, 1)
        return types_of(args), out

    return rule


def shared_type(args: Sequence[Expr]) -> pa.DataType:
    """Return the common type of the arguments, or raise."""
    type = common_type_of(types_of(args))
    if type is None:
        raise wrong_types(args, "values of one type")
    return type


def take_same_type(least: int = 1, most: int = 99) -> Rule:
    """Make a rule that casts the values to their common type and returns that type."""

    def rule(args: Sequence[Expr]) -> Signature:
        check_count(args, least, most)
        type = shared_type(args)
        return [type] * len(args), type

    return rule


def ordered_rule(args: Sequence[Expr]) -> Signature:
    """Cast two or more values to a common type that has an order, and return that type."""
    types, out = take_same_type(2)(args)
    if not has_order(out):
        raise wrong_types(args, "values that can be ordered")
    return types, out


def check_numbers(args: Sequence[Expr]) -> None:
    """Raise unless all arguments are numbers or NULL."""
    if not all(is_number(arg.type) or pa.types.is_null(arg.type) for arg in args):
        raise wrong_types(args, "numbers")


def take_integers(count: int) -> Rule:
    """Make a rule that casts `count` integers to their common width."""

    def rule(args: Sequence[Expr]) -> Signature:
        check_count(args, count)
        type = shared_type(args)
        if not is_integer(type):
            raise wrong_types(args, "whole numbers")
        return [type] * count, type

    return rule


def operand_type(arg: Expr) -> pa.DataType:
    """Return the decimal type of an operand; that of an integer constant has only the constant's digits."""
    if isinstance(arg, Literal) and is_integer(arg.type) and arg.value is not None:
        return pa.decimal128(len(str(abs(arg.value))), 0)
    return to_decimal_type(arg.type)


def uses_decimals(args: Sequence[Expr]) -> bool:
    """True if arithmetic over the arguments is done in decimals."""
    types = types_of(args)
    return any(map(pa.types.is_decimal, types)) and not any(map(is_float, types))


def take_numbers(result: Callable[[pa.DataType, pa.DataType], pa.DataType]) -> Rule:
    """Make a rule for two numbers in their common type; `result` returns the type of a decimal result."""

    def rule(args: Sequence[Expr]) -> Signature:
        check_count(args, 2)
        check_numbers(args)
        if uses_decimals(args) and not any(pa.types.is_null(arg.type) for arg in args):
            left, right = map(operand_type, args)
            return (left, right), result(left, right)
        type = shared_type(args)
        type = DOUBLE if pa.types.is_null(type) else type
        return (type, type), type

    return rule


def sum_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return the decimal type of a sum or difference."""
    scale = max(left.scale, right.scale)
    return limit_decimal(max(left.precision - left.scale, right.precision - right.scale) + scale + 1, scale)


def product_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return the decimal type of a product."""
    return limit_decimal(left.precision + right.precision + 1, left.scale + right.scale)


def quotient_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return the decimal type of a quotient."""
    scale = max(6, left.scale + right.precision + 1)
    return limit_decimal(left.precision - left.scale + right.scale + scale, scale)


def remainder_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return the decimal type of a remainder."""
    scale = max(left.scale, right.scale)
    return limit_decimal(min(left.precision - left.scale, right.precision - right.scale) + scale, scale)
