"""Cast between scalar types as Spark does: `cast` without ANSI mode, where integers wrap, `try_cast` with it.

Both return NULL for values that have no counterpart in the other type; in ANSI mode that NULL is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.expr.decimals import decimal_from_float, decimal_to_float, fit, low_words, truncate
from weir.expr.nodes import Expr
from weir.expr.parse import exact_integers, parse
from weir.expr.time_text import format_times
from weir.expr.type_rules import Function, Signature
from weir.expr.types import (
    DATE,
    INTEGER_DIGITS,
    INTERVAL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    is_float,
    is_integer,
    is_number,
    is_time,
)
from weir.expr.values import (
    Failing,
    Value,
    from_numbers,
    is_null_constant,
    keep_nulls,
    map_arrays,
    map_numbers,
    null,
)
from weir.expr.zones import SECOND, find_zone

DAY = 86_400 * SECOND
_INT64 = np.iinfo(np.int64)
# Days whose first microsecond is a timestamp.
_MOST_DAYS = _INT64.max // DAY
# More than the offset of any zone.
_MOST_SHIFT = 2 * DAY


def can_cast(given: pa.DataType, wanted: pa.DataType) -> bool:
    """True if a cast exists; none from float to string, because the text differs between versions of Java."""
    if given == wanted or pa.types.is_null(given):
        return True
    if pa.types.is_string(given):
        return is_number(wanted) or is_time(wanted) or wanted in (pa.bool_(), pa.binary())
    if pa.types.is_string(wanted):
        return not is_float(given) and not pa.types.is_nested(given) and given != INTERVAL
    if is_number(given):
        return (
            is_number(wanted)
            or wanted == pa.bool_()
            or (wanted == TIMESTAMP and not pa.types.is_decimal(given))
        )
    if given == pa.bool_():
        return is_number(wanted)
    if given == TIMESTAMP:
        return is_time(wanted) or (is_number(wanted) and not pa.types.is_decimal(wanted))
    if pa.types.is_fixed_size_list(given) and pa.types.is_list(wanted):
        return bool(given.value_type == wanted.value_type)
    return is_time(given) and is_time(wanted)


def cast(out: pa.DataType, value: Value, zone: str | None = None, strict: bool = False) -> Value:
    """Cast the value to type `out`; local times are those of `zone`, None being UTC."""
    given = value.type
    if given == out:
        return value
    if pa.types.is_null(given) or is_null_constant(value):
        return null(out) if isinstance(value, pa.Scalar) else pa.nulls(len(value), out)
    if pa.types.is_string(given):
        if strict and is_integer(out):
            value = exact_integers(value)
        return map_arrays(lambda text: parse(text, out, zone), value)
    if pa.types.is_string(out):
        return map_arrays(lambda values: _cast_to_string(values, zone, strict), value)
    if is_time(given) or is_time(out):
        return _cast_time(value, out, zone, strict)
    return _cast_number(value, out, strict)


def try_cast(out: pa.DataType, value: Value, zone: str | None = None) -> Value:
    """Cast the value, but to NULL where an integer would wrap, saturate or lose its fraction."""
    return cast(out, value, zone, strict=True)


def _cast_strictly(out: pa.DataType, value: Value, zone: str | None = None) -> Value | Failing:
    """Cast as `try_cast`; NaN and infinity are NULL as decimals, in ANSI mode too."""
    result = try_cast(out, value, zone)
    if not pa.types.is_decimal(out) or not is_float(value.type) or isinstance(value, pa.Scalar):
        return result
    is_large = pc.and_kleene(pc.is_null(result), pc.is_finite(value))
    return Failing(result, pc.fill_null(is_large, False).to_numpy(zero_copy_only=False))


def _cast_to_string(values: pa.Array, zone: str | None, strict: bool) -> pa.Array:
    if is_time(values.type):
        return format_times(values, zone)
    if pa.types.is_decimal(values.type):
        return _format_decimals(values, strict)
    return pc.cast(values, STRING, safe=False)


def _format_decimals(values: pa.Array, plain: bool) -> pa.Array:
    """Format decimals, with an exponent where Java's BigDecimal has one unless `plain`."""
    if values.type.scale <= 6:
        return pc.cast(values, STRING)
    # The text of a whole number, padded with zeros, cut before the digits of the fraction.
    scale = values.type.scale
    text = pc.cast(values, STRING)
    if not plain:
        return pc.replace_substring_regex(text, r"^(-?[0-9])\.0E", r"\1E")
    whole = pc.cast(_unscaled(values), STRING)
    sign = pc.if_else(pc.starts_with(whole, "-"), "-", "")
    digits = pc.utf8_lpad(pc.utf8_ltrim(whole, characters="-"), scale + 1, "0")
    before = pc.utf8_slice_codeunits(digits, 0, -scale)
    return pc.binary_join_element_wise(sign, before, ".", pc.utf8_slice_codeunits(digits, -scale), "")


