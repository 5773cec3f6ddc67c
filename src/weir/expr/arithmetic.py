"""Arithmetic and bit operators over integers that wrap as in Java, floats, decimals, times and intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import add, mul, sub
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.expr import decimals
from weir.expr import type_rules as rules
from weir.expr.casts import cast
from weir.expr.nodes import Expr, Literal
from weir.expr.type_rules import Function, Rule, Signature, always, types_of, wrap, wrap_numbers, wrong_types
from weir.expr.types import (
    BIGINT,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    is_float,
    is_integer,
    is_time,
)
from weir.expr.values import Failing, Value, as_array, map_numbers, null_where, to_numbers
from weir.expr.zones import Zone, find_zone

DAY = 86_400_000_000


def _type_numbers(operator: str, args: Sequence[Expr]) -> Signature:
    """Accept two numbers, in their common type; decimals stay as they are."""
    rules.check_types(args, "numbers", *[rules.is_number_or_null] * 2)
    if decimals.are_used(args):
        # NULL beside a decimal has its type.
        others = reversed(args)
        pairs = zip(args, others, strict=True)
        left, right = (decimals.operand_type(y if pa.types.is_null(x.type) else x) for x, y in pairs)
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
        # Of an instant and a local time, the local times are compared.
        type = TIMESTAMP_NTZ if TIMESTAMP_NTZ in (left, right) else rules.shared_type(args)
        return (type, type), INTERVAL
    if pa.types.is_duration(left) and is_time(right):
        raise wrong_types(args, "a time first")
    return _add_rule(args)


def _shifted_time_type(time: Expr, interval: Expr) -> pa.DataType:
    # A date plus an interval of days stays a date.
    if time.type != DATE:
        return time.type
    return DATE if isinstance(interval, Literal) and interval.is_narrow else TIMESTAMP


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
    """Accept numbers; the quotient of decimals is a decimal, any other a double, as that of NULL."""
    signature = _type_numbers("/", args)
    is_decimal = decimals.are_used(args) and not pa.types.is_null(args[0].type)
    return signature if is_decimal else ((DOUBLE, DOUBLE), DOUBLE)


def _div_rule(args: Sequence[Expr]) -> Signature:
    """Accept whole numbers and decimals."""
    if any(is_float(arg.type) for arg in args):
        raise wrong_types(args, "whole numbers or decimals")
    types, _ = _divide_rule(args)
    return (types if decimals.are_used(args) else (BIGINT, BIGINT)), BIGINT


def _number_rule(args: Sequence[Expr]) -> Signature:
    rules.check_types(args, "a number", lambda type: rules.is_number_or_null(type) or type == INTERVAL)
    type = DOUBLE if pa.types.is_null(args[0].type) else args[0].type
    return [type], type


def _pmod_rule(args: Sequence[Expr]) -> Signature:
    types, out = _type_numbers("%", args)
    if pa.types.is_decimal(out):
        raise wrong_types(args, "whole numbers or doubles")
    return types, out


def _shift_rule(args: Sequence[Expr]) -> Signature:
    rules.check_types(args, "whole numbers", is_integer, is_integer)
    type = BIGINT if args[0].type == BIGINT else INT
    return (type, INT), type


def _compute(operator: str, out: pa.DataType, left: Value, right: Value, zone: str | None = None) -> Value:
    """Return a sum, difference or product, exact for decimals; days are added here, as Arrow adds none."""
    if pa.types.is_decimal(out):
        return decimals.compute(operator, out, left, right)
    if out == DATE:
        return map_numbers(out, _UFUNCS[operator], *map(_to_days, (left, right)))
    if zone is not None:
        return _compute_local(operator, out, left, right, zone)
    result = _WRAPPING[operator](left, right)
    return result if result.type == out else pc.cast(result, out)


def _compute_strictly(
    operator: str, out: pa.DataType, left: Value, right: Value, zone: str | None = None
) -> Value:
    """Compute as `_compute`, but NULL where a whole number, a time or an interval overflows."""
    if pa.types.is_decimal(out) or is_float(out) or out == DATE:
        return _compute(operator, out, left, right, zone)
    if zone is not None:
        return _compute_local(operator, out, left, right, zone)
    if left.type == right.type == DATE:
        return map_numbers(
            out, lambda x, y: _compute_in_range("*", x.astype(np.int64) - y, np.int64(DAY)), left, right
        )
    try:
        if is_integer(out):
            return _CHECKED[operator](left, right)
        return pc.cast(_CHECKED[operator](pc.cast(left, BIGINT), pc.cast(right, BIGINT)), out)
    except pa.ArrowInvalid:  # something overflows: find out what
        return map_numbers(out, partial(_compute_in_range, operator), left, right)


def _compute_in_range(operator: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Compute whole numbers, and tell which results fit their type."""
    wide = x.dtype if x.dtype.itemsize >= y.dtype.itemsize else y.dtype
    x, y = x.astype(wide), y.astype(wide)
    result = _UFUNCS[operator](x, y)
    limits = np.iinfo(wide)
    exact = _UFUNCS[operator](x.astype(np.float64), y.astype(np.float64))
    # Where the rounded result is far from the limits, or far beyond them, it decides.
    near = np.abs(np.abs(exact) - float(limits.max)) <= 1e-9 * float(limits.max)
    fits = (exact >= float(limits.min)) & (exact <= float(limits.max))
    for i in np.flatnonzero(near):
        exact_result = _EXACT[operator](*(int(np.broadcast_to(side, near.shape)[i]) for side in (x, y)))
        fits[i] = limits.min <= exact_result <= limits.max
    return result, fits


