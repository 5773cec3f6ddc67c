"""Tables of random keys and values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from weir.query.build import build_query
from weir.query.options import QueryOptions

SECOND = 1_000_000


def table(rows: int, keys: int, seed: int, seconds: int = 100) -> pa.Table:
    rng = np.random.default_rng(seed)
    times = np.sort(rng.integers(0, seconds * SECOND, rows))
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us")),
            "k": rng.integers(0, keys, rows),
            "v": rng.random(rows),
        }
    )


def asked(on: str, within: str = "10 seconds", names: str = "abc", **more: Any) -> Any:
    schemas = {name: table(1, 1, 0).schema for name in names}
    return build_query(schemas, QueryOptions(on=on, within=within, **more))
