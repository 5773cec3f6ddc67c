"""Decimal arithmetic with Spark's precision: round half up, NULL on overflow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.expr.nodes import Expr, Literal
from weir.expr.types import is_float, is_integer, to_decimal_type
from weir.expr.values import Value, from_numbers, keep_nulls, map_arrays, null, null_where

# The digits that Java's decimals of 128 bits have, to which Spark rounds when it negates.
EXACT_DIGITS = 34
# The digits of a quotient to which Spark limits a remainder.
_QUOTIENT_DIGITS = 39


def are_used(args: Sequence[Expr]) -> bool:
    """True if arithmetic over the arguments is done in decimals."""
    types = [arg.type for arg in args]
    return any(map(pa.types.is_decimal, types)) and not any(map(is_float, types))


def operand_type(arg: Expr) -> pa.DataType:
    """Return the decimal type of an operand; that of an integer constant has only the constant's digits.

    A tinyint constant has three digits all the same, as Spark has no rule for those.
    """
    if isinstance(arg, Literal) and arg.is_narrow and is_integer(arg.type) and arg.type != pa.int8():
        return pa.decimal128(len(str(abs(arg.value))), 0)
    return to_decimal_type(arg.type)


def result_type(operator: str, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return the type of a sum or difference (`+`), product (`*`), quotient (`/`) or remainder (`%`)."""
    scale, wholes = max(left.scale, right.scale), [type.precision - type.scale for type in (left, right)]
    whole, scale = {
        "+": (max(wholes) + 1, scale),
        "*": (sum(wholes) + 1, left.scale + right.scale),
        "/": (wholes[0] + right.scale, max(6, left.scale + right.precision + 1)),
        "%": (min(wholes), scale),
    }[operator]
    # A result has at most 38 digits: the scale is reduced first, but not below six.
    if whole + scale > 38:
        scale = max(38 - whole, min(scale, 6))
    return pa.decimal128(min(whole + scale, 38), scale)


def fit(value: Value, out: pa.DataType) -> Value:
    """Round the value half up to the scale of `out`; NULL where it has too many digits."""
    if value.type == out:
        return value
    # One more digit, since rounding may carry, and 256 bits, since rescaling may need more than 128.
    scale = max(out.scale, value.type.scale)
    digits = value.type.precision + scale - value.type.scale + 1
    rounds = value.type.scale > out.scale
    if digits >= (_MOST_CUT_DIGITS if rounds else _MOST_DIGITS):
        return map_arrays(lambda decimals: _round_exactly(decimals, out), value)
    wide = pc.cast(value, pa.decimal256(digits, scale))
    if rounds:
        # Arrow's own rounding is wrong for some numbers of more than 128 bits, so add a half and cut off.
        half, zero = (
            pa.scalar(number, wide.type) for number in (Decimal(5).scaleb(-out.scale - 1), Decimal(0))
        )
        wide = pc.add(wide, pc.if_else(pc.less(wide, zero), pc.negate(half), half))
        wide = pc.cast(wide, pa.decimal256(digits + 1 + out.scale - scale, out.scale), safe=False)
    whole = out.precision - out.scale
    if wide.type.precision - wide.type.scale > whole:
        limit = pa.scalar(10**whole, pa.decimal256(whole + 1, 0))
        wide = null_where(pc.greater_equal(pc.abs(wide), limit), wide)
    return pc.cast(wide, out, safe=False)


def _round_exactly(decimals: pa.Array, out: pa.DataType) -> pa.Array:
    return _round_product(_to_integers(decimals), decimals.type.scale, out, decimals)


def compute(operator: str, out: pa.DataType, left: Value, right: Value) -> Value:
    """Compute a sum, difference, product, quotient or remainder in type `out`; the divisor is not zero."""
    digits, kernel = _DIGITS_NEEDED[operator](left.type, right.type), _KERNELS[operator]
    if digits <= _MOST_DIGITS:
        return fit(kernel(out, left, right), out)
    return map_arrays(lambda x, y: _compute_exactly(operator, out, x, y), left, right)


def round_places(value: Value, places: int, out: pa.DataType) -> Value:
    """Round half up to a place before or after the point."""
    if places >= 0:
        return fit(value, out)

    def round_whole(decimals: pa.Array) -> pa.Array:
        rounded = _divide_half_up(_to_integers(decimals), 10 ** (decimals.type.scale - places))
        return _from_integers(rounded * 10**-places, out, decimals)

    return map_arrays(round_whole, value)


def negate(value: Value) -> Value:
    """Negate as Spark does, which keeps 34 digits; NULL where rounding to them makes one digit too many."""
    limit = pa.scalar(Decimal(10).scaleb(EXACT_DIGITS - value.type.scale - 1), pa.decimal256(76, 38))
    is_long = pc.greater_equal(pc.abs(value), limit)
    if value.type.precision <= EXACT_DIGITS or not pc.any(is_long).as_py():
        return pc.negate(value)
    return map_arrays(_negate_rounded, value)


