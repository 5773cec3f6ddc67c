"""Parse text as numbers, booleans, dates and timestamps by Spark's rules; invalid text becomes NULL."""

from __future__ import annotations

from functools import cache
from typing import Any
from unicodedata import decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import QueryError
from weir.expr.decimals import decimal_from_float, fit
from weir.expr.types import TIMESTAMP, is_float, is_integer
from weir.expr.values import from_numbers, null, null_where
from weir.expr.zones import SECOND, Zone, find_zone

DAY = 86_400 * SECOND
# What Java's trim removes, and what Spark removes before it parses anything but decimals and floats.
_SPACE = "".join(map(chr, range(33)))
_SPACE_OR_CONTROL = _SPACE + "\x7f"
_INTEGER = r"^[+-]?([0-9]{1,37}(\.[0-9]*)?|\.[0-9]*)$"
_EXPONENT = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+$"
_FLOAT = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?$"
_DECIMAL = r"^[+-]?([0-9]{1,38}\.?[0-9]{0,37}|\.[0-9]{1,37})$"
_NAMED = {"nan": np.nan, "inf": np.inf, "+inf": np.inf, "-inf": -np.inf,
          "infinity": np.inf, "+infinity": np.inf, "-infinity": -np.inf}  # fmt: skip
# Not Arrow arrays, as making one imports pandas, which workers need not.
_TRUE, _FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")
_DATE = r"(?s)^(?P<y>[+-]?[0-9]{4,7})(?:-(?P<m>[0-9]{1,2})(?:-(?P<d>[0-9]{1,2})(?:[ T].*)?)?)?$"
_TIMESTAMP = (
    r"(?s)^(?P<y>[+-]?[0-9]{4,6})(?:-(?P<m>[0-9]{1,2})(?:-(?P<d>[0-9]{1,2})"
    r"(?:[ T](?P<H>[0-9]{1,2})(?::(?P<M>[0-9]{1,2})"
    r"(?::(?P<S>[0-9]{1,2})(?:\.(?P<f>[0-9]*))?(?P<z>[^0-9.].*)?)?)?)?)?)?$"
)
# The most days of a date, and microseconds of a timestamp.
_MOST_DAYS, _MOST_MICROS = 2**31 - 1, 2**63 - 1


def parse(text: pa.Array, out: pa.DataType, zone: str | None = None) -> pa.Array:
    """Parse text; a timestamp that names no time zone is a local time of `zone` (None: UTC)."""
    if out == pa.binary():
        return pc.cast(text, out)
    if is_float(out) or pa.types.is_decimal(out):
        text = pc.utf8_trim(text, characters=_SPACE)
        return _parse_float(text, out) if is_float(out) else _parse_decimal(text, out)
    text = pc.utf8_trim(text, characters=_SPACE_OR_CONTROL)
    if is_integer(out):
        return _parse_integer(text, out)
    if out == pa.bool_():
        return _parse_boolean(text)
    return _parse_date(text) if pa.types.is_date(out) else _parse_timestamp(text, out, zone)


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
    text = _to_ascii_digits(text)
    digits = pc.utf8_ltrim(_null_unless(_DECIMAL, text), characters="+")
    exact = fit(pc.cast(digits, pa.decimal256(76, 37)), out)
    with_exponent = _null_unless(_EXPONENT, text)
    if with_exponent.null_count == len(text):
        return exact
    return pc.coalesce(exact, decimal_from_float(_parse_float(with_exponent, pa.float64()), out))


def _to_ascii_digits(text: pa.Array) -> pa.Array:
    """Replace the digits of other scripts, which Java's decimals have and its integers do not."""
    if pc.all(pc.string_is_ascii(text)).as_py() is not False:
        return text
    return pa.array(
        [each if each is None else each.translate(_digits()) for each in text.to_pylist()], text.type
    )


@cache
def _digits() -> dict[int, str]:
    others = (code for code in range(0x80, 0x10000) if chr(code).isdecimal())
    return {code: str(decimal(chr(code))) for code in others}


def _parse_boolean(text: pa.Array) -> pa.Array:
    word = pc.utf8_lower(text)
    is_true, is_false = (pc.is_in(word, value_set=words) for words in map(pa.array, (_TRUE, _FALSE)))
    return pc.if_else(pc.or_(is_true, is_false), is_true, null(pa.bool_()))


