"""The columns of the streams that are fuzzed: one of each type, full of values at which things go wrong."""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa

SCHEMA = pa.schema({
    "t": pa.int8(), "k": pa.int16(), "i": pa.int32(), "l": pa.int64(), "f": pa.float32(), "x": pa.float64(),
    "m": pa.decimal128(10, 2), "w": pa.decimal128(38, 0), "q": pa.decimal128(38, 10), "s": pa.string(),
    "n": pa.string(), "ok": pa.bool_(), "d": pa.date32(), "ts": pa.timestamp("us", "UTC"),
    "u": pa.timestamp("us"), "z": pa.binary(), "v": pa.list_(pa.float64()),
})  # fmt: skip

_NAN, _INF = math.nan, math.inf
_TEXTS = ["", "a", "abc", "ABC", "naïve", "straße", "ΟΔΟΣ", "日本語", " a b ", "a%b", "a_c", "a\nb", "\\",
          "x1",
          "😀a", "aab", "İi", "\u0000", "e\u0301", "'", '"']  # fmt: skip
_NUMBERS = ["12", " 7 ", "-3", "+5", "3.99", "-0.5", "1e3", ".5", "5.", "abc", "", "NaN", "-Infinity",
            "inf", "1d",
            "99999999999", "true", "no", "T", "9223372036854775808", "128", "-129", "0x1F", "1 2", "1e-3",
            "1e400",
            "2020-02-29", "2021-02-29", "2020-1-5", "2020", "2020-06", "2020-06-01 10:11:12.5", "-0",
            "2020-06-01T10:11:12Z", "2020-06-01 10:11", "2020-06-01 23:59:60", "2020-06-01 10:11:12+02:00",
            "2020-06-01 10:11:12 Europe/Paris", "2024-03-10 02:30:00", "2024-11-03 01:30:00", "+12345-01-01",
            "1883-11-18 12:00:00", "0000-01-01", "2020-13-01", "١٢", "12345678901234567890.5"]  # fmt: skip
_DATES = [(2020, 2, 29), (1969, 12, 31), (2020, 12, 31), (2021, 1, 1), (2021, 1, 31), (1582, 10, 4), (1, 1,
          1),
          (9999, 12, 31), (1900, 2, 28), (2024, 3, 10)]  # fmt: skip
_TIMES = [(2020, 2, 29, 23, 59, 59, 999999), (1969, 12, 31, 23, 59, 59, 500000), (2020, 1, 1), (2021, 1, 1,
          12),
          (1970, 1, 1, 0, 0, 0, 1), (2024, 3, 10, 6, 59, 59), (2024, 3, 10, 7, 30), (2024, 11, 3, 5, 30),
          (2024, 11, 3, 6, 45), (2050, 7, 1, 3, 4, 5), (1850, 1, 1), (1883, 11, 18, 17), (1, 1, 1), (9999,
          12, 31, 23),
          (1941, 10, 1, 0, 0), (2024, 3, 10, 2, 30), (2024, 11, 3, 1, 30)]  # fmt: skip
_DECIMALS = {
    "m": ["0.00", "-0.01", "99999999.99", "-99999999.99", "2.50", "3.50", "-2.50", "0.05", "127.99",
          "128.00"],
    "w": ["0", "1", "-1", "2", "9" * 38, "-" + "9" * 38, "12345678901234567890", "3", "-7", "2147483648"],
    "q": ["0", "1.5", "-0.5", "2.0000000001", "9" * 28 + ".9999999999", "0.0000000001", "3", "-7.25"],
}  # fmt: skip
_SPECIAL: dict[str, list[Any]] = {
    "t": [0, 1, -1, 127, -128, 2, 3, 12],
    "k": [0, 1, -1, 2, 3, 4, 32767, -32768, 59],
    "i": [0, 1, -1, 2**31 - 1, -(2**31), 15, 25, -15, 995, 2020],
    "l": [0, 1, -1, 2**63 - 1, -(2**63), 2**53 + 1, 1500, 2500, 1_700_000_000],
    "f": [0.0, -0.0, _NAN, _INF, -_INF, 0.5, 2.675, 1.005, 0.25, 3e9, 1e-6, 16777216.0, 0.15, 3.4e38, 1e-45],
    "x": [0.0, -0.0, _NAN, _INF, -_INF, 1.5, 2.5, -2.5, 2.675, 1.005, 0.125, 1e300, 1e-7, 4e18, -1e19,
          12345.675,
          0.45, 65536.5, 5e-324, 1e16, 1e-3, 9007199254740993.0],
    **{name: [Decimal(text) for text in texts] for name, texts in _DECIMALS.items()},
    "s": _TEXTS,
    "n": _NUMBERS,
    "ok": [True, False],
    "d": [dt.date(*parts) for parts in _DATES],
    "ts": [dt.datetime(*parts, tzinfo=dt.UTC) for parts in _TIMES],  # type: ignore[arg-type, misc]
    "u": [dt.datetime(*parts) for parts in _TIMES],  # type: ignore[arg-type]
    "z": [b"", b"\x01\x7f", b"abc", b"\x00", "é日".encode()],
    "v": [[], [1.0], [0.0, None, 2.0], [_NAN, 1.0], [None], [-0.0, 1.0, 2.0, 3.0], [1.5, 2.5]],
}  # fmt: skip


def random_table(rng: random.Random, rows: int, schema: pa.Schema = SCHEMA) -> pa.Table:
    """Return rows of values that are NULL, special or ordinary."""
    data = {field.name: [random_value(field.name, rng) for _ in range(rows)] for field in schema}
    return pa.table(data, schema=schema)


def random_value(column: str, rng: random.Random) -> Any:
    """Return NULL, a special value or an ordinary one of a column of `SCHEMA`."""
    draw = rng.random()
    if draw < 0.1:
        return None
    ordinary = _ordinary(column, rng) if draw > 0.65 else None
    return rng.choice(_SPECIAL[column]) if ordinary is None else ordinary


def _ordinary(column: str, rng: random.Random) -> Any:
    if column in ("t", "k", "i", "l"):
        return rng.randint(-20, 20)
    if column in ("x", "f"):
        return round(rng.uniform(-4, 4), rng.randint(0, 6))
    if column == "m":
        return Decimal(rng.randint(-2000, 2000)).scaleb(-2)
    moment = dt.datetime(2019, 1, 1) + dt.timedelta(microseconds=rng.randrange(2 * 10**14))
    times = {"d": moment.date(), "ts": moment.replace(tzinfo=dt.UTC), "u": moment}
    return times.get(column)
