"""Cast between scalar types as Spark does without ANSI mode: invalid values become NULL, integers wrap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.expr.decimals import decimal_from_float, decimal_to_float, fit
from weir.expr.string_casts import cast_from_string
from weir.expr.types import INTERVAL, TIMESTAMP, TIMESTAMP_NTZ, is_float, is_integer, is_number, is_time
from weir.expr.values import Value, is_null_constant, map_arrays, map_numbers, null, null_where

SECOND = 1_000_000
DAY = 86_400 * SECOND


def can_cast(given: pa.DataType, wanted: pa.DataType) -> bool:
    """True if a cast exists; none from float to string, because the text differs between versions of Java."""
    if given == wanted or pa.types.is_null(given):
        return True
    if pa.types.is_string(given):
        return is_number(wanted) or is_time(wanted) or wanted in (pa.bool_(), pa.binary())
    if pa.types.is_string(wanted):
        return not is_float(given) and not pa.types.is_nested(given) and given != INTERVAL
    if is_number(given) or given == pa.bool_():
        to_number = is_number(wanted) or wanted == pa.bool_()
        return to_number or (wanted == TIMESTAMP and not pa.types.is_decimal(given))
    if pa.types.is_timestamp(given):
        return is_time(wanted) or (is_number(wanted) and not pa.types.is_decimal(wanted))
    if pa.types.is_fixed_size_list(given) and pa.types.is_list(wanted):
        return bool(given.value_type == wanted.value_type)
    return is_time(given) and is_time(wanted)


def cast(out: pa.DataType, value: Value) -> Value:
    """Cast the value to type `out`."""
    given = value.type
    if given == out:
        return value
    if pa.types.is_null(given) or is_null_constant(value):
        return null(out) if isinstance(value, pa.Scalar) else pa.nulls(len(value), out)
    if pa.types.is_string(given):
        return map_arrays(lambda text: cast_from_string(text, out), value)
    if pa.types.is_string(out):
        return _cast_to_string(value)
    if is_time(given) or is_time(out):
        return _cast_time(value, out)
    return _cast_number(value, out)


def try_cast(out: pa.DataType, value: Value) -> Value:
    """Cast the value, but to NULL where an integer would wrap, saturate or lose its fraction."""
    if not is_integer(out) or value.type == pa.bool_():
        return cast(out, value)
    if pa.types.is_string(value.type):
        return cast(out, null_where(pc.match_substring(value, "."), value))
    wide = cast(pa.int64(), value)
    if is_float(value.type):
        wide = null_where(pc.invert(pc.less(pc.abs(value), pa.scalar(2.0**63, value.type))), wide)
    limits = np.iinfo(out.to_pandas_dtype())
    outside = pc.or_(pc.greater(wide, int(limits.max)), pc.less(wide, int(limits.min)))
    return pc.cast(null_where(outside, wide), out)


def _cast_to_string(value: Value) -> Value:
    if pa.types.is_timestamp(value.type):
        text = pc.cast(drop_time_zone(value), pa.string())
        # Spark drops trailing zeros of a second's fraction.
        return pc.replace_substring_regex(text, r"\.?0+$", "") if _has_fraction(text) else text
    return pc.cast(value, pa.string(), safe=False)


def _has_fraction(text: Value) -> bool:
    longest = pc.max(pc.binary_length(text)) if isinstance(text, pa.Array) else pc.binary_length(text)
    return bool((longest.as_py() or 0) > len("2000-01-01 00:00:00"))


def drop_time_zone(value: Value) -> Value:
    """Turn UTC timestamps into timestamps without a zone, for which Arrow has nothing to look up."""
    if not pa.types.is_timestamp(value.type) or not value.type.tz:
        return value
    return map_arrays(lambda times: times.view(TIMESTAMP_NTZ), value)


def _cast_number(value: Value, out: pa.DataType) -> Value:
    given = value.type
    if pa.types.is_decimal(out):
        return _cast_to_decimal(value, out)
    if out == pa.bool_():
        return pc.not_equal(value, pa.scalar(0, given))
    if is_float(given) and is_integer(out):
        return map_numbers(out, lambda numbers: _truncate_like_java(numbers, out), value)
    if pa.types.is_decimal(given) and is_integer(out):
        whole = pc.round(value, ndigits=0, round_mode="towards_zero")
        size = pc.abs(pc.cast(whole, pa.decimal256(76, 10), safe=False))
        whole = null_where(pc.greater(size, pa.scalar(2**63 - 1, pa.decimal128(38, 0))), whole)
        return pc.cast(pc.cast(whole, pa.int64(), safe=False), out, safe=False)
    if pa.types.is_decimal(given) and is_float(out):
        return decimal_to_float(value, out)
    return pc.cast(value, out, safe=False)


def _cast_to_decimal(value: Value, out: pa.DataType) -> Value:
    if is_float(value.type):
        return decimal_from_float(value, out)
    if value.type == pa.bool_():
        value = pc.cast(value, pa.int8())
    return fit(pc.cast(value, pa.decimal128(20, 0)) if is_integer(value.type) else value, out)


def _truncate_like_java(numbers: Any, out: pa.DataType) -> Any:
    # Java truncates to int or long, saturates there, turns NaN into 0, and then wraps to narrower types.
    width = np.int64 if out == pa.int64() else np.int32
    low, high = np.iinfo(width).min, np.iinfo(width).max
    wide = np.nan_to_num(np.trunc(numbers.astype(np.float64)), nan=0.0, posinf=1e300, neginf=-1e300)
    inside = np.where((wide < float(high)) & (wide > float(low)), wide, 0.0).astype(width)
    whole = np.where(wide >= float(high), high, np.where(wide <= float(low), low, inside))
    return whole.astype(out.to_pandas_dtype())


def _cast_time(value: Value, out: pa.DataType) -> Value:
    given = value.type
    if pa.types.is_date(given):
        return map_numbers(out, lambda days: days.astype(np.int64) * DAY, value)
    if pa.types.is_timestamp(given) and pa.types.is_date(out):
        return map_numbers(out, lambda micros: np.floor_divide(micros, DAY), value)
    if pa.types.is_timestamp(given) and pa.types.is_timestamp(out):
        return map_numbers(out, lambda micros: micros, value)
    if pa.types.is_timestamp(given):
        divide = np.true_divide if is_float(out) else np.floor_divide
        return map_numbers(out, lambda micros: divide(micros, SECOND).astype(out.to_pandas_dtype()), value)
    if is_float(given):
        return map_numbers(out, _to_microseconds, value)
    return map_numbers(out, lambda seconds: seconds.astype(np.int64) * SECOND, value)


def _to_microseconds(seconds: Any) -> tuple[Any, Any]:
    valid = np.isfinite(seconds)
    micros = np.where(valid, seconds, 0.0).astype(np.float64) * SECOND
    return _truncate_like_java(micros, pa.int64()), valid
