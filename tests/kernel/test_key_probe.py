"""Keys whose codes are hashes are verified: once for each driver row and slice, or pair by pair."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import weir
from weir.kernel import keys as key_codes

LONG = [f"a key of many bytes, number {i}" for i in range(6)]


def table(seed: int, rows: int = 200) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": pa.array(np.sort(rng.integers(0, 400, rows))).cast(pa.timestamp("us")),
            "k": [LONG[i] for i in rng.integers(0, len(LONG), rows)],
            "j": rng.integers(0, 3, rows),
            "n": np.arange(rows),
        }
    )


def expected(a: pa.Table, b: pa.Table, window: int, columns: tuple[str, ...]) -> Counter[tuple[int, int]]:
    pairs: Counter[tuple[int, int]] = Counter()
    for x in a.cast(pa.schema([("ts", pa.int64()), *list(a.schema)[1:]])).to_pylist():
        for y in b.cast(pa.schema([("ts", pa.int64()), *list(b.schema)[1:]])).to_pylist():
            if abs(x["ts"] - y["ts"]) < window and all(x[c] == y[c] for c in columns):
                pairs[x["n"], y["n"]] += 1
    return pairs


@pytest.mark.parametrize("columns", [("k",), ("k", "j"), ("j", "n")])
@pytest.mark.parametrize("collide", [False, True], ids=["distinct codes", "all codes equal"])
def test_equal_hashes_do_not_make_equal_keys(
    columns: tuple[str, ...], collide: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With every long text hashed to one code, no slice is pure, and pairs are compared by value."""
    if collide:
        monkeypatch.setattr(key_codes, "_hash_bytes", lambda words, starts, lengths: np.zeros_like(starts))
    a, b = table(1), table(2)
    on = " AND ".join(f"a.{c} = b.{c}" for c in columns)
    joined = weir.join(a=a, b=b, on=on, within="30 microseconds", select="a.n AS an, b.n AS bn")
    results = Counter(tuple(row.values()) for row in joined.to_arrow().to_pylist())
    assert results == expected(a, b, 30, columns) and sum(results.values()) > 0
