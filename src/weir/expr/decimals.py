"""Decimal arithmetic with Spark's precision: round half up, NULL on overflow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.expr.nodes import Expr, Literal
from weir.expr.types import is_float, is_integer, to_decimal_type
from weir.expr.values import Value, from_numbers, keep_nulls, map_arrays, null, null_where


def are_used(args: Sequence[Expr]) -> bool:
    """True if arithmetic over the arguments is done in decimals."""
    types = [arg.type for arg in args]
    return any(map(pa.types.is_decimal, types)) and not any(map(is_float, types))


def operand_type(arg: Expr) -> pa.DataType:
    """Return the decimal type of an operand; that of an integer constant has only the constant's digits."""
    if isinstance(arg, Literal) and is_integer(arg.type) and arg.value is not None:
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
    wide = pc.cast(value, pa.decimal256(min(76, digits), scale))
    if value.type.scale > out.scale:
        wide = pc.round(wide, ndigits=out.scale, round_mode="half_towards_infinity")
    whole = out.precision - out.scale
    if wide.type.precision - wide.type.scale > whole:
        limit = pa.scalar(10**whole, pa.decimal256(whole + 1, 0))
        wide = null_where(pc.greater_equal(pc.abs(wide), limit), wide)
    return pc.cast(wide, out, safe=False)


def compute(kernel: Any, out: pa.DataType, left: Value, right: Value) -> Value:
    """Compute a sum, difference or product in type `out`."""
    return fit(kernel(left, right) if out.precision < 38 else kernel(widen(left), widen(right)), out)


def widen(value: Value, digits: int = 0) -> Value:
    """Widen decimals to 256 bits, with room for that many more digits."""
    return pc.cast(value, pa.decimal256(value.type.precision + digits, value.type.scale))


def divide(out: pa.DataType, left: Value, right: Value) -> Value:
    """Divide in type `out`; the divisor is not zero."""
    # Arrow truncates a quotient at scale s1 + p2 - s2 + 1: ask for one more digit, then round.
    more = max(0, out.scale + 1 - (left.type.scale + right.type.precision - right.type.scale + 1))
    scaled = pc.cast(left, pa.decimal256(left.type.precision + more, left.type.scale + more))
    return fit(pc.divide(scaled, widen(right)), out)


def divide_whole(left: Value, right: Value) -> Value:
    """Divide and truncate to a whole number."""
    return pc.round(pc.divide(widen(left), widen(right)), ndigits=0, round_mode="towards_zero")


def remainder(out: pa.DataType, left: Value, right: Value) -> Value:
    """Return the remainder with the sign of the dividend; the divisor is not zero."""
    whole = divide_whole(left, right)
    whole = pc.cast(whole, pa.decimal256(whole.type.precision - whole.type.scale + 1, 0), safe=False)
    return fit(pc.subtract(widen(left), pc.multiply(whole, widen(right))), out)


def decimal_from_float(value: Value, out: pa.DataType) -> Value:
    """Cast floats by their shortest text as Spark does; NULL for NaN, infinity and what is too large."""
    limit = 10.0 ** (out.precision - out.scale)
    number = pc.cast(value, pa.float64())
    large = pc.or_kleene(pc.invert(pc.is_finite(number)), pc.greater_equal(pc.abs(number), limit))
    return map_arrays(lambda floats: _parse_float_text(floats, out), null_where(large, value))


def _parse_float_text(number: pa.Array, out: pa.DataType) -> pa.Array:
    text = pc.cast(number, pa.string())
    plain = pc.if_else(pc.match_substring(text, "e"), null(pa.string()), text)
    exact = fit(pc.cast(plain, pa.decimal256(60, 30)), out)
    if plain.null_count == number.null_count:
        return exact
    # Text with an exponent is rare, numbers below 1e-6 or from 1e10 up; a direct cast of these loses nothing.
    return pc.coalesce(exact, fit(pc.cast(number, pa.decimal256(76, 36)), out))


def decimal_to_float(decimals: pa.Array, out: pa.DataType) -> pa.Array:
    """Cast decimals to the nearest float; Arrow's own cast may be off by a bit."""
    # The low 64 bits of each decimal are its unscaled integer, if it has at most 18 digits.
    unscaled = np.frombuffer(decimals.buffers()[1], np.int64, 2 * len(decimals), 16 * decimals.offset)[::2]
    if decimals.type.precision > 18 or np.abs(unscaled).max(initial=0) > 2**53:
        return pc.cast(pc.cast(decimals, pa.string()), out)
    return keep_nulls(from_numbers(unscaled / 10.0**decimals.type.scale, out), decimals)