def _negate_rounded(decimals: pa.Array) -> pa.Array:
    keep = Context(prec=EXACT_DIGITS, rounding=ROUND_HALF_EVEN)
    unit, wide = Decimal(1).scaleb(-decimals.type.scale), Context(prec=2 * decimals.type.precision)
    limit = Decimal(10) ** (decimals.type.precision - decimals.type.scale)
    negated = [None if x is None else wide.quantize(keep.minus(x), unit) for x in decimals.to_pylist()]
    return pa.array([None if x is None or x.copy_abs() >= limit else x for x in negated], decimals.type)


def widen(value: Value, digits: int = 0) -> Value:
    """Widen decimals to 256 bits, with room for that many more digits."""
    return pc.cast(value, pa.decimal256(value.type.precision + digits, value.type.scale))


def _add(kernel: Any, out: pa.DataType, left: Value, right: Value) -> Value:
    return kernel(left, right) if out.precision < 38 else kernel(widen(left), widen(right))


def _divide(out: pa.DataType, left: Value, right: Value) -> Value:
    # Arrow truncates a quotient at scale s1 + p2 - s2 + 1: ask for one more digit, then round.
    more = max(0, out.scale + 1 - (left.type.scale + right.type.precision - right.type.scale + 1))
    scaled = pc.cast(left, pa.decimal256(left.type.precision + more, left.type.scale + more))
    return pc.divide(scaled, widen(right))


def _remainder(out: pa.DataType, left: Value, right: Value) -> Value:
    # One more digit, or a quotient without whole digits could not be cut off.
    whole = pc.divide(widen(left, 1), widen(right))
    whole = pc.cast(whole, pa.decimal256(whole.type.precision - whole.type.scale + 1, 0), safe=False)
    return pc.subtract(widen(left), pc.multiply(whole, widen(right)))


def is_impossible(left: Value, right: Value) -> Value:
    """Return where a remainder does not exist: Java gives up on quotients of more than 39 digits.

    It keeps the first 39 digits of the quotient, and what these leave must be smaller than the divisor.
    """
    most_digits = left.type.precision - left.type.scale + right.type.scale
    if most_digits <= _QUOTIENT_DIGITS:
        return pa.scalar(False)
    return map_arrays(_has_long_quotient, left, right)


def _has_long_quotient(left: pa.Array, right: pa.Array) -> pa.Array:
    x, y, scale = abs(_to_integers(left)), abs(_to_integers(right)), max(left.type.scale, right.type.scale)
    x, y = x * 10 ** (scale - left.type.scale), y * 10 ** (scale - right.type.scale)
    quotient = x // np.where(y == 0, 1, y)
    places = np.array([max(0, len(str(each)) - _QUOTIENT_DIGITS) for each in quotient], object)
    is_long = np.asarray(quotient % 10**places != 0, np.bool_)
    return keep_nulls(pa.array(is_long), left, right)


def divide_whole(left: Value, right: Value) -> Value:
    """Divide and truncate to decimal(38,0), NULL if the quotient is larger; the divisor is not zero."""
    return map_arrays(lambda x, y: _compute_exactly("div", pa.decimal128(38, 0), x, y), left, right)


def _add_digits(left: pa.DataType, right: pa.DataType) -> int:
    wholes = (type.precision - type.scale for type in (left, right))
    return int(max(wholes) + max(left.scale, right.scale) + 1)


def _quotient_digits(left: pa.DataType, right: pa.DataType) -> int:
    # The dividend is scaled up by all digits of the divisor, and rounding needs some more.
    return int(left.precision + right.precision + max(left.scale, right.scale) + 12)


# The digits that Arrow's arithmetic needs; beyond what 256 bits hold, Python's integers compute. Of longer
# numbers than the second, Arrow sometimes cuts off one unit too many.
_MOST_DIGITS, _MOST_CUT_DIGITS = 76, 54
_DIGITS_NEEDED: dict[str, Callable[[pa.DataType, pa.DataType], int]] = {
    "+": _add_digits,
    "-": _add_digits,
    "*": lambda left, right: int(left.precision + right.precision + 1),
    "/": _quotient_digits,
    "%": lambda left, right: _quotient_digits(left, right) + 12,
}
_KERNELS: dict[str, Callable[..., Value]] = {
    "+": partial(_add, pc.add),
    "-": partial(_add, pc.subtract),
    "*": partial(_add, pc.multiply),
    "/": _divide,
    "%": _remainder,
}


def _compute_exactly(operator: str, out: pa.DataType, left: pa.Array, right: pa.Array) -> pa.Array:
    """Compute with Python's integers; arrays of up to 38 digits are rare."""
    x, y, scale = _to_integers(left), _to_integers(right), max(left.type.scale, right.type.scale)
    if operator == "*":
        return _round_product(x * y, left.type.scale + right.type.scale, out, left, right)
    x, y = x * 10 ** (scale - left.type.scale), y * 10 ** (scale - right.type.scale)
    y = np.where(y == 0, 1, y)  # under NULL
    if operator == "/":
        return _from_integers(_divide_half_up(x * 10**out.scale, y), out, left, right)
    if operator == "div":
        return _from_integers(_divide_towards_zero(x, y), out, left, right)
    totals = {"+": lambda: x + y, "-": lambda: x - y, "%": lambda: x - _divide_towards_zero(x, y) * y}
    return _round_product(totals[operator](), scale, out, left, right)


