"""Arithmetic: `+ - * / % div`, on integers that wrap, floats, decimals, and points and spans of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as is_a

from weir.expr.decimals import decimal_operation, decimal_quotient, decimal_remainder, whole_quotient
from weir.expr.nodes import Expr, Literal
from weir.expr.rules import (
    BIGINT,
    DATE,
    DOUBLE,
    Function,
    Signature,
    arithmetic,
    counted,
    integers,
    numbers,
    plain,
    product_type,
    quotient_type,
    refuse,
    remainder_type,
    shared,
    sum_type,
    types_of,
    uses_decimals,
)
from weir.expr.types import INTERVAL, TIMESTAMP, is_integer, is_number, is_time
from weir.expr.values import Value, elementwise, null_where, raw

DAY = 86_400_000_000


def add_rule(args: Sequence[Expr]) -> Signature:
    """Numbers; a time and an interval, either way round; a date and days; two intervals."""
    counted(args, 2)
    left, right = types_of(args)
    if is_a.is_duration(left) and is_time(right):
        return (left, _moved(args[1], args[0])), _moved(args[1], args[0])
    if is_time(left) and is_a.is_duration(right):
        return (_moved(*args), right), _moved(*args)
    if left == DATE and is_integer(right):
        return (left, pa.int32()), left
    if left == right == INTERVAL:
        return (left, right), left
    return arithmetic(sum_type)(args)


def subtract_rule(args: Sequence[Expr]) -> Signature:
    """As for `+`, and the interval between two times."""
    counted(args, 2)
    left, right = types_of(args)
    if is_time(left) and is_time(right):
        type = shared(args)
        return (type, type), INTERVAL
    if is_a.is_duration(left) and is_time(right):
        raise refuse(args, "a time first")
    return add_rule(args)


def _moved(time: Expr, span: Expr) -> pa.DataType:
    # A date moved by whole days stays a date.
    if time.type != DATE:
        return time.type
    days = isinstance(span, Literal) and span.value is not None and span.value % DAY == 0
    return DATE if days else TIMESTAMP


def multiply_rule(args: Sequence[Expr]) -> Signature:
    """Numbers, or an interval a whole number of times."""
    counted(args, 2)
    left, right = types_of(args)
    if left == INTERVAL and is_integer(right):
        return (INTERVAL, BIGINT), INTERVAL
    if right == INTERVAL and is_integer(left):
        return (BIGINT, INTERVAL), INTERVAL
    return arithmetic(product_type)(args)


def divide_rule(args: Sequence[Expr]) -> Signature:
    """Decimals stay decimals; every other quotient is a double."""
    counted(args, 2)
    numbers(args)
    return arithmetic(quotient_type)(args) if uses_decimals(args) else ((DOUBLE, DOUBLE), DOUBLE)


def div_rule(args: Sequence[Expr]) -> Signature:
    """Whole quotient, a bigint."""
    counted(args, 2)
    numbers(args)
    return (arithmetic(quotient_type)(args)[0] if uses_decimals(args) else (BIGINT, BIGINT)), BIGINT


def one_number(args: Sequence[Expr]) -> Signature:
    """A number or an interval, and its own type as result."""
    counted(args, 1)
    if not is_number(args[0].type) and args[0].type != INTERVAL:
        raise refuse(args, "a number")
    return types_of(args), args[0].type


def add(out: pa.DataType, left: Value, right: Value) -> Value:
    """`left + right`."""
    return _add_or_subtract(pc.add, out, left, right)


def subtract(out: pa.DataType, left: Value, right: Value) -> Value:
    """`left - right`."""
    if out == INTERVAL and left.type == DATE:
        return pc.cast(pc.subtract(left, right), INTERVAL)
    return _add_or_subtract(pc.subtract, out, left, right)


def _add_or_subtract(kernel: Any, out: pa.DataType, left: Value, right: Value) -> Value:
    if is_a.is_decimal(out):
        return decimal_operation(kernel, out, left, right)
    if out == DATE:
        return elementwise(out, np.add if kernel is pc.add else np.subtract, *map(_days, (left, right)))
    return kernel(left, right)


def _days(value: Value) -> Value:
    return pc.cast(pc.divide(pc.cast(value, BIGINT), DAY), pa.int32()) if value.type == INTERVAL else value


def multiply(out: pa.DataType, left: Value, right: Value) -> Value:
    """`left * right`."""
    return (
        decimal_operation(pc.multiply, out, left, right) if is_a.is_decimal(out) else pc.multiply(left, right)
    )


def _nonzero(value: Value) -> Value:
    if isinstance(value, pa.Array) and not is_a.is_decimal(value.type) and raw(value).all():
        return value
    return null_where(pc.equal(value, pa.scalar(0, value.type)), value)


def divide(out: pa.DataType, left: Value, right: Value) -> Value:
    """`left / right`, NULL for a zero divisor."""
    right = _nonzero(right)
    return decimal_quotient(out, left, right) if is_a.is_decimal(out) else pc.divide(left, right)


def div(out: pa.DataType, left: Value, right: Value) -> Value:
    """Whole quotient towards zero, NULL for a zero divisor."""
    if is_a.is_decimal(left.type):
        return whole_quotient(left, _nonzero(right))
    # NumPy and Arrow both trip over the smallest number divided by -1, which Java wraps.
    return elementwise(out, _java_div, left, right)


def _java_div(left: Any, right: Any) -> tuple[Any, Any]:
    valid = right != 0
    safe = np.where(valid & (right != -1), right, 1)
    return np.where(right == -1, np.negative(left), (left - np.fmod(left, safe)) // safe), valid


def remainder(out: pa.DataType, left: Value, right: Value) -> Value:
    """`left % right` with the sign of the dividend, NULL for a zero divisor."""
    if is_a.is_decimal(out):
        return decimal_remainder(out, left, _nonzero(right))
    return elementwise(out, lambda x, y: (np.fmod(x, _safe(y)), y != 0), left, right)


def positive_remainder(out: pa.DataType, left: Value, right: Value) -> Value:
    """Remainder that is never negative for a positive divisor, NULL for a zero one."""
    return elementwise(out, _pmod, left, right)


def _pmod(left: Any, right: Any) -> tuple[Any, Any]:
    divisor = _safe(right)
    rest = np.fmod(left, divisor)
    return np.where(rest < 0, np.fmod(rest + divisor, divisor), rest), right != 0


def _safe(divisor: Any) -> Any:
    return np.where(divisor == 0, divisor.dtype.type(1), divisor)


def no_decimals(args: Sequence[Expr]) -> Signature:
    """Two numbers that are not decimals."""
    types, out = arithmetic(remainder_type)(args)
    if is_a.is_decimal(out):
        raise refuse(args, "whole numbers or doubles")
    return types, out


def _shifted(bits: np.ufunc) -> Any:
    def kernel(out: pa.DataType, value: Value, places: Value) -> Value:
        # Java takes the places modulo the width of the number.
        return elementwise(
            out, lambda x, n: bits(x, (n & (x.dtype.itemsize * 8 - 1)).astype(x.dtype)), value, places
        )

    return kernel


def shift_rule(args: Sequence[Expr]) -> Signature:
    """An int or a bigint, and the places to move it."""
    counted(args, 2)
    if not all(is_integer(arg.type) for arg in args):
        raise refuse(args, "whole numbers")
    type = BIGINT if args[0].type == BIGINT else pa.int32()
    return (type, pa.int32()), type


FUNCTIONS: dict[str, Function] = {
    "+": Function(add_rule, add),
    "-": Function(subtract_rule, subtract),
    "*": Function(multiply_rule, multiply),
    "/": Function(divide_rule, divide),
    "div": Function(div_rule, div),
    "%": Function(arithmetic(remainder_type), remainder),
    "pmod": Function(no_decimals, positive_remainder),
    "negative": plain(one_number, pc.negate),
    "positive": plain(one_number, lambda value: value),
    "abs": plain(one_number, pc.abs),
    "&": plain(integers(2), pc.bit_wise_and),
    "|": plain(integers(2), pc.bit_wise_or),
    "^": plain(integers(2), pc.bit_wise_xor),
    "~": plain(integers(1), pc.bit_wise_not),
    "shiftleft": Function(shift_rule, _shifted(np.left_shift)),
    "shiftright": Function(shift_rule, _shifted(np.right_shift)),
    "try_divide": Function(divide_rule, divide),
}
ALIASES = {"mod": "%"}
