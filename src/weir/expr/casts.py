"""Cast between scalar types as Spark does without ANSI mode: invalid values become NULL, integers wrap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.expr.decimals import decimal_from_float, decimal_to_float, fit
from weir.expr.types import INTERVAL, TIMESTAMP, TIMESTAMP_NTZ, is_float, is_integer, is_number, is_time
from weir.expr.values import Value, from_numbers, is_null_constant, map_arrays, map_numbers, null, null_where

SECOND = 1_000_000
DAY = 86_400 * SECOND
_SPACE = "".join(map(chr, range(33)))
_INTEGER = r"^[+-]?([0-9]{1,37}(\.[0-9]*)?|\.[0-9]*)$"
_EXPONENT = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+$"
_FLOAT = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?$"
_DECIMAL = r"^[+-]?([0-9]{1,38}\.?[0-9]{0,37}|\.[0-9]{1,37})$"
_NAMED = {"nan": np.nan, "inf": np.inf, "+inf": np.inf, "-inf": -np.inf,
          "infinity": np.inf, "+infinity": np.inf, "-infinity": -np.inf}  # fmt: skip
# Not Arrow arrays, as making one imports pandas, which workers need not.
_TRUE, _FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")
_DATE = r"^(?P<y>[0-9]{4,7})(?:-(?P<m>[0-9]{1,2})(?:-(?P<d>[0-9]{1,2})(?:[ T].*)?)?)?$"
_TIMESTAMP = (
    r"^(?P<y>[0-9]{4,6})(?:-(?P<m>[0-9]{1,2})(?:-(?P<d>[0-9]{1,2})"
    r"(?:[ T](?P<H>[0-9]{1,2}):(?P<M>[0-9]{1,2})(?::(?P<S>[0-9]{1,2})(?:\.(?P<f>[0-9]{0,9}))?)?"
    r" ?(?P<z>Z|UTC|GMT|[+-][0-9]{1,2}:[0-9]{2})?)?)?)?$"
)


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
        return map_arrays(lambda text: _parse(text, out), value)
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
        longest = pc.max(pc.binary_length(text)) if isinstance(text, pa.Array) else pc.binary_length(text)
        has_fraction = (longest.as_py() or 0) > len("2000-01-01 00:00:00")
        # Spark drops trailing zeros of a second's fraction.
        return pc.replace_substring_regex(text, r"\.?0+$", "") if has_fraction else text
    return pc.cast(value, pa.string(), safe=False)


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
        return map_arrays(lambda decimals: decimal_to_float(decimals, out), value)
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


def _parse(text: pa.Array, out: pa.DataType) -> pa.Array:
    """Parse strings by Spark's rules; invalid text becomes NULL."""
    if out == pa.binary():
        return pc.cast(text, out)
    text = pc.utf8_trim(text, characters=_SPACE)
    if is_integer(out):
        return _parse_integer(text, out)
    if is_float(out):
        return _parse_float(text, out)
    if pa.types.is_decimal(out):
        return _parse_decimal(text, out)
    if out == pa.bool_():
        return _parse_boolean(text)
    return _parse_date(text) if pa.types.is_date(out) else _parse_timestamp(text, out)


def _null_unless(pattern: str, text: pa.Array) -> pa.Array:
    return pc.if_else(pc.match_substring_regex(text, pattern), text, null(pa.string()))


def _parse_integer(text: pa.Array, out: pa.DataType) -> pa.Array:
    """Parse integers; a fraction is dropped, a number out of range is NULL."""
    whole = pc.replace_substring_regex(_null_unless(_INTEGER, text), r"\..*$", "")
    digits = pc.replace_substring_regex(whole, r"^([+-]?)$", r"\10")
    wide = pc.cast(pc.utf8_ltrim(digits, characters="+"), pa.decimal128(38, 0))
    limits = np.iinfo(out.to_pandas_dtype())
    low, high = (pa.scalar(int(limit), wide.type) for limit in (limits.min, limits.max))
    return pc.cast(null_where(pc.or_(pc.greater(wide, high), pc.less(wide, low)), wide), out)


