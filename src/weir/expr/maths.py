"""Mathematical functions; outside of its domain a function is NaN or NULL, as in Spark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.expr import type_rules as rules
from weir.expr.casts import cast, try_cast
from weir.expr.decimals import fit, round_places, widen
from weir.expr.nodes import Expr, Literal
from weir.expr.type_rules import Function, Signature, take, take_doubles, wrap, wrap_numbers
from weir.expr.types import BIGINT, DOUBLE, INT, is_float, is_integer, is_number
from weir.expr.values import Value, keep_nulls, map_arrays, map_numbers, null_where


def _logarithm(kernel: Any, bound: float = 0.0) -> Function:
    return wrap(take_doubles(1), lambda value: kernel(null_where(pc.less_equal(value, bound), value)))


def _log(*values: Value) -> Value:
    """Return the natural `log(x)`, or `log(base, x)`; NULL outside of the domain."""
    base, *number = (pc.ln(null_where(pc.less_equal(value, 0.0), value)) for value in values)
    return pc.divide(number[0], base) if number else base


def _power(out: pa.DataType, value: Value, exponent: Value) -> Value:
    if isinstance(exponent, pa.Scalar) and exponent.as_py() == 2:
        return pc.multiply(value, value)
    return map_numbers(out, _power_like_java, value, exponent)


def _power_like_java(value: Any, exponent: Any) -> Any:
    # In C, one to any power is one.
    is_unknown = (np.abs(value) == 1) & ~np.isfinite(exponent)
    return np.where(is_unknown, np.nan, np.power(value, exponent))


def _whole_rule(args: Sequence[Expr]) -> Signature:
    """Accept one number; the result is a decimal for a decimal, else a bigint."""
    rules.check_types(args, "numbers", rules.is_number_or_null)
    type = args[0].type
    if pa.types.is_decimal(type):
        return [type], pa.decimal128(min(38, type.precision - type.scale + 1), 0) if type.scale else type
    return ([BIGINT] if is_integer(type) else [DOUBLE]), BIGINT


def _round_whole(kernel: Any, out: pa.DataType, value: Value, to_whole: Any = cast) -> Value:
    if value.type == out:
        return value
    # One more digit, because rounding may carry.
    return (
        fit(kernel(widen(value, 1)), out)
        if pa.types.is_decimal(out)
        else to_whole(out, kernel(_replace_nan(value)))
    )


def _replace_nan(value: Value) -> Value:
    return map_numbers(value.type, lambda numbers: np.where(np.isnan(numbers), 0.0, numbers), value)


def _to_bigint(out: pa.DataType, value: Value) -> Value:
    """Cast as `try_cast`, which takes 2 to the power of 63 for the largest bigint, but to NULL for that."""
    return null_where(pc.greater_equal(value, 2.0**63), try_cast(out, value))


def _whole(kernel: Any) -> Function:
    """Make a function that rounds to a bigint, which not every double fits, or to a decimal."""
    run, strict = partial(_round_whole, kernel), partial(_round_whole, kernel, to_whole=_to_bigint)
    return Function(_whole_rule, run, strict, lambda args, out: args[0].type == DOUBLE)


def _round_rule(args: Sequence[Expr]) -> Signature:
    """Accept a number and an optional constant number of digits."""
    rules.check_count(args, 1, 2)
    rules.check_types(args[:1], "numbers", is_number)
    digits = args[1] if len(args) == 2 else Literal(0, INT)
    if not isinstance(digits, Literal) or not isinstance(digits.value, int):
        raise rules.wrong_types(args, "a number and a constant number of digits")
    return rules.types_of(args), _rounded_type(args[0].type, digits.value)


def _rounded_type(type: pa.DataType, digits: int) -> pa.DataType:
    if not pa.types.is_decimal(type):
        return type
    whole = type.precision - type.scale + 1
    if digits < 0:
        return pa.decimal128(min(38, max(whole, 1 - digits)), 0)
    scale = min(digits, type.scale)
    return pa.decimal128(min(38, whole + scale), scale)


def _round_half_up(out: pa.DataType, value: Value, digits: Value | None = None) -> Value:
    """Round to that many digits, ties away from zero."""
    places = 0 if digits is None else digits.as_py()
    if is_integer(out) and places >= 0:
        return value
    if is_integer(out) or is_float(out):
        round_numbers = _round_integer if is_integer(out) else _round_float
        return map_numbers(out, lambda numbers: round_numbers(numbers, places), value)
    if places < -value.type.precision:
        return map_arrays(lambda values: keep_nulls(pa.repeat(pa.scalar(0, out), len(values)), values), value)
    return round_places(value, places, out)


def _round_strictly(out: pa.DataType, value: Value, digits: Value | None = None) -> Value:
    """Round; NULL where the result has become too large."""
    if pa.types.is_decimal(out):
        return _round_half_up(out, value, digits)
    places = 0 if digits is None else digits.as_py()
    return map_numbers(out, lambda numbers: _round_in_range(numbers, places), value)


def _may_grow(args: Sequence[Expr], out: pa.DataType) -> bool:
    """True for whole numbers that may not fit when they are rounded up, which only ANSI mode minds."""
    return is_integer(out) and len(args) == 2


def _has_all_digits(args: Sequence[Expr], out: pa.DataType) -> bool:
    """True for decimals that already have all digits that there can be."""
    return bool(pa.types.is_decimal(out) and out.precision == 38)


def _round_in_range(numbers: Any, places: int) -> tuple[Any, Any]:
    wide = numbers.astype(np.int64)
    rounded = _round_integer(wide, min(places, 0))
    narrow = rounded.astype(numbers.dtype)
    return narrow, (narrow == rounded) & ((rounded == 0) | ((rounded < 0) == (wide < 0)))


def _round_float(numbers: Any, places: int) -> Any:
    # Spark rounds the decimal text of a double, so 2.675 is a tie, although the double is less than 2.675.
    size, scale = np.abs(numbers.astype(np.float64)), 10.0 ** abs(places)
    steps = np.floor(size * scale if places >= 0 else size / scale)
    tie = (steps * 10 + 5) / (scale * 10) if places >= 0 else (steps + 0.5) * scale
    steps += size >= tie
    rounded = np.copysign(steps / scale if places >= 0 else steps * scale, numbers)
    whole = ~(size * scale < 2.0**52) if places >= 0 else ~np.isfinite(size)
    return np.where(whole, numbers, rounded + 0.0)


def _round_integer(numbers: Any, places: int) -> Any:
    if -places > 18:
        return np.zeros_like(numbers)
    step = 10**-places
    wide = numbers.astype(np.int64)
    rest = np.fmod(wide, step)
    away = np.where(2 * np.abs(rest) >= step, np.sign(rest) * step, 0)
    return (wide - rest + away).astype(numbers.dtype)


def _factorial(numbers: Any) -> tuple[Any, Any]:
    """Return the factorial of 0 to 20, NULL for other numbers."""
    factorials = np.array([math.factorial(i) for i in range(21)])
    return factorials[np.clip(numbers, 0, 20)], (numbers >= 0) & (numbers <= 20)


_ARROW = (pc.sqrt, pc.exp, pc.sin, pc.cos, pc.tan, pc.asin, pc.acos, pc.atan)
_NUMPY = (np.cbrt, np.expm1, np.sinh, np.cosh, np.tanh, np.degrees, np.radians, np.rint)
FUNCTIONS: dict[str, Function] = {
    # Functions of one double that Arrow and NumPy call as Spark does.
    **{kernel.__name__: wrap(take_doubles(1), kernel) for kernel in _ARROW},
    **{ufunc.__name__: wrap_numbers(take_doubles(1), ufunc) for ufunc in _NUMPY},
    # The sign of a negative zero is a negative zero.
    "sign": wrap_numbers(take_doubles(1), lambda x: np.where(x == 0, x, np.sign(x))),
    "pow": Function(take_doubles(2), _power),
    **{kernel.__name__: _logarithm(kernel) for kernel in (pc.ln, pc.log10, pc.log2)},
    "log": wrap(take_doubles(2, optional=1), _log),
    "log1p": _logarithm(pc.log1p, -1.0),
    "cot": wrap_numbers(take_doubles(1), lambda x: 1.0 / np.tan(x)),
    # Adding 0.0 turns a negative zero into zero, as Spark does here.
    "atan2": wrap(take_doubles(2), lambda y, x: pc.atan2(pc.add(y, 0.0), pc.add(x, 0.0))),
    "hypot": wrap_numbers(take_doubles(2), np.hypot),
    "pi": wrap(take(DOUBLE), lambda: pa.scalar(math.pi)),
    "e": wrap(take(DOUBLE), lambda: pa.scalar(math.e)),
    "ceil": _whole(pc.ceil),
    "floor": _whole(pc.floor),
    "round": Function(_round_rule, _round_half_up, _round_strictly, _may_grow, _has_all_digits),
    "factorial": wrap_numbers(take(BIGINT, INT), _factorial),
    "bit_count": wrap_numbers(take(INT, BIGINT), lambda numbers: np.bitwise_count(numbers.view(np.uint64))),
}
ALIASES = {"power": "pow", "ceiling": "ceil", "signum": "sign"}
