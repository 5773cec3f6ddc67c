"""Arithmetic and bit operators over integers that wrap as in Java, floats, decimals, times and intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.expr.decimals import compute_decimal, decimal_remainder, divide_decimals, divide_whole
from weir.expr.nodes import Expr, Literal
from weir.expr.type_rules import (
    BIGINT,
    DATE,
    DOUBLE,
    Function,
    Signature,
    check_count,
    check_numbers,
    product_type,
    quotient_type,
    remainder_type,
    shared_type,
    sum_type,
    take_integers,
    take_numbers,
    types_of,
    uses_decimals,
    wrap,
    wrong_types,
)
from weir.expr.types import INTERVAL, TIMESTAMP, is_integer, is_number, is_time
from weir.expr.values import Value, map_numbers, null_where, to_numbers

DAY = 86_400_000_000


def add_rule(args: Sequence[Expr]) -> Signature:
    """Accept numbers; a time and an interval, either way round; a date and days; two intervals."""
    check_count(args, 2)
    left, right = types_of(args)
    if pa.types.is_duration(left) and is_time(right):
        out = _shifted_time_type(args[1], args[0])
        return (left, out), out
    if is_time(left) and pa.types.is_duration(right):
        out = _shifted_time_type(*args)
        return (out, right), out
    if left == DATE and is_integer(right):
        return (left, pa.int32()), left
    if left == right == INTERVAL:
        return (left, right), left
    return take_numbers(sum_type)(args)


def subtract_rule(args: Sequence[Expr]) -> Signature:
    """Accept what `+` accepts; two times give the interval between them."""
    check_count(args, 2)
    left, right = types_of(args)
    if is_time(left) and is_time(right):
        type = shared_type(args)
        return (type, type), INTERVAL
    if pa.types.is_duration(left) and is_time(right):
        raise wrong_types(args, "a time first")
    return add_rule(args)


def _shifted_time_type(time: Expr, interval: Expr) -> pa.DataType:
    # A date plus whole days stays a date.
    if time.type != DATE:
        return time.type
    days = isinstance(interval, Literal) and interval.value is not None and interval.value % DAY == 0
    return DATE if days else TIMESTAMP


def multiply_rule(args: Sequence[Expr]) -> Signature:
    """Accept numbers, or an interval and an integer."""
    check_count(args, 2)
    left, right = types_of(args)
    if left == INTERVAL and is_integer(right):
        return (INTERVAL, BIGINT), INTERVAL
    if right == INTERVAL and is_integer(left):
        return (BIGINT, INTERVAL), INTERVAL
    return take_numbers(product_type)(args)


def divide_rule(args: Sequence[Expr]) -> Signature:
    """Accept numbers; the quotient of decimals is a decimal, any other a double."""
    check_count(args, 2)
    check_numbers(args)
    return take_numbers(quotient_type)(args) if uses_decimals(args) else ((DOUBLE, DOUBLE), DOUBLE)


def div_rule(args: Sequence[Expr]) -> Signature:
    """Accept numbers; the integer quotient is a bigint."""
    check_count(args, 2)
    check_numbers(args)
    return (take_numbers(quotient_type)(args)[0] if uses_decimals(args) else (BIGINT, BIGINT)), BIGINT


def number_rule(args: Sequence[Expr]) -> Signature:
    """Accept a number or an interval; the result has its type."""
    check_count(args, 1)
    if not is_number(args[0].type) and args[0].type != INTERVAL:
        raise wrong_types(args, "a number")
    return types_of(args), args[0].type


def add(out: pa.DataType, left: Value, right: Value) -> Value:
    """Return `left + right`."""
    return _add_or_subtract(pc.add, out, left, right)


def subtract(out: pa.DataType, left: Value, right: Value) -> Value:
    """Return `left - right`."""
    if out == INTERVAL and left.type == DATE:
        return pc.cast(pc.subtract(left, right), INTERVAL)
    return _add_or_subtract(pc.subtract, out, left, right)


def _add_or_subtract(kernel: Any, out: pa.DataType, left: Value, right: Value) -> Value:
    if pa.types.is_decimal(out):
        return compute_decimal(kernel, out, left, right)
    if out == DATE:
        return map_numbers(out, np.add if kernel is pc.add else np.subtract, *map(_to_days, (left, right)))
    return kernel(left, right)


def _to_days(value: Value) -> Value:
    return pc.cast(pc.divide(pc.cast(value, BIGINT), DAY), pa.int32()) if value.type == INTERVAL else value


def multiply(out: pa.DataType, left: Value, right: Value) -> Value:
    """Return `left * right`."""
    if pa.types.is_decimal(out):
        return compute_decimal(pc.multiply, out, left, right)
    return pc.multiply(left, right)


def _null_if_zero(value: Value) -> Value:
    if isinstance(value, pa.Array) and not pa.types.is_decimal(value.type) and to_numbers(value).all():
        return value
    return null_where(pc.equal(value, pa.scalar(0, value.type)), value)


def divide(out: pa.DataType, left: Value, right: Value) -> Value:
    """Return `left / right`, NULL for a zero divisor."""
    right = _null_if_zero(right)
    return divide_decimals(out, left, right) if pa.types.is_decimal(out) else pc.divide(left, right)


def div(out: pa.DataType, left: Value, right: Value) -> Value:
    """Return the integer quotient, truncated towards zero; NULL for a zero divisor."""
    if pa.types.is_decimal(left.type):
        return divide_whole(left, _null_if_zero(right))
    return map_numbers(out, _divide_like_java, left, right)


def _divide_like_java(left: Any, right: Any) -> tuple[Any, Any]:
    # The smallest integer divided by -1 wraps in Java, while NumPy and Arrow overflow.
    valid = right != 0
    safe = np.where(valid & (right != -1), right, 1)
    return np.where(right == -1, np.negative(left), (left - np.fmod(left, safe)) // safe), valid


def remainder(out: pa.DataType, left: Value, right: Value) -> Value:
    """Return `left % right` with the sign of the dividend, NULL for a zero divisor."""
    if pa.types.is_decimal(out):
        return decimal_remainder(out, left, _null_if_zero(right))
    return map_numbers(out, lambda x, y: (np.fmod(x, _one_if_zero(y)), y != 0), left, right)


def positive_remainder(out: pa.DataType, left: Value, right: Value) -> Value:
    """Return the remainder that is not negative for a positive divisor, NULL for a zero divisor."""
    return map_numbers(out, _pmod, left, right)


def _pmod(left: Any, right: Any) -> tuple[Any, Any]:
    divisor = _one_if_zero(right)
    rest = np.fmod(left, divisor)
    return np.where(rest < 0, np.fmod(rest + divisor, divisor), rest), right != 0


def _one_if_zero(divisor: Any) -> Any:
    return np.where(divisor == 0, divisor.dtype.type(1), divisor)


def pmod_rule(args: Sequence[Expr]) -> Signature:
    """Accept two numbers that are not decimals."""
    types, out = take_numbers(remainder_type)(args)
    if pa.types.is_decimal(out):
        raise wrong_types(args, "whole numbers or doubles")
    return types, out


def _shift(shift: np.ufunc) -> Function:
    def shift_numbers(numbers: Any, bits: Any) -> Any:
        # Java takes the number of bits modulo the width of the number.
        return shift(numbers, (bits & (numbers.dtype.itemsize * 8 - 1)).astype(numbers.dtype))

    return Function(shift_rule, lambda out, value, bits: map_numbers(out, shift_numbers, value, bits))


def shift_rule(args: Sequence[Expr]) -> Signature:
    """Accept an int or a bigint, and the number of bits to shift it by."""
    check_count(args, 2)
    if not all(is_integer(arg.type) for arg in args):
        raise wrong_types(args, "whole numbers")
    type = BIGINT if args[0].type == BIGINT else pa.int32()
    return (type, pa.int32()), type


FUNCTIONS: dict[str, Function] = {
    "+": Function(add_rule, add),
    "-": Function(subtract_rule, subtract),
    "*": Function(multiply_rule, multiply),
    "/": Function(divide_rule, divide),
    "div": Function(div_rule, div),
    "%": Function(take_numbers(remainder_type), remainder),
    "pmod": Function(pmod_rule, positive_remainder),
    "negative": wrap(number_rule, pc.negate),
    "positive": wrap(number_rule, lambda value: value),
    "abs": wrap(number_rule, pc.abs),
    "&": wrap(take_integers(2), pc.bit_wise_and),
    "|": wrap(take_integers(2), pc.bit_wise_or),
    "^": wrap(take_integers(2), pc.bit_wise_xor),
    "~": wrap(take_integers(1), pc.bit_wise_not),
    "shiftleft": _shift(np.left_shift),
    "shiftright": _shift(np.right_shift),
    "try_divide": Function(divide_rule, divide),
}
ALIASES = {"mod": "%"}
