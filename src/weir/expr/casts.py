"""Casts between scalar types; what cannot be converted becomes NULL, whole numbers wrap, as in Spark."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as is_a

from weir.expr.decimals import fit, from_float, to_float
from weir.expr.parsing import (
    parse_boolean,
    parse_date,
    parse_decimal,
    parse_float,
    parse_integer,
    parse_timestamp,
)
from weir.expr.types import INTEGER_DIGITS, INTERVAL, TIMESTAMP, is_float, is_integer, is_number, is_time
from weir.expr.values import Value, elementwise, null, null_where

SECOND = 1_000_000
DAY = 86_400 * SECOND


def can_cast(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a cast exists; text of a float does not, because it differs between versions of Java."""
    if given == wanted or is_a.is_null(given):
        return True
    if is_a.is_string(given):
        return is_number(wanted) or is_time(wanted) or wanted in (pa.bool_(), pa.binary())
    if is_a.is_string(wanted):
        return not is_float(given) and not is_a.is_nested(given) and given != INTERVAL
    if is_number(given) or given == pa.bool_():
        return (
            is_number(wanted) or wanted == pa.bool_() or (wanted == TIMESTAMP and not is_a.is_decimal(given))
        )
    if is_a.is_timestamp(given):
        return is_time(wanted) or (is_number(wanted) and not is_a.is_decimal(wanted))
    return (is_time(given) and is_time(wanted)) or _same_items(given, wanted)


def _same_items(given: pa.DataType, wanted: pa.DataType) -> bool:
    if not is_a.is_fixed_size_list(given) or not is_a.is_list(wanted):
        return False
    return bool(given.value_type == wanted.value_type)


def cast(out: pa.DataType, value: Value) -> Value:
    """The value in another type."""
    given = value.type
    if given == out:
        return value
    if is_a.is_null(given) or (isinstance(value, pa.Scalar) and not value.is_valid):
        return null(out) if isinstance(value, pa.Scalar) else pa.nulls(len(value), out)
    if is_a.is_string(given):
        return _from_text(value, out)
    if is_a.is_string(out):
        return _to_text(value)
    if is_time(given) or is_time(out):
        return _with_time(value, out)
    return _between_numbers(value, out)


def try_cast(out: pa.DataType, value: Value) -> Value:
    """As `cast`, but NULL for a whole number that would wrap, stop at an end or lose its fraction."""
    if not is_integer(out) or value.type == pa.bool_():
        return cast(out, value)
    if is_a.is_string(value.type):
        return cast(out, null_where(pc.match_substring(value, "."), value))
    wide = cast(pa.int64(), value)
    if is_float(value.type):
        wide = null_where(pc.invert(pc.less(pc.abs(value), pa.scalar(2.0**63, value.type))), wide)
    limits = np.iinfo(out.to_pandas_dtype())
    outside = pc.or_(pc.greater(wide, int(limits.max)), pc.less(wide, int(limits.min)))
    return pc.cast(null_where(outside, wide), out)


def _from_text(value: Value, out: pa.DataType) -> Value:
    if isinstance(value, pa.Scalar):
        return _from_text(pa.repeat(value, 1), out)[0]
    if out == pa.binary():
        return pc.cast(value, out)
    if is_integer(out):
        return parse_integer(value, out)
    if is_float(out):
        return parse_float(value, out)
    if is_a.is_decimal(out):
        return parse_decimal(value, out)
    if out == pa.bool_():
        return parse_boolean(value)
    return parse_date(value) if is_a.is_date(out) else parse_timestamp(value, out)


def _to_text(value: Value) -> Value:
    if is_a.is_timestamp(value.type):
        text = pc.cast(_naive(value), pa.string())
        # Spark writes only as much of a second's fraction as there is.
        return pc.replace_substring_regex(text, r"\.?0+$", "") if _has_fraction(text) else text
    return pc.cast(value, pa.string(), safe=False)


def _has_fraction(text: Value) -> bool:
    longest = pc.max(pc.binary_length(text)) if isinstance(text, pa.Array) else pc.binary_length(text)
    return bool((longest.as_py() or 0) > len("2000-01-01 00:00:00"))


def _naive(value: Value) -> Value:
    return pc.cast(value, pa.int64()).cast(pa.timestamp("us")) if value.type.tz else value


def _between_numbers(value: Value, out: pa.DataType) -> Value:
    given = value.type
    if is_a.is_decimal(out):
        return _to_decimal(value, out)
    if out == pa.bool_():
        return pc.not_equal(value, pa.scalar(0, given))
    if is_float(given) and is_integer(out):
        return elementwise(out, lambda numbers: _java_integer(numbers, out), value)
    if is_a.is_decimal(given) and is_integer(out):
        whole = pc.round(value, ndigits=0, round_mode="towards_zero")
        limit = pa.scalar(2**63 - 1, pa.decimal128(38, 0))
        whole = null_where(
            pc.greater(pc.abs(pc.cast(whole, pa.decimal256(76, 10), safe=False)), limit), whole
        )
        return pc.cast(pc.cast(whole, pa.int64(), safe=False), out, safe=False)
    if is_a.is_decimal(given) and is_float(out):
        return to_float(value, out)
    return pc.cast(value, out, safe=False)


def _to_decimal(value: Value, out: pa.DataType) -> Value:
    given = value.type
    if is_float(given):
        return from_float(value, out)
    if given == pa.bool_():
        value, given = pc.cast(value, pa.int8()), pa.int8()
    if is_integer(given):
        value = pc.cast(value, pa.decimal128(max(19, INTEGER_DIGITS[given]), 0))
    return fit(value, out)


def _java_integer(numbers: Any, out: pa.DataType) -> Any:
    # Java cuts the fraction off, stops at the ends of the range and makes 0 of NaN; narrower types then wrap.
    width = np.int64 if out == pa.int64() else np.int32
    low, high = np.iinfo(width).min, np.iinfo(width).max
    wide = np.nan_to_num(np.trunc(numbers.astype(np.float64)), nan=0.0, posinf=1e300, neginf=-1e300)
    inside = np.where((wide < float(high)) & (wide > float(low)), wide, 0.0).astype(width)
    whole = np.where(wide >= float(high), high, np.where(wide <= float(low), low, inside))
    return whole.astype(out.to_pandas_dtype())


def _with_time(value: Value, out: pa.DataType) -> Value:
    given = value.type
    if is_a.is_date(given):
        return elementwise(out, lambda days: days.astype(np.int64) * DAY, value)
    if is_a.is_timestamp(given) and is_a.is_date(out):
        return elementwise(out, lambda micros: np.floor_divide(micros, DAY), value)
    if is_a.is_timestamp(given) and is_a.is_timestamp(out):
        return elementwise(out, lambda micros: micros, value)
    if is_a.is_timestamp(given):
        return _from_seconds(value, out)
    if is_float(given):
        return elementwise(out, _micros, value)
    return elementwise(out, lambda seconds: seconds.astype(np.int64) * SECOND, value)


def _from_seconds(value: Value, out: pa.DataType) -> Value:
    if is_float(out):
        return elementwise(out, lambda micros: micros / SECOND, value)
    return elementwise(
        out, lambda micros: np.floor_divide(micros, SECOND).astype(out.to_pandas_dtype()), value
    )


def _micros(seconds: Any) -> tuple[Any, Any]:
    valid = np.isfinite(seconds)
    return _java_integer(np.where(valid, seconds, 0.0).astype(np.float64) * SECOND, pa.int64()), valid