def _round_product(numbers: Any, scale: int, out: pa.DataType, *sources: pa.Array) -> pa.Array:
    if scale > out.scale:
        numbers = _divide_half_up(numbers, 10 ** (scale - out.scale))
    return _from_integers(numbers * 10 ** max(0, out.scale - scale), out, *sources)


def _divide_towards_zero(x: Any, y: Any) -> Any:
    return np.where((x < 0) == (y < 0), 1, -1) * (abs(x) // abs(y))


def _divide_half_up(x: Any, y: Any) -> Any:
    return np.where((x < 0) == (y < 0), 1, -1) * ((2 * abs(x) + abs(y)) // (2 * abs(y)))


def _to_integers(decimals: pa.Array) -> Any:
    """Return the unscaled numbers as Python integers, 0 for NULL."""
    words = decimals.type.bit_width // 64
    data = np.frombuffer(decimals.buffers()[1], np.uint64, words * len(decimals), 8 * words * decimals.offset)
    table = data.reshape(-1, words)
    total = table[:, -1].view(np.int64).astype(object)
    for column in range(words - 2, -1, -1):
        total = total * 2**64 + table[:, column].astype(object)
    return np.where(pc.is_valid(decimals).to_numpy(zero_copy_only=False), total, 0)


def _from_integers(numbers: Any, out: pa.DataType, *sources: pa.Array) -> pa.Array:
    """Make decimals of unscaled numbers; NULL where they have too many digits, or where a source is NULL."""
    inside = np.asarray(abs(numbers) < 10**out.precision, np.bool_)
    numbers = np.where(inside, numbers, 0)
    words = np.empty((len(numbers), 2), np.uint64)
    words[:, 0] = (numbers % 2**64).astype(np.uint64)
    words[:, 1] = (numbers // 2**64).astype(np.int64).view(np.uint64)
    decimals = pa.Array.from_buffers(out, len(numbers), [None, pa.py_buffer(words)])
    return keep_nulls(null_where(pa.array(~inside), decimals), *sources)


def truncate(decimals: pa.Array) -> pa.Array:
    """Truncate decimals to whole numbers, as decimal(38,0)."""
    type = pa.decimal128(38, 0)
    if not decimals.type.scale:
        return pc.cast(decimals, type)
    return pc.cast(pc.cast(decimals, pa.decimal256(76, 0), safe=False), type, safe=False)


def low_words(decimals: pa.Array) -> Any:
    """Return the low 64 bits of each unscaled number; arbitrary for NULL."""
    data = np.frombuffer(decimals.buffers()[1], np.int64, 2 * len(decimals), 16 * decimals.offset)
    return data[::2]


def decimal_from_unscaled(numbers: pa.Array, out: pa.DataType) -> pa.Array:
    """Make decimals of bigints that are their unscaled numbers, and fit."""
    whole = pc.cast(numbers, pa.decimal128(19, 0))
    return pa.Array.from_buffers(out, len(whole), whole.buffers(), offset=whole.offset)


def decimal_from_float(value: Value, out: pa.DataType) -> Value:
    """Cast floats by their shortest text as Spark does; NULL for NaN, infinity and what is too large."""
    limit = 10.0 ** (out.precision - out.scale)
    number = pc.cast(value, pa.float64())  # Spark widens a float first, and shows its digits as a double
    large = pc.or_kleene(pc.invert(pc.is_finite(number)), pc.greater_equal(pc.abs(number), limit))
    return map_arrays(lambda floats: _parse_float_text(floats, out), null_where(large, number))


def _parse_float_text(number: pa.Array, out: pa.DataType) -> pa.Array:
    # A double has at most 17 digits; one so small that they reach beyond 57 places is zero in any decimal.
    tiny = pc.less(pc.abs(number), 1e-39)
    text = pc.cast(pc.if_else(tiny, pa.scalar(0.0), number), pa.string())
    small = pc.less(pc.abs(number), 1e-10)
    if not pc.any(small, min_count=0).as_py():
        return fit(pc.cast(text, pa.decimal256(75, 36)), out)
    nothing = null(pa.string())
    parts = [
        fit(pc.cast(pc.if_else(small, nothing, text), pa.decimal256(75, 36)), out),
        fit(pc.cast(pc.if_else(small, text, nothing), pa.decimal256(75, 60)), out),
    ]
    return pc.coalesce(*parts)


def decimal_to_float(decimals: pa.Array, out: pa.DataType) -> pa.Array:
    """Cast decimals to the nearest float; Arrow's own cast may be off by a bit."""
    # The low 64 bits of each decimal are its unscaled integer, if it has at most 18 digits.
    unscaled = np.frombuffer(decimals.buffers()[1], np.int64, 2 * len(decimals), 16 * decimals.offset)[::2]
    if decimals.type.precision > 18 or np.abs(unscaled).max(initial=0) > 2**53:
        return pc.cast(pc.cast(decimals, pa.string()), out)
    return keep_nulls(from_numbers(unscaled / 10.0**decimals.type.scale, out), decimals)
