"""Columns of every kind, over small domains, so that generated rows meet."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

# Per column: the types it may have in a stream, and its values, the most common first.
KINDS: dict[str, tuple[Sequence[pa.DataType], Sequence[Any]]] = {
    "i": ((pa.int32(), pa.int64(), pa.int16(), pa.uint8()), (1, 2, 0, 3, 4, 5, 6)),
    "l": ((pa.int64(),), (7, 2**53, 2**53 + 1, -1, 0, 2**62, 5)),
    "h": ((pa.int64(),), (2**62 + 10, 2**62 + 11, 2**63 - 1, 2**63 - 2, 2**62, 2**62 - 1, 0)),
    "d": ((pa.float64(),), (1.0, 0.0, -0.0, float("nan"), 1.5, -2.25, 3.0, 2.0)),
    "f": ((pa.float32(), pa.float64()), (0.5, -0.0, 0.0, float("nan"), 1.0, 2.0, -7.75)),
    "p": (
        (pa.decimal128(10, 2), pa.decimal128(12, 3), pa.decimal128(25, 3)),
        tuple(map(Decimal, ("1.50", "1.00", "-1.50", "0.00", "2.25", "3.00"))),
    ),
    "s": (
        (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())),
        ("a", "A", "ab", "", "é", "b", "seven77"),
    ),
    "z": (
        (pa.string(),),
        (
            "prefix-one",
            "prefix-onf",
            "prefix-",
            "prefix-o",
            "PREFIX-ONE",
            "prefix-one-and-more",
            "prefix-one\0",
        ),
    ),
    "day": ((pa.date32(),), (date(2024, 2, 28), date(2024, 2, 29), date(2024, 3, 1), date(1969, 12, 31))),
    "moment": (
        (pa.timestamp("us"), pa.timestamp("ms")),
        (datetime(2024, 1, 1), datetime(2024, 1, 1, 0, 0, 1), datetime(1960, 1, 1), datetime(2024, 1, 2)),
    ),
    "flag": ((pa.bool_(),), (True, False)),
    "raw": ((pa.binary(),), (b"\0", b"", b"\0\0", b"12345678", b"123456789", b"12345678\0", b"ab")),
    "v": (
        (pa.list_(pa.float32(), 3), pa.list_(pa.float64(), 3), pa.list_(pa.float64())),
        (
            [1.0, 0.0, 0.0],
            [1.0, 0.2, 0.0],
            [2e25, 0.0, 0.0],
            [0.0, 1.0, 0.5],
            [1e-30, 0.0, 1e-30],
            [-1.0, 0.0, 0.3],
            [0.0, 0.0, 0.0],
        ),
    ),
}


def column(name: str, kind: pa.DataType, rows: int, spread: int, nulls: float, rng: Random) -> pa.Array:
    """A column's values: at most `spread` different ones, and a share of nulls."""
    domain = KINDS[name][1][:spread]
    values = [None if rng.random() < nulls else rng.choice(domain) for _ in range(rows)]
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode()
    return pa.array(values, kind)