def _parse_float(text: pa.Array, out: pa.DataType) -> pa.Array:
    """Parse floats, with an exponent, a type letter, or a name of infinity or NaN."""
    digits = pc.utf8_trim(_null_unless(_FLOAT, text), characters="dDfF")
    # Parse in the type itself: Java rounds to a float once, not by way of a double.
    parsed = pc.cast(pc.utf8_ltrim(digits, characters="+"), out)
    places = pc.index_in(pc.utf8_lower(text), value_set=pa.array(list(_NAMED)))
    return pc.coalesce(parsed, pa.array(list(_NAMED.values()), out).take(places))


def _parse_decimal(text: pa.Array, out: pa.DataType) -> pa.Array:
    """Parse decimals and round them half up; text with an exponent is parsed as a double first."""
    digits = pc.utf8_ltrim(_null_unless(_DECIMAL, text), characters="+")
    exact = fit(pc.cast(digits, pa.decimal256(76, 37)), out)
    with_exponent = _null_unless(_EXPONENT, text)
    if with_exponent.null_count == len(text):
        return exact
    return pc.coalesce(exact, decimal_from_float(_parse_float(with_exponent, pa.float64()), out))


def _parse_boolean(text: pa.Array) -> pa.Array:
    word = pc.utf8_lower(text)
    is_true, is_false = (pc.is_in(word, value_set=words) for words in map(pa.array, (_TRUE, _FALSE)))
    return pc.if_else(pc.or_(is_true, is_false), is_true, null(pa.bool_()))


def _parse_group(groups: pa.StructArray, name: str, default: int) -> Any:
    text = pc.struct_field(groups, name)
    given = pc.if_else(pc.greater(pc.binary_length(text), 0), text, pa.scalar(str(default)))
    return pc.cast(pc.fill_null(given, str(default)), pa.int64()).to_numpy(zero_copy_only=False)


def _parse_days(groups: pa.StructArray) -> tuple[Any, Any]:
    """Return the days since 1970, and a mask of the matches whose date exists."""
    matched = pc.is_valid(groups).to_numpy(zero_copy_only=False)
    year, month, day = (_parse_group(groups, *part) for part in (("y", 1970), ("m", 1), ("d", 1)))
    in_year = (month >= 1) & (month <= 12)
    start = (year - 1970).astype("M8[Y]").astype("M8[M]") + (np.where(in_year, month, 1) - 1).astype("m8[M]")
    days = start.astype("M8[D]")
    length = ((start + np.timedelta64(1, "M")).astype("M8[D]") - days).astype(np.int64)
    return days.astype(np.int64) + day - 1, matched & in_year & (day >= 1) & (day <= length)


def _parse_date(text: pa.Array) -> pa.Array:
    """Parse dates `yyyy[-m[-d]]`; a time of day after them is ignored."""
    days, exists = _parse_days(pc.extract_regex(text, _DATE))
    return from_numbers(days, pa.date32(), exists)


def _parse_timestamp(text: pa.Array, out: pa.DataType) -> pa.Array:
    """Parse timestamps `yyyy[-m[-d[ h:m[:s[.f]][zone]]]]`, in UTC if no zone is given."""
    groups = pc.extract_regex(text, _TIMESTAMP)
    days, exists = _parse_days(groups)
    hour, minute, second = (_parse_group(groups, name, 0) for name in "HMS")
    exists &= (hour < 24) & (minute < 60) & (second < 60)
    fraction = pc.utf8_slice_codeunits(pc.utf8_rpad(pc.struct_field(groups, "f"), 6, "0"), 0, 6)
    micros = pc.cast(pc.fill_null(fraction, "0"), pa.int64()).to_numpy(zero_copy_only=False)
    clock = (hour * 3600 + minute * 60 + second) * 1_000_000 + micros
    return from_numbers(days * DAY + clock - _parse_zone(groups), out, exists)


def _parse_zone(groups: pa.StructArray) -> Any:
    """Return the offset of the time zone in microseconds."""
    zone = pc.replace_substring_regex(pc.struct_field(groups, "z"), "^(Z|UTC|GMT|)$", "+0:00")
    parts = pc.extract_regex(zone, r"^(?P<sign>[+-])(?P<H>[0-9]{1,2}):(?P<M>[0-9]{2})$")
    minutes = _parse_group(parts, "H", 0) * 60 + _parse_group(parts, "M", 0)
    west = pc.fill_null(pc.equal(pc.struct_field(parts, "sign"), "-"), False).to_numpy(zero_copy_only=False)
    return np.where(west, -minutes, minutes) * 60_000_000
