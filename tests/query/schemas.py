"""The schemas the tests of queries share."""

from __future__ import annotations

import pyarrow as pa

WIDE = pa.schema(
    [
        pa.field("ts", pa.timestamp("us")),
        pa.field("zoned", pa.timestamp("us", tz="UTC")),
        pa.field("day", pa.date32()),
        pa.field("k", pa.string()),
        pa.field("i", pa.int32()),
        pa.field("j", pa.int32()),
        pa.field("l", pa.int64()),
        pa.field("f", pa.float32()),
        pa.field("d", pa.float64()),
        pa.field("p", pa.decimal128(10, 2)),
        pa.field("flag", pa.bool_()),
        pa.field("v", pa.list_(pa.float32(), 4)),
        pa.field("sure", pa.int64(), nullable=False),
    ]
)
THREE = {"a": WIDE, "b": WIDE, "c": WIDE}
STOCKS = pa.schema(
    {"ts": pa.timestamp("us"), "symbol": pa.string(), "price": pa.float64(), "volume": pa.int64()}
)