def _parse_group(groups: pa.StructArray, name: str, default: int) -> Any:
    text = pc.utf8_ltrim(pc.struct_field(groups, name), characters="+")
    given = pc.if_else(pc.greater(pc.binary_length(text), 0), text, pa.scalar(str(default)))
    return pc.cast(pc.fill_null(given, str(default)), pa.int64()).to_numpy(zero_copy_only=False)


def _parse_days(groups: pa.StructArray) -> tuple[Any, Any]:
    """Return the days since 1970, and a mask of the matches whose date exists."""
    matched = pc.is_valid(groups).to_numpy(zero_copy_only=False)
    year, month, day = (_parse_group(groups, *part) for part in (("y", 1970), ("m", 1), ("d", 1)))
    days, exists = days_of_dates(year, month, day)
    return days, matched & exists


def days_of_dates(year: Any, month: Any, day: Any) -> tuple[Any, Any]:
    """Return the days since 1970 of dates, and which of the dates exist."""
    in_year = (month >= 1) & (month <= 12)
    start = (year - 1970).astype("M8[Y]").astype("M8[M]") + (np.where(in_year, month, 1) - 1).astype("m8[M]")
    days = start.astype("M8[D]")
    length = ((start + np.timedelta64(1, "M")).astype("M8[D]") - days).astype(np.int64)
    number = days.astype(np.int64) + day - 1
    return number, in_year & (day >= 1) & (day <= length) & (np.abs(number) <= _MOST_DAYS)


def _parse_date(text: pa.Array) -> pa.Array:
    """Parse dates `yyyy[-m[-d]]`; a time of day after them is ignored."""
    days, exists = _parse_days(pc.extract_regex(text, _DATE))
    return from_numbers(days, pa.date32(), exists)


def _parse_timestamp(text: pa.Array, out: pa.DataType, zone: str | None) -> pa.Array:
    """Parse timestamps `yyyy[-m[-d[ h[:m[:s[.f][zone]]]]]]`; those without a zone's type ignore zones."""
    groups = pc.extract_regex(text, _TIMESTAMP)
    days, exists = _parse_days(groups)
    hour, minute, second = (_parse_group(groups, name, 0) for name in "HMS")
    exists &= (hour < 24) & (minute < 60) & (second < 60)
    fraction = pc.utf8_slice_codeunits(pc.utf8_rpad(pc.struct_field(groups, "f"), 6, "0"), 0, 6)
    micros = pc.cast(pc.fill_null(fraction, "0"), pa.int64()).to_numpy(zero_copy_only=False)
    clock = (hour * 3600 + minute * 60 + second) * SECOND + micros
    exists &= np.abs(days * float(DAY) + clock) < float(_MOST_MICROS)
    local = np.where(exists, days, 0) * DAY + clock
    instants, is_zone = _apply_zones(local, pc.struct_field(groups, "z"), zone)
    return from_numbers(instants if out == TIMESTAMP else local, out, exists & is_zone)


def _apply_zones(local: Any, names: pa.Array, default: str | None) -> tuple[Any, Any]:
    """Return the instants of local times, and for which of them the named zone exists."""
    trimmed = pc.fill_null(pc.utf8_trim(names, characters=_SPACE), "")
    distinct = pc.unique(trimmed)
    zones = [_find_zone(name, default) for name in distinct.to_pylist()]
    if len(zones) == 1 and zones[0] is not None:
        return zones[0].from_local(local), np.ones(len(local), np.bool_)
    instants, exists = local.copy(), np.ones(len(local), np.bool_)
    number = pc.index_in(trimmed, value_set=distinct).to_numpy(zero_copy_only=False)
    for i, zone in enumerate(zones):
        rows = number == i
        if zone is None:
            exists[rows] = False
        else:
            instants[rows] = zone.from_local(local[rows])
    return instants, exists


def _find_zone(name: str, default: str | None) -> Zone | None:
    try:
        return find_zone(name or default or "UTC")
    except QueryError:
        return None


def exact_integers(text: pa.Array) -> pa.Array:
    """Return NULL for text with a fraction, which ANSI mode does not take for a whole number."""
    return null_where(pc.match_substring(text, "."), text)