def _unscaled(values: pa.Array) -> pa.Array:
    validity, data = values.buffers()
    type = pa.decimal128(38, 0)
    return pa.Array.from_buffers(type, len(values), [validity, data], offset=values.offset)


def _cast_number(value: Value, out: pa.DataType, strict: bool) -> Value:
    given = value.type
    if pa.types.is_decimal(out):
        return _cast_to_decimal(value, out)
    if out == pa.bool_():
        return pc.not_equal(value, pa.scalar(0, given))
    if is_integer(out):
        return _cast_to_integer(value, out, strict)
    if pa.types.is_decimal(given) and is_float(out):
        return map_arrays(lambda decimals: decimal_to_float(decimals, out), value)
    return pc.cast(value, out, safe=False)


def _cast_to_decimal(value: Value, out: pa.DataType) -> Value:
    if is_float(value.type):
        return decimal_from_float(value, out)
    if value.type == pa.bool_():
        value = pc.cast(value, pa.int8())
    return fit(pc.cast(value, pa.decimal128(20, 0)) if is_integer(value.type) else value, out)


def _cast_to_integer(value: Value, out: pa.DataType, strict: bool) -> Value:
    given = value.type
    if pa.types.is_decimal(given):
        return map_arrays(lambda decimals: _whole_decimals(decimals, out, strict), value)
    if is_float(given):
        kernel = _truncate_in_range if strict else _truncate_like_java
        return map_numbers(out, lambda numbers: kernel(numbers, out), value)
    if not strict or not is_integer(given) or given.bit_width <= out.bit_width:
        return pc.cast(value, out, safe=False)
    return map_numbers(out, lambda numbers: (numbers.astype(numpy_of(out)), _fits(numbers, out)), value)


def numpy_of(type: pa.DataType) -> Any:
    """Return NumPy's type of an integer type."""
    return np.dtype(type.to_pandas_dtype())


def _fits(numbers: Any, out: pa.DataType) -> Any:
    limits = np.iinfo(numpy_of(out))
    return (numbers >= limits.min) & (numbers <= limits.max)


def _whole_decimals(decimals: pa.Array, out: pa.DataType, strict: bool) -> pa.Array:
    """Truncate decimals; without ANSI mode only the low bits of what is too large count, as in Java."""
    whole = truncate(decimals)
    numbers = low_words(whole).astype(numpy_of(out))
    if strict:
        limits = np.iinfo(numpy_of(out))
        low, high = (pa.scalar(int(limit), whole.type) for limit in (limits.min, limits.max))
        inside = pc.and_(pc.greater_equal(whole, low), pc.less_equal(whole, high))
        return pc.if_else(inside, keep_nulls(from_numbers(numbers, out), decimals), null(out))
    return keep_nulls(from_numbers(numbers, out), decimals)


def _truncate_like_java(numbers: Any, out: pa.DataType) -> Any:
    # Java truncates to int or long, saturates there, turns NaN into 0, and then wraps to narrower types.
    width = np.int64 if out == pa.int64() else np.int32
    low, high = np.iinfo(width).min, np.iinfo(width).max
    wide = np.nan_to_num(np.trunc(numbers.astype(np.float64)), nan=0.0, posinf=1e300, neginf=-1e300)
    inside = np.where((wide < float(high)) & (wide > float(low)), wide, 0.0).astype(width)
    whole = np.where(wide >= float(high), high, np.where(wide <= float(low), low, inside))
    return whole.astype(out.to_pandas_dtype())


def _truncate_in_range(numbers: Any, out: pa.DataType) -> tuple[Any, Any]:
    limits = np.iinfo(numpy_of(out))
    wide = numbers.astype(np.float64)
    # The largest bigint is no double; the next one is the first that is too large.
    high = float(limits.max) if out == pa.int64() else float(limits.max) + 1
    whole = np.trunc(wide) if out != pa.int64() else wide
    valid = (whole >= float(limits.min)) & (whole < high)
    if out == pa.int64():
        valid |= wide == high  # Spark compares with the largest bigint as a double
    inside = np.where(valid & (whole < high), whole, 0.0)
    return np.where(whole >= high, limits.max, inside.astype(numpy_of(out))), valid