def _compute_local(operator: str, out: pa.DataType, left: Value, right: Value, zone: str) -> Value:
    """Add days of an interval to the local time, the rest to the instant; subtract two local times."""
    region = find_zone(zone)
    if out == INTERVAL:
        return map_numbers(out, partial(_subtract_local, region), left, right)
    if left.type == INTERVAL:
        left, right = right, left
    sign = 1 if operator == "+" else -1

    def shift(time: Any, interval: Any) -> tuple[Any, Any]:
        # Java's division: the days and the rest have the sign of the interval.
        interval = sign * interval
        days = np.sign(interval) * (np.abs(interval) // DAY)
        _, is_day = _compute_in_range("+", time, days * DAY)
        moved = region.keep_offset(time, region.to_local(time) + days * DAY)
        result, is_time = _compute_in_range("+", np.where(days == 0, time, moved), interval - days * DAY)
        return result, is_day & is_time

    return map_numbers(out, shift, left, right)


def _subtract_local(region: Zone, x: Any, y: Any) -> tuple[Any, Any]:
    """Subtract the local times of instants, and tell which differences fit; the local times need not."""
    shift = (region.to_local(x) - x) - (region.to_local(y) - y)
    gap, is_gap = _compute_in_range("-", x, y)
    total, is_total = _compute_in_range("+", gap, shift)
    return total, is_gap & is_total


def _to_days(value: Value) -> Value:
    return pc.cast(pc.divide(pc.cast(value, BIGINT), DAY), INT) if value.type == INTERVAL else value


def _null_if_zero(value: Value) -> Value:
    if isinstance(value, pa.Array) and not pa.types.is_decimal(value.type) and to_numbers(value).all():
        return value
    return null_where(pc.equal(value, pa.scalar(0, value.type)), value)


def _divide(out: pa.DataType, left: Value, right: Value) -> Value:
    right = _null_if_zero(right)
    return decimals.compute("/", out, left, right) if pa.types.is_decimal(out) else pc.divide(left, right)


def _div(out: pa.DataType, left: Value, right: Value) -> Value:
    if pa.types.is_decimal(left.type):
        return cast(out, decimals.divide_whole(left, _null_if_zero(right)))
    return map_numbers(out, _divide_like_java, left, right)


def _div_strictly(out: pa.DataType, left: Value, right: Value) -> Value:
    """Divide as `_div`, but NULL for a quotient that does not fit; of decimals, Spark keeps the low bits."""
    if pa.types.is_decimal(left.type):
        return _div(out, left, right)
    least = np.iinfo(np.int64).min

    def divide(x: Any, y: Any) -> tuple[Any, Any]:
        quotient, valid = _divide_like_java(x, y)
        return quotient, valid & ~((x == least) & (y == -1))

    return map_numbers(out, divide, left, right)


def _divide_like_java(left: Any, right: Any) -> tuple[Any, Any]:
    # The smallest integer divided by -1 wraps in Java, while NumPy and Arrow overflow.
    valid = right != 0
    safe = np.where(valid & (right != -1), right, 1)
    return np.where(right == -1, np.negative(left), (left - np.fmod(left, safe)) // safe), valid


def _remainder(out: pa.DataType, left: Value, right: Value) -> Value:
    """Return the remainder with the sign of the dividend, NULL for a zero divisor."""
    if pa.types.is_decimal(out):
        divisor = _null_if_zero(right)
        return null_where(decimals.is_impossible(left, divisor), decimals.compute("%", out, left, divisor))
    return map_numbers(out, lambda x, y: (np.fmod(x, _one_if_zero(y)), y != 0), left, right)


def _remainder_or_failure(out: pa.DataType, left: Value, right: Value) -> Value | Failing:
    """Return the remainder; without ANSI mode too, one of decimals fails where it is impossible."""
    rest = _remainder(out, left, right)
    if not pa.types.is_decimal(out) or isinstance(rest, pa.Scalar):
        return rest
    failed = pc.fill_null(decimals.is_impossible(left, _null_if_zero(right)), False)
    return Failing(rest, as_array(failed, len(rest)).to_numpy(zero_copy_only=False))


def _pmod(left: Any, right: Any) -> tuple[Any, Any]:
    """Return the remainder that is not negative for a positive divisor, NULL for a zero divisor."""
    divisor = _one_if_zero(right)
    rest = np.fmod(left, divisor)
    # Java adds numbers that are smaller than an int as ints.
    wide = np.promote_types(left.dtype, np.int32) if left.dtype.kind == "i" else left.dtype
    positive = np.fmod(rest.astype(wide) + divisor, divisor).astype(left.dtype)
    return np.where(rest < 0, positive, rest), right != 0


def _one_if_zero(divisor: Any) -> Any:
    return np.where(divisor == 0, divisor.dtype.type(1), divisor)


def _shift(shift: np.ufunc) -> Function:
    # Java takes the number of bits modulo the width of the number.
    return wrap_numbers(
        _shift_rule, lambda x, bits: shift(x, (bits & (x.dtype.itemsize * 8 - 1)).astype(x.dtype))
    )


def _overflows(args: Sequence[Expr], out: pa.DataType) -> bool:
    """True if a result may not fit its type, which only ANSI mode minds."""
    return is_integer(out) or bool(pa.types.is_decimal(out))


def _time_overflows(args: Sequence[Expr], out: pa.DataType) -> bool:
    """True for times and intervals, which never wrap around."""
    return bool(out == INTERVAL or pa.types.is_timestamp(out))


def _has_local_time(args: Sequence[Expr], out: pa.DataType) -> bool:
    """True if the days of an interval count in local time: two instants, or one and a day or more."""
    types = types_of(args)
    if TIMESTAMP not in types:
        return False
    interval = next((arg for arg in args if arg.type == INTERVAL), None)
    is_short = isinstance(interval, Literal) and interval.value is not None and abs(interval.value) < DAY
    return interval is None or not is_short


def _never_wraps(args: Sequence[Expr], out: pa.DataType) -> bool:
    """True for intervals, and for decimals with more digits than Spark negates exactly."""
    return out == INTERVAL or bool(pa.types.is_decimal(out) and out.precision > decimals.EXACT_DIGITS)


def _negate(out: pa.DataType, value: Value) -> Value:
    """Negate; the smallest whole number has no opposite."""
    if pa.types.is_decimal(out):
        return decimals.negate(value)
    if not is_integer(out) and out != INTERVAL:
        return pc.negate(value)
    return map_numbers(out, lambda numbers: (-numbers, numbers != np.iinfo(numbers.dtype).min), value)


def _absolute(out: pa.DataType, value: Value) -> Value:
    if pa.types.is_decimal(out):
        return pc.if_else(pc.less(value, pa.scalar(0, out)), decimals.negate(value), value)
    if not is_integer(out) and out != INTERVAL:
        return pc.abs(value)
    return map_numbers(out, lambda numbers: (np.abs(numbers), numbers != np.iinfo(numbers.dtype).min), value)


def _operator(name: str, rule: Rule) -> Function:
    run, strict = partial(_compute, name), partial(_compute_strictly, name)
    return Function(rule, run, strict, _overflows, _time_overflows, _has_local_time)


def _attempt(rule: Rule, strict: Callable[..., Value]) -> Function:
    """Make the `try_` form of an operator, which is NULL where that fails."""
    return Function(rule, strict, is_zoned=_has_local_time)


_UFUNCS: dict[str, Any] = {"+": np.add, "-": np.subtract, "*": np.multiply}
_EXACT: dict[str, Any] = {"+": add, "-": sub, "*": mul}
_WRAPPING: dict[str, Any] = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}
_CHECKED: dict[str, Any] = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
_REMAINDER_RULE = partial(_type_numbers, "%")
FUNCTIONS: dict[str, Function] = {
    "+": _operator("+", _add_rule),
    "-": _operator("-", _subtract_rule),
    "*": _operator("*", _multiply_rule),
    "/": Function(_divide_rule, _divide, can_fail=always),
    "div": Function(_div_rule, _div, _div_strictly, always),
    "%": Function(_REMAINDER_RULE, _remainder_or_failure, _remainder, always),
    "pmod": wrap_numbers(_pmod_rule, _pmod, can_fail=always),
    "negative": Function(_number_rule, lambda _, value: pc.negate(value), _negate, _overflows, _never_wraps),
    "positive": wrap(_number_rule, lambda value: value),
    "abs": Function(_number_rule, lambda _, value: pc.abs(value), _absolute, _overflows, _never_wraps),
    "&": wrap(_integer_rule, pc.bit_wise_and),
    "|": wrap(_integer_rule, pc.bit_wise_or),
    "^": wrap(_integer_rule, pc.bit_wise_xor),
    "~": wrap(partial(_integer_rule, count=1), pc.bit_wise_not),
    "shiftleft": _shift(np.left_shift),
    "shiftright": _shift(np.right_shift),
    "try_add": _attempt(_add_rule, partial(_compute_strictly, "+")),
    "try_subtract": _attempt(_subtract_rule, partial(_compute_strictly, "-")),
    "try_multiply": _attempt(_multiply_rule, partial(_compute_strictly, "*")),
    "try_divide": Function(_divide_rule, _divide),
    "try_mod": Function(_REMAINDER_RULE, _remainder),
}
ALIASES = {"mod": "%"}
