"""Parse and format intervals and sizes as Spark users write them: "10 minutes", "2g"."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from numbers import Integral

from weir.errors import QueryError, unknown_name

_MICROSECONDS = {
    "week": 604_800_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
_SHORT = {
    "w": "week", "d": "day", "h": "hour", "hr": "hour", "min": "minute", "s": "second", "sec": "second",
    "ms": "millisecond", "msec": "millisecond", "milli": "millisecond",
    "us": "microsecond", "µs": "microsecond", "usec": "microsecond", "micro": "microsecond",
}  # fmt: skip
_CALENDAR = ("month", "quarter", "year", "mon", "y", "yr")
_PART = re.compile(r"\s*([+-]?)\s*(\d+(?:\.\d*)?|\.\d+)\s*([^\W\d]+)\s*")
_SIZES = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}
_SIZE = re.compile(r"\s*(\d+)\s*(?:(b)|([kmgtp])(?:i?b)?)?\s*", re.IGNORECASE)


def parse_interval(text: str | timedelta | int) -> int:
    """Convert an interval as Spark writes it, a timedelta, or microseconds to microseconds.

    >>> parse_interval("1 hour 30 minutes"), parse_interval("INTERVAL 5 SECONDS"), parse_interval("250 ms")
    (5400000000, 5000000, 250000)
    """
    if isinstance(text, timedelta):
        return text // timedelta(microseconds=1)
    if isinstance(text, int) and not isinstance(text, bool):
        return text
    if not isinstance(text, str):
        raise QueryError(f"an interval is written like '10 minutes' or given as a timedelta; got {text!r}")
    parts = re.sub(r"^\s*interval\b", "", text, flags=re.IGNORECASE).replace("'", " ").replace('"', " ")
    total, position = Decimal(0), 0
    while (part := _PART.match(parts, position)) is not None:
        sign, amount, unit = part.groups()
        total += Decimal(sign + amount) * _parse_unit(unit, text)
        position = part.end()
    if position == 0 or parts[position:].strip() or total != int(total):
        raise QueryError(
            f"'{text}' is not an interval; expected a number and a unit for each part, like '10 minutes' "
            "or '1 hour 30 minutes', in whole microseconds"
        )
    return int(total)


def _parse_unit(written: str, text: str) -> int:
    word = written.lower()
    singular = word if word in _SHORT else word.removesuffix("s")
    name = _SHORT.get(singular, singular)
    if name in _CALENDAR:
        raise QueryError(
            f"'{text}' has no fixed length, since months and years vary; use weeks, days or smaller units"
        )
    if name not in _MICROSECONDS:
        units = [f"{unit}s" for unit in _MICROSECONDS]
        raise unknown_name("unit", written, units, where=f" in the interval '{text}'")
    return _MICROSECONDS[name]


def format_interval(microseconds: int) -> str:
    """Format microseconds as an interval in words, largest unit first.

    >>> format_interval(5400000000), format_interval(-250000), format_interval(0)
    ('1 hour 30 minutes', '-250 milliseconds', '0 seconds')
    """
    rest, parts = abs(microseconds), []
    for unit, length in list(_MICROSECONDS.items())[1:]:
        count, rest = divmod(rest, length)
        if count:
            parts.append(f"{count} {unit}{'s' * (count != 1)}")
    sign = "-" if microseconds < 0 else ""
    return " ".join(f"{sign}{part}" for part in parts) or "0 seconds"


def parse_size(text: str | int) -> int:
    """Convert a size as Spark writes it to bytes; a number without a unit is in bytes.

    >>> parse_size("2g"), parse_size("512m"), parse_size("64k"), parse_size("100"), parse_size("1kb")
    (2147483648, 536870912, 65536, 100, 1024)
    """
    if isinstance(text, Integral) and not isinstance(text, bool):  # also NumPy's integers
        return int(text)
    match = _SIZE.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        expected = "a whole number and k, m, g, t or p, like '512m' or '2g'"
        raise QueryError(f"{text!r} is not a size; expected {expected}")
    return int(match[1]) * _SIZES[(match[3] or "").lower()]


def format_size(count: int) -> str:
    """Format bytes in the largest unit that keeps the number whole, as `parse_size` reads it.

    >>> format_size(2147483648), format_size(1536), format_size(100)
    ('2g', '1536b', '100b')
    """
    for unit in "ptgmk":
        if count and count % _SIZES[unit] == 0:
            return f"{count // _SIZES[unit]}{unit}"
    return f"{count}b"
