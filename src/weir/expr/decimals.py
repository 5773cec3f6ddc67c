"""Decimal arithmetic with Spark's precision: rounded half up, NULL if the result is too large."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.expr.values import Value, array, keep_nulls, null, null_where


def fit(value: Value, out: pa.DataType) -> Value:
    """The value rounded half up to the scale of `out`, NULL where it has too many digits."""
    if value.type == out:
        return value
    # One more digit, since rounding may carry into a new one; twice the width, since rescaling may need it.
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


def decimal_operation(kernel: Any, out: pa.DataType, left: Value, right: Value) -> Value:
    """A sum, difference or product, in `out`."""
    if out.precision < 38:
        return fit(kernel(left, right), out)
    return fit(kernel(_wide(left), _wide(right)), out)


def _wide(value: Value) -> Value:
    return pc.cast(value, pa.decimal256(value.type.precision, value.type.scale))


def decimal_quotient(out: pa.DataType, left: Value, right: Value) -> Value:
    """A quotient in `out`; the divisor is not zero."""
    # Arrow's quotient has scale s1 + p2 - s2 + 1 and is cut off: ask for one more digit, then round.
    more = max(0, out.scale + 1 - (left.type.scale + right.type.precision - right.type.scale + 1))
    scaled = pc.cast(left, pa.decimal256(left.type.precision + more, left.type.scale + more))
    return fit(pc.divide(scaled, _wide(right)), out)


def whole_quotient(left: Value, right: Value) -> Value:
    """The quotient without its fraction, as a bigint."""
    return pc.cast(_truncated(pc.divide(_wide(left), _wide(right))), pa.int64(), safe=False)


def _truncated(value: Value) -> Value:
    return pc.round(value, ndigits=0, round_mode="towards_zero")


def decimal_remainder(out: pa.DataType, left: Value, right: Value) -> Value:
    """The remainder with the sign of the dividend; the divisor is not zero."""
    whole = _truncated(pc.divide(_wide(left), _wide(right)))
    whole = pc.cast(whole, pa.decimal256(whole.type.precision - whole.type.scale + 1, 0), safe=False)
    return fit(pc.subtract(_wide(left), pc.multiply(whole, _wide(right))), out)


def from_float(value: Value, out: pa.DataType) -> Value:
    """A float as a decimal, by its shortest text as in Spark; NULL for NaN, infinity and the too large."""
    limit = 10.0 ** (out.precision - out.scale)
    number = pc.cast(value, pa.float64())
    large = pc.or_kleene(pc.invert(pc.is_finite(number)), pc.greater_equal(pc.abs(number), limit))
    number = null_where(large, value)
    if isinstance(number, pa.Scalar):
        return from_float(pa.repeat(number, 1), out)[0] if number.is_valid else null(out)
    text = pc.cast(number, pa.string())
    plain = pc.if_else(pc.match_substring(text, "e"), null(pa.string()), text)
    exact = fit(pc.cast(plain, pa.decimal256(60, 30)), out)
    if plain.null_count == number.null_count:
        return exact
    # Exponents are rare: numbers below 1e-6 or from 1e10 up, which lose nothing by the direct way.
    return pc.coalesce(exact, fit(pc.cast(number, pa.decimal256(76, 36)), out))


def to_float(value: Value, out: pa.DataType) -> Value:
    """A decimal as the nearest float, which Arrow's own cast misses by a bit."""
    if isinstance(value, pa.Scalar):
        return to_float(pa.repeat(value, 1), out)[0]
    whole = _unscaled(value)
    if value.type.precision > 18 or np.abs(whole).max(initial=0) > 2**53:
        return pc.cast(pc.cast(value, pa.string()), out)
    return keep_nulls(array(whole / 10.0**value.type.scale, out), value)


def _unscaled(value: pa.Array) -> Any:
    # The low 64 bits of each: the whole number behind the decimal, if it has at most 18 digits.
    return np.frombuffer(value.buffers()[1], np.int64, 2 * len(value), 16 * value.offset)[::2]
