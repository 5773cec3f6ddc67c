"""Type rules: from the arguments of a call, the types they are cast to and the type of the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import types as is_a

from weir.errors import QueryError
from weir.expr.nodes import Expr, Literal
from weir.expr.types import (
    as_decimal,
    bounded,
    common_of,
    common_type,
    is_float,
    is_integer,
    is_number,
    is_time,
    spark_name,
)
from weir.expr.values import Value

BOOLEAN, INT, BIGINT, DOUBLE, STRING, DATE = (
    pa.bool_(), pa.int32(), pa.int64(), pa.float64(), pa.string(), pa.date32()
)  # fmt: skip

Signature = tuple[Sequence[pa.DataType], pa.DataType]
Rule = Callable[[Sequence[Expr]], Signature]


@dataclass(frozen=True, slots=True)
class Function:
    """One line of the function table: how a call is typed, and how it runs (on result type and values)."""

    rule: Rule
    run: Callable[..., Value]


def plain(rule: Rule, kernel: Callable[..., Any]) -> Function:
    """A function whose kernel takes nothing but the values."""
    return Function(rule, lambda _, *values: kernel(*values))


def types_of(args: Sequence[Expr]) -> list[pa.DataType]:
    """The types of the arguments."""
    return [arg.type for arg in args]


def refuse(args: Sequence[Expr], wanted: str) -> QueryError:
    """The error for arguments of the wrong types."""
    got = ", ".join(map(spark_name, types_of(args))) or "nothing"
    return QueryError(f"takes {wanted}, not ({got})")


def counted(args: Sequence[Expr], least: int, most: int | None = None) -> None:
    """Check the number of arguments; `most` defaults to `least`."""
    most = least if most is None else most
    if not least <= len(args) <= most:
        wanted = str(least) if least == most else f"{least} to {most}" if most < 99 else f"at least {least}"
        raise QueryError(f"takes {wanted} argument{'s' * (wanted != '1')}, not {len(args)}")


def can_pass(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Spark would cast an argument silently, and nobody would be surprised."""
    if given == wanted or is_a.is_null(given) or (is_time(given) and is_time(wanted)):
        return True
    if is_a.is_string(given):
        return is_time(wanted)
    if is_integer(given) and is_integer(wanted):
        return True
    return is_number(given) and is_float(wanted)


def takes(out: pa.DataType, *types: pa.DataType, optional: int = 0) -> Rule:
    """Arguments of fixed types, the last few of them optional."""

    def rule(args: Sequence[Expr]) -> Signature:
        counted(args, len(types) - optional, len(types))
        if not all(can_pass(arg.type, type) for arg, type in zip(args, types, strict=False)):
            raise refuse(args, ", ".join(map(spark_name, types)))
        return types[: len(args)], out

    return rule


def doubles(count: int) -> Rule:
    """That many doubles, and a double as result."""
    return takes(DOUBLE, *[DOUBLE] * count)


def compared(args: Sequence[Expr]) -> Signature:
    """Values brought to one type that has an order; a boolean as result."""
    type = compared_type(args)
    if type is None or not has_order(type):
        raise wrong_comparison(args)
    return [type] * len(args), BOOLEAN


def compared_type(args: Sequence[Expr]) -> pa.DataType | None:
    """The type a comparison is made in; text beside a time is read as one, as in Spark."""
    types = types_of(args)
    times = [type for type in types if is_time(type)]
    if times and any(map(is_a.is_string, types)):
        types = [type for type in types if not is_a.is_string(type)]
    return common_of(types)


def wrong_comparison(args: Sequence[Expr]) -> QueryError:
    """The error for values that have no common type to be compared in."""
    names = " and ".join(dict.fromkeys(map(spark_name, types_of(args))))
    return QueryError(f"wrong types compared: {names}")


def has_order(type: pa.DataType) -> bool:
    """Whether values can be compared with each other."""
    return not is_a.is_nested(type)


def booleans(least: int, most: int | None = None) -> Rule:
    """Booleans in, a boolean out."""

    def rule(args: Sequence[Expr]) -> Signature:
        counted(args, least, most)
        if any(common_type(arg.type, BOOLEAN) != BOOLEAN for arg in args):
            raise refuse(args, "boolean")
        return [BOOLEAN] * len(args), BOOLEAN

    return rule


def any_type(out: pa.DataType) -> Rule:
    """One argument of any type."""

    def rule(args: Sequence[Expr]) -> Signature:
        counted(args, 1)
        return types_of(args), out

    return rule


def shared(args: Sequence[Expr]) -> pa.DataType:
    """The one type that alternatives of a value are brought to."""
    type = common_of(types_of(args))
    if type is None:
        raise refuse(args, "values of one type")
    return type


def alternatives(least: int = 1, most: int = 99) -> Rule:
    """Values of one type, and that type as result."""

    def rule(args: Sequence[Expr]) -> Signature:
        counted(args, least, most)
        type = shared(args)
        return [type] * len(args), type

    return rule


def ordered_alternatives(args: Sequence[Expr]) -> Signature:
    """At least two values of one type that has an order, and that type as result."""
    types, out = alternatives(2)(args)
    if not has_order(out):
        raise refuse(args, "values that can be ordered")
    return types, out


def numbers(args: Sequence[Expr]) -> None:
    """Check that all arguments are numbers (or NULL)."""
    if not all(is_number(arg.type) or is_a.is_null(arg.type) for arg in args):
        raise refuse(args, "numbers")


def integers(count: int) -> Rule:
    """That many whole numbers, brought to their common width."""

    def rule(args: Sequence[Expr]) -> Signature:
        counted(args, count)
        type = shared(args)
        if not is_integer(type):
            raise refuse(args, "whole numbers")
        return [type] * count, type

    return rule


def exact(arg: Expr) -> pa.DataType:
    """The decimal type of an operand beside a decimal: a whole constant counts its own digits only."""
    if isinstance(arg, Literal) and is_integer(arg.type) and arg.value is not None:
        return pa.decimal128(len(str(abs(arg.value))), 0)
    return as_decimal(arg.type)


def uses_decimals(args: Sequence[Expr]) -> bool:
    """Whether arithmetic over the arguments is done in decimals."""
    types = types_of(args)
    return any(map(is_a.is_decimal, types)) and not any(map(is_float, types))


def arithmetic(result: Callable[[pa.DataType, pa.DataType], pa.DataType]) -> Rule:
    """Two numbers in their common type; `result` gives the type if that is a decimal."""

    def rule(args: Sequence[Expr]) -> Signature:
        counted(args, 2)
        numbers(args)
        if uses_decimals(args) and not any(is_a.is_null(arg.type) for arg in args):
            left, right = map(exact, args)
            return (left, right), result(left, right)
        type = shared(args)
        type = DOUBLE if is_a.is_null(type) else type
        return (type, type), type

    return rule


def sum_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The decimal type of a sum or difference."""
    scale = max(left.scale, right.scale)
    return bounded(max(left.precision - left.scale, right.precision - right.scale) + scale + 1, scale)


def product_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The decimal type of a product."""
    return bounded(left.precision + right.precision + 1, left.scale + right.scale)


def quotient_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The decimal type of a quotient."""
    scale = max(6, left.scale + right.precision + 1)
    return bounded(left.precision - left.scale + right.scale + scale, scale)


def remainder_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The decimal type of a remainder."""
    scale = max(left.scale, right.scale)
    return bounded(min(left.precision - left.scale, right.precision - right.scale) + scale, scale)
