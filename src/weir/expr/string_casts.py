"""Parse strings as numbers, booleans, dates and timestamps by Spark's rules; invalid text becomes NULL."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.expr.decimals import decimal_from_float, fit
from weir.expr.types import is_float, is_integer
from weir.expr.values import from_numbers, null, null_where

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
DAY = 86_400_000_000


def cast_from_string(text: pa.Array, out: pa.DataType) -> pa.Array:
    """Parse strings as values of type `out`."""
    if out == pa.binary():
        return pc.cast(text, out)
    if is_integer(out):
        return _parse_integer(text, out)
    if is_float(out):
        return _parse_float(text, out)
    if pa.types.is_decimal(out):
        return _parse_decimal(text, out)
    if out == pa.bool_():
        return _parse_boolean(text)
    return _parse_date(text) if pa.types.is_date(out) else _parse_timestamp(text, out)


def _trim(text: pa.Array) -> pa.Array:
    return pc.utf8_trim(text, characters=_SPACE)


def _null_unless(pattern: str, text: pa.Array) -> pa.Array:
    return pc.if_else(pc.match_substring_regex(text, pattern), text, null(pa.string()))


def _parse_integer(text: pa.Array, out: pa.DataType) -> pa.Array:
    """Parse integers; a fraction is dropped, a number out of range is NULL."""
    whole = pc.replace_substring_regex(_null_unless(_INTEGER, _trim(text)), r"\..*$", "")
    digits = pc.replace_substring_regex(whole, r"^([+-]?)$", r"\10")
    wide = pc.cast(pc.utf8_ltrim(digits, characters="+"), pa.decimal128(38, 0))
    limits = np.iinfo(out.to_pandas_dtype())
    low, high = (pa.scalar(int(limit), wide.type) for limit in (limits.min, limits.max))
    return pc.cast(null_where(pc.or_(pc.greater(wide, high), pc.less(wide, low)), wide), out)


def _parse_float(text: pa.Array, out: pa.DataType) -> pa.Array:
    """Parse floats, with an exponent, a type letter, or a name of infinity or NaN."""
    trimmed = _trim(text)
    digits = pc.utf8_trim(_null_unless(_FLOAT, trimmed), characters="dDfF")
    # Parse in the type itself: Java rounds to a float once, not by way of a double.
    parsed = pc.cast(pc.utf8_ltrim(digits, characters="+"), out)
    lower = pc.utf8_lower(trimmed)
    places = pc.index_in(lower, value_set=pa.array(list(_NAMED)))
    return pc.coalesce(parsed, pa.array(list(_NAMED.values()), out).take(places))


def _parse_decimal(text: pa.Array, out: pa.DataType) -> pa.Array:
    """Parse decimals and round them half up; text with an exponent is parsed as a double first."""
    trimmed = _trim(text)
    digits = pc.utf8_ltrim(_null_unless(_DECIMAL, trimmed), characters="+")
    exact = fit(pc.cast(digits, pa.decimal256(76, 37)), out)
    with_exponent = _null_unless(_EXPONENT, trimmed)
    if with_exponent.null_count == len(text):
        return exact
    return pc.coalesce(exact, decimal_from_float(_parse_float(with_exponent, pa.float64()), out))


def _parse_boolean(text: pa.Array) -> pa.Array:
    word = pc.utf8_lower(_trim(text))
    is_true, is_false = (pc.is_in(word, value_set=words) for words in map(pa.array, (_TRUE, _FALSE)))
    return pc.if_else(pc.or_(is_true, is_false), is_true, null(pa.bool_()))


def _match_groups(text: pa.Array, pattern: str) -> tuple[pa.StructArray, Any]:
    groups = pc.extract_regex(_trim(text), pattern)
    return groups, pc.is_valid(groups).to_numpy(zero_copy_only=False)


def _parse_group(groups: pa.StructArray, name: str, default: int) -> Any:
    text = pc.struct_field(groups, name)
    given = pc.if_else(pc.greater(pc.binary_length(text), 0), text, pa.scalar(str(default)))
    return pc.cast(pc.fill_null(given, str(default)), pa.int64()).to_numpy(zero_copy_only=False)


def _parse_days(groups: pa.StructArray) -> tuple[Any, Any]:
    """Return the days since 1970, and a mask of the dates that exist."""
    year, month, day = (_parse_group(groups, *part) for part in (("y", 1970), ("m", 1), ("d", 1)))
    in_year = (month >= 1) & (month <= 12)
    start = (year - 1970).astype("M8[Y]").astype("M8[M]") + (np.where(in_year, month, 1) - 1).astype("m8[M]")
    days = start.astype("M8[D]")
    length = ((start + np.timedelta64(1, "M")).astype("M8[D]") - days).astype(np.int64)
    return days.astype(np.int64) + day - 1, in_year & (day >= 1) & (day <= length)


def _parse_date(text: pa.Array) -> pa.Array:
    """Parse dates `yyyy[-m[-d]]`; a time of day after them is ignored."""
    groups, valid = _match_groups(text, _DATE)
    days, exists = _parse_days(groups)
    return from_numbers(days, pa.date32(), valid & exists)


def _parse_timestamp(text: pa.Array, out: pa.DataType) -> pa.Array:
    """Parse timestamps `yyyy[-m[-d[ h:m[:s[.f]][zone]]]]`, in UTC if no zone is given."""
    groups, valid = _match_groups(text, _TIMESTAMP)
    days, exists = _parse_days(groups)
    hour, minute, second = (_parse_group(groups, name, 0) for name in "HMS")
    exists &= (hour < 24) & (minute < 60) & (second < 60)
    fraction = pc.utf8_slice_codeunits(pc.utf8_rpad(pc.struct_field(groups, "f"), 6, "0"), 0, 6)
    micros = pc.cast(pc.fill_null(fraction, "0"), pa.int64()).to_numpy(zero_copy_only=False)
    clock = (hour * 3600 + minute * 60 + second) * 1_000_000 + micros
    return from_numbers(days * DAY + clock - _parse_zone(groups), out, valid & exists)


def _parse_zone(groups: pa.StructArray) -> Any:
    """Return the offset of the time zone in microseconds."""
    zone = pc.replace_substring_regex(pc.struct_field(groups, "z"), "^(Z|UTC|GMT|)$", "+0:00")
    parts = pc.extract_regex(zone, r"^(?P<sign>[+-])(?P<H>[0-9]{1,2}):(?P<M>[0-9]{2})$")
    minutes = _parse_group(parts, "H", 0) * 60 + _parse_group(parts, "M", 0)
    west = pc.fill_null(pc.equal(pc.struct_field(parts, "sign"), "-"), False).to_numpy(zero_copy_only=False)
    return np.where(west, -minutes, minutes) * 60_000_000
