"""Text read as numbers, booleans, dates and timestamps, by Spark's rules; what is none becomes NULL."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.expr.decimals import fit, from_float
from weir.expr.values import array, null, null_where

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


def _trimmed(text: pa.Array) -> pa.Array:
    return pc.utf8_trim(text, characters=_SPACE)


def _matching(text: pa.Array, pattern: str) -> pa.Array:
    return pc.if_else(pc.match_substring_regex(text, pattern), text, null(pa.string()))


def parse_integer(text: pa.Array, out: pa.DataType) -> pa.Array:
    """Whole numbers; a fraction is cut off, a number out of range is NULL."""
    whole = pc.replace_substring_regex(_matching(_trimmed(text), _INTEGER), r"\..*$", "")
    digits = pc.replace_substring_regex(whole, r"^([+-]?)$", r"\10")
    wide = pc.cast(pc.utf8_ltrim(digits, characters="+"), pa.decimal128(38, 0))
    limits = np.iinfo(out.to_pandas_dtype())
    outside = pc.or_(pc.greater(wide, _whole(limits.max)), pc.less(wide, _whole(limits.min)))
    return pc.cast(null_where(outside, wide), out)


def _whole(number: int) -> pa.Scalar:
    return pa.scalar(int(number), pa.decimal128(38, 0))


def parse_float(text: pa.Array, out: pa.DataType) -> pa.Array:
    """Floating-point numbers, with an exponent, a type letter, or one of the names of infinity and NaN."""
    trimmed = _trimmed(text)
    digits = pc.utf8_trim(_matching(trimmed, _FLOAT), characters="dDfF")
    # Java rounds to the float at once, as Arrow does when it parses in the type itself.
    parsed = pc.cast(pc.utf8_ltrim(digits, characters="+"), out)
    lower = pc.utf8_lower(trimmed)
    places = pc.index_in(lower, value_set=pa.array(list(_NAMED)))
    return pc.coalesce(parsed, pa.array(list(_NAMED.values()), out).take(places))


def parse_decimal(text: pa.Array, out: pa.DataType) -> pa.Array:
    """Decimals, rounded half up; with an exponent they go by way of a double."""
    trimmed = _trimmed(text)
    digits = pc.utf8_ltrim(_matching(trimmed, _DECIMAL), characters="+")
    exact = fit(pc.cast(digits, pa.decimal256(76, 37)), out)
    with_exponent = _matching(trimmed, _EXPONENT)
    if with_exponent.null_count == len(text):
        return exact
    return pc.coalesce(exact, from_float(parse_float(with_exponent, pa.float64()), out))


def parse_boolean(text: pa.Array) -> pa.Array:
    """The words for true and false."""
    word = pc.utf8_lower(_trimmed(text))
    known = pc.or_(pc.is_in(word, value_set=pa.array(_TRUE)), pc.is_in(word, value_set=pa.array(_FALSE)))
    return pc.if_else(known, pc.is_in(word, value_set=pa.array(_TRUE)), null(pa.bool_()))


def _parts(text: pa.Array, pattern: str) -> tuple[pa.StructArray, Any]:
    found = pc.extract_regex(_trimmed(text), pattern)
    return found, pc.is_valid(found).to_numpy(zero_copy_only=False)


def _number(found: pa.StructArray, part: str, default: int) -> Any:
    text = pc.struct_field(found, part)
    given = pc.if_else(pc.greater(pc.binary_length(text), 0), text, pa.scalar(str(default)))
    return pc.cast(pc.fill_null(given, str(default)), pa.int64()).to_numpy(zero_copy_only=False)


def _days(found: pa.StructArray) -> tuple[Any, Any]:
    year, month, day = _number(found, "y", 1970), _number(found, "m", 1), _number(found, "d", 1)
    in_year = (month >= 1) & (month <= 12)
    start = (year - 1970).astype("M8[Y]").astype("M8[M]") + (np.where(in_year, month, 1) - 1).astype("m8[M]")
    days = start.astype("M8[D]")
    length = ((start + np.timedelta64(1, "M")).astype("M8[D]") - days).astype(np.int64)
    return days.astype(np.int64) + day - 1, in_year & (day >= 1) & (day <= length)


def parse_date(text: pa.Array) -> pa.Array:
    """Dates `yyyy[-m[-d]]`; a time of day behind is ignored."""
    found, valid = _parts(text, _DATE)
    days, exists = _days(found)
    return array(days, pa.date32(), valid & exists)


def parse_timestamp(text: pa.Array, out: pa.DataType) -> pa.Array:
    """Timestamps `yyyy[-m[-d[ h:m[:s[.f]][zone]]]]`, in UTC if no zone is given."""
    found, valid = _parts(text, _TIMESTAMP)
    days, exists = _days(found)
    hour, minute, second = (_number(found, part, 0) for part in "HMS")
    exists &= (hour < 24) & (minute < 60) & (second < 60)
    fraction = pc.utf8_slice_codeunits(pc.utf8_rpad(pc.struct_field(found, "f"), 6, "0"), 0, 6)
    micros = pc.cast(pc.fill_null(fraction, "0"), pa.int64()).to_numpy(zero_copy_only=False)
    clock = (hour * 3600 + minute * 60 + second) * 1_000_000 + micros
    return array(days * DAY + clock - _zone(found), out, valid & exists)


def _zone(found: pa.StructArray) -> Any:
    zone = pc.replace_substring_regex(pc.struct_field(found, "z"), "^(Z|UTC|GMT|)$", "+0:00")
    parts = pc.extract_regex(zone, r"^(?P<sign>[+-])(?P<H>[0-9]{1,2}):(?P<M>[0-9]{2})$")
    minutes = _number(parts, "H", 0) * 60 + _number(parts, "M", 0)
    west = pc.fill_null(pc.equal(pc.struct_field(parts, "sign"), "-"), False).to_numpy(zero_copy_only=False)
    return np.where(west, -minutes, minutes) * 60_000_000