def _cast_time(value: Value, out: pa.DataType, zone: str | None, strict: bool) -> Value:
    given, region = value.type, find_zone(zone or "UTC")
    if given == DATE:
        return map_numbers(out, lambda days: start_days(days, region, out), value)
    if given == TIMESTAMP and is_number(out):
        return _seconds_of(value, out, strict)
    if not is_time(given):
        return map_numbers(out, partial(_from_seconds, strict), value)
    if out == DATE:
        local = region if given == TIMESTAMP else find_zone("UTC")
        return map_numbers(out, lambda micros: local.split_local(micros)[0], value)
    convert = region.to_local if given == TIMESTAMP else region.from_local
    return map_numbers(out, lambda micros: convert_in_range(convert, micros), value)


def convert_in_range(convert: Callable[[Any], Any], micros: Any) -> tuple[Any, Any]:
    """Convert between instants and local times, and tell which do not overflow."""
    converted = convert(micros)
    return converted, np.abs(converted.astype(np.float64) - micros) < float(_MOST_SHIFT)


def start_days(days: Any, region: Any, out: pa.DataType) -> tuple[Any, Any]:
    """Return the first microsecond of dates, and which of them a timestamp can hold."""
    valid = np.abs(days.astype(np.int64)) <= _MOST_DAYS
    micros = np.where(valid, days, 0).astype(np.int64) * DAY
    if out != TIMESTAMP:
        return micros, valid
    instants, is_instant = convert_in_range(region.from_local, micros)
    return instants, valid & is_instant


def _seconds_of(value: Value, out: pa.DataType, strict: bool) -> Value:
    if is_float(out):
        return map_numbers(
            out, lambda micros: np.true_divide(micros, SECOND).astype(out.to_pandas_dtype()), value
        )
    # Seconds that do not fit are NULL without ANSI mode too.
    seconds = map_numbers(pa.int64(), lambda micros: np.floor_divide(micros, SECOND), value)
    return seconds if out == pa.int64() else cast(out, seconds, strict=True)


def _from_seconds(strict: bool, seconds: Any) -> tuple[Any, Any]:
    """Return microseconds; seconds beyond the range saturate as in Java, NaN and infinity are invalid."""
    if seconds.dtype.kind == "f":
        valid = np.isfinite(seconds)
        micros = np.where(valid, seconds, 0.0).astype(np.float64) * SECOND
        if strict:
            valid &= np.abs(micros) <= float(_INT64.max)
        return _truncate_like_java(micros, pa.int64()), valid
    wide, most = seconds.astype(np.int64), _INT64.max // SECOND
    micros = np.clip(wide, -most, most) * SECOND
    return np.where(wide > most, _INT64.max, np.where(wide < -most, _INT64.min, micros)), np.bool_(True)


def _can_fail(args: Sequence[Expr], out: pa.DataType) -> bool:
    """True if a value may have no counterpart in the other type, or another one in ANSI mode."""
    given = args[0].type
    if given == out or pa.types.is_null(given):
        return False
    if pa.types.is_string(given):
        return bool(out != pa.binary())
    if pa.types.is_string(out):
        return bool(pa.types.is_decimal(given) and given.scale > 6)
    if is_integer(out):
        return not (given == pa.bool_() or (is_integer(given) and given.bit_width <= out.bit_width))
    if pa.types.is_decimal(out):
        return not _has_room(given, out)
    return bool(out == TIMESTAMP and is_float(given))


def _has_room(given: pa.DataType, out: pa.DataType) -> bool:
    if given == pa.bool_() or is_float(given):
        return bool(given == pa.bool_() and out.precision > out.scale)
    whole = INTEGER_DIGITS[given] if is_integer(given) else given.precision - given.scale
    carries = not is_integer(given) and given.scale > out.scale
    return bool(out.precision - out.scale >= whole + carries)


def _out_of_range(args: Sequence[Expr], out: pa.DataType) -> bool:
    """True for casts between times, which Spark never lets overflow."""
    return is_time(args[0].type) and bool(pa.types.is_timestamp(out))


def _is_zoned(args: Sequence[Expr], out: pa.DataType) -> bool:
    given = args[0].type
    is_local = given in (DATE, TIMESTAMP_NTZ, STRING), out in (DATE, TIMESTAMP_NTZ, STRING)
    return (is_local[0] and out == TIMESTAMP) or (given == TIMESTAMP and is_local[1])


def _no_rule(args: Sequence[Expr]) -> Signature:
    raise NotImplementedError("casts are built by weir.expr.build.cast")


CASTS: dict[str, Function] = {
    "cast": Function(_no_rule, cast, _cast_strictly, _can_fail, _out_of_range, _is_zoned),
    "try_cast": Function(_no_rule, try_cast, is_zoned=_is_zoned),
}
