"""Arithmetic and bit operators over integers that wrap as in Java, floats, decimals, times and intervals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.expr import decimals
from weir.expr import type_rules as rules
from weir.expr.nodes import Expr, Literal
from weir.expr.type_rules import Function, Signature, types_of, wrap, wrap_numbers, wrong_types
from weir.expr.types import BIGINT, DATE, DOUBLE, INT, INTERVAL, TIMESTAMP, is_integer, is_number, is_time
from weir.expr.values import Value, map_numbers, null_where, to_numbers

DAY = 86_400_000_000


def _type_numbers(operator: str, args: Sequence[Expr]) -> Signature:
    """Accept two numbers, in their common type; decimals stay as they are."""
    rules.check_types(args, "numbers", *[rules.is_number_or_null] * 2)
    if decimals.are_used(args) and not any(pa.types.is_null(arg.type) for arg in args):
        left, right = map(decimals.operand_type, args)
        return (left, right), decimals.result_type(operator, left, right)
    type = rules.shared_type(args)
    type = DOUBLE if pa.types.is_null(type) else type
    return (type, type), type


def _integer_rule(args: Sequence[Expr], count: int = 2) -> Signature:
    """Cast integers to their common width."""
    rules.check_count(args, count)
    type = rules.shared_type(args)
    if not is_integer(type):
        raise wrong_types(args, "whole numbers")
    return [type] * count, type


def _add_rule(args: Sequence[Expr]) -> Signature:
    """Accept numbers; a time and an interval, either way round; a date and days; two intervals."""
    rules.check_count(args, 2)
    left, right = types_of(args)
    if pa.types.is_duration(left) and is_time(right):
        out = _shifted_time_type(args[1], args[0])
        return (left, out), out
    if is_time(left) and pa.types.is_duration(right):
        out = _shifted_time_type(*args)
        return (out, right), out
    if left == DATE and is_integer(right):
        return (left, INT), left
    if left == right == INTERVAL:
        return (left, right), left
    return _type_numbers("+", args)


def _subtract_rule(args: Sequence[Expr]) -> Signature:
    """Accept what `+` accepts; two times give the interval between them."""
    rules.check_count(args, 2)
    left, right = types_of(args)
    if is_time(left) and is_time(right):
        type = rules.shared_type(args)
        return (type, type), INTERVAL
    if pa.types.is_duration(left) and is_time(right):
        raise wrong_types(args, "a time first")
    return _add_rule(args)


def _shifted_time_type(time: Expr, interval: Expr) -> pa.DataType:
    # A date plus whole days stays a date.
    if time.type != DATE:
        return time.type
    days = isinstance(interval, Literal) and interval.value is not None and interval.value % DAY == 0
    return DATE if days else TIMESTAMP


def _multiply_rule(args: Sequence[Expr]) -> Signature:
    """Accept numbers, or an interval and an integer."""
    rules.check_count(args, 2)
    left, right = types_of(args)
    if left == INTERVAL and is_integer(right):
        return (INTERVAL, BIGINT), INTERVAL
    if right == INTERVAL and is_integer(left):
        return (BIGINT, INTERVAL), INTERVAL
    return _type_numbers("*", args)


def _divide_rule(args: Sequence[Expr]) -> Signature:
    """Accept numbers; the quotient of decimals is a decimal, any other a double."""
    signature = _type_numbers("/", args)
    return signature if decimals.are_used(args) else ((DOUBLE, DOUBLE), DOUBLE)


def _div_rule(args: Sequence[Expr]) -> Signature:
    types, _ = _divide_rule(args)
    return (types if decimals.are_used(args) else (BIGINT, BIGINT)), BIGINT


def _number_rule(args: Sequence[Expr]) -> Signature:
    rules.check_types(args, "a number", lambda type: is_number(type) or type == INTERVAL)
    return types_of(args), args[0].type


def _pmod_rule(args: Sequence[Expr]) -> Signature:
    types, out = _type_numbers("%", args)
    if pa.types.is_decimal(out):
        raise wrong_types(args, "whole numbers or doubles")
    return types, out


def _shift_rule(args: Sequence[Expr]) -> Signature:
    rules.check_types(args, "whole numbers", is_integer, is_integer)
    type = BIGINT if args[0].type == BIGINT else INT
    return (type, INT), type


def _compute(kernel: Any, out: pa.DataType, left: Value, right: Value) -> Value:
    """Return a sum, difference or product, exact for decimals; days are added here, as Arrow adds none."""
    if pa.types.is_decimal(out):
        return decimals.compute(kernel, out, left, right)
    if out == DATE:
        return map_numbers(out, np.add if kernel is pc.add else np.subtract, *map(_to_days, (left, right)))
    result = kernel(left, right)
    return result if result.type == out else pc.cast(result, out)


def _to_days(value: Value) -> Value:
    return pc.cast(pc.divide(pc.cast(value, BIGINT), DAY), INT) if value.type == INTERVAL else value


def _null_if_zero(value: Value) -> Value:
    if isinstance(value, pa.Array) and not pa.types.is_decimal(value.type) and to_numbers(value).all():
        return value
    return null_where(pc.equal(value, pa.scalar(0, value.type)), value)


def _divide(out: pa.DataType, left: Value, right: Value) -> Value:
    right = _null_if_zero(right)
    return decimals.divide(out, left, right) if pa.types.is_decimal(out) else pc.divide(left, right)


def _div(out: pa.DataType, left: Value, right: Value) -> Value:
    if pa.types.is_decimal(left.type):
        return pc.cast(decimals.divide_whole(left, _null_if_zero(right)), out, safe=False)
    return map_numbers(out, _divide_like_java, left, right)


def _divide_like_java(left: Any, right: Any) -> tuple[Any, Any]:
    # The smallest integer divided by -1 wraps in Java, while NumPy and Arrow overflow.
    valid = right != 0
    safe = np.where(valid & (right != -1), right, 1)
    return np.where(right == -1, np.negative(left), (left - np.fmod(left, safe)) // safe), valid


def _remainder(out: pa.DataType, left: Value, right: Value) -> Value:
    """Return the remainder with the sign of the dividend, NULL for a zero divisor."""
    if pa.types.is_decimal(out):
        return decimals.remainder(out, left, _null_if_zero(right))
    return map_numbers(out, lambda x, y: (np.fmod(x, _one_if_zero(y)), y != 0), left, right)


def _pmod(left: Any, right: Any) -> tuple[Any, Any]:
    """Return the remainder that is not negative for a positive divisor, NULL for a zero divisor."""
    divisor = _one_if_zero(right)
    rest = np.fmod(left, divisor)
    return np.where(rest < 0, np.fmod(rest + divisor, divisor), rest), right != 0


def _one_if_zero(divisor: Any) -> Any:
    return np.where(divisor == 0, divisor.dtype.type(1), divisor)


def _shift(shift: np.ufunc) -> Function:
    # Java takes the number of bits modulo the width of the number.
    return wrap_numbers(
        _shift_rule, lambda x, bits: shift(x, (bits & (x.dtype.itemsize * 8 - 1)).astype(x.dtype))
    )


FUNCTIONS: dict[str, Function] = {
    "+": Function(_add_rule, partial(_compute, pc.add)),
    "-": Function(_subtract_rule, partial(_compute, pc.subtract)),
    "*": Function(_multiply_rule, partial(_compute, pc.multiply)),
    "/": Function(_divide_rule, _divide),
    "div": Function(_div_rule, _div),
    "%": Function(partial(_type_numbers, "%"), _remainder),
    "pmod": wrap_numbers(_pmod_rule, _pmod),
    "negative": wrap(_number_rule, pc.negate),
    "positive": wrap(_number_rule, lambda value: value),
    "abs": wrap(_number_rule, pc.abs),
    "&": wrap(_integer_rule, pc.bit_wise_and),
    "|": wrap(_integer_rule, pc.bit_wise_or),
    "^": wrap(_integer_rule, pc.bit_wise_xor),
    "~": wrap(partial(_integer_rule, count=1), pc.bit_wise_not),
    "shiftleft": _shift(np.left_shift),
    "shiftright": _shift(np.right_shift),
    "try_divide": Function(_divide_rule, _divide),
}
ALIASES = {"mod": "%"}
