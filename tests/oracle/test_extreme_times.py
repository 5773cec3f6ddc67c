"""Times at the ends of their range join like all others; DuckDB compares them as wide integers."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import weir
from weir.plan.tree import join as tree

SECOND = 1_000_000
LEAST, MOST = -(2**63), 2**63 - 1
# Seconds from an end of the range, towards the middle.
STEPS = (0, 3, 9, 10, 14, 30)
# Around +-2^62 sums of times and lengths would overflow where a sum of two times does.
ENDS = {
    "latest": [MOST - step * SECOND for step in STEPS],
    "earliest": [LEAST + step * SECOND for step in STEPS],
    "both": [
        end + sign * step * SECOND for end, sign in ((MOST, -1), (LEAST, 1), (2**62, 1)) for step in STEPS
    ],
}
SCHEMA = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64(), "id": pa.int64()})
ASKED: dict[str, dict[str, Any]] = {
    "window": {"within": "10 seconds", "on": "a.k = b.k AND b.k = c.k"},
    "unequal windows": {
        "within": {"a": "10 seconds", "b": "4 seconds", "c": "300 days"},
        "on": "a.k = b.k AND b.k <= c.k",
    },
    "bounds": {
        "on": """a.k = b.k AND b.k = c.k AND c.ts > b.ts - INTERVAL 7 SECONDS AND c.ts <= b.ts
                 AND b.ts BETWEEN a.ts - INTERVAL 4 SECONDS AND a.ts + INTERVAL 10 SECONDS"""
    },
    "later": {
        "on": """a.k = b.k AND b.k = c.k
                 AND c.ts BETWEEN b.ts - INTERVAL 9 SECONDS AND b.ts - INTERVAL 1 SECOND
                 AND b.ts BETWEEN a.ts + INTERVAL 3 SECONDS AND a.ts + INTERVAL 30 SECONDS"""
    },
    "longest": {"within": "26000000 days", "on": "abs(a.k - b.k) <= 1 AND b.k = c.k"},
}
WINDOWS = {
    "window": (10 * SECOND,) * 3,
    "unequal windows": (10 * SECOND, 4 * SECOND, 300 * 86_400 * SECOND),
    "longest": (26_000_000 * 86_400 * SECOND,) * 3,
}
PLANS = {"mjoin": "mjoin", "tree": tree(tree("c", "a"), "b")}


def _rows(times: list[int]) -> pa.Table:
    numbers = range(len(times))
    return pa.table(
        [pa.array(times, pa.int64()).cast(pa.timestamp("us")), [n % 2 for n in numbers], numbers], SCHEMA
    )


def _by_duckdb(times: list[int], name: str) -> Counter[Any]:
    conditions = {
        "window": "a.k = b.k AND b.k = c.k",
        "unequal windows": "a.k = b.k AND b.k <= c.k",
        "bounds": f"""a.k = b.k AND b.k = c.k AND b.t BETWEEN a.t - {4 * SECOND} AND a.t + {10 * SECOND}
                      AND c.t > b.t - {7 * SECOND} AND c.t <= b.t""",
        "later": f"""a.k = b.k AND b.k = c.k AND c.t BETWEEN b.t - {9 * SECOND} AND b.t - {SECOND}
                     AND b.t BETWEEN a.t + {3 * SECOND} AND a.t + {30 * SECOND}""",
        "longest": "abs(a.k - b.k) <= 1 AND b.k = c.k",
    }
    limits = [
        f"greatest(a.t, b.t, c.t) - {stream}.t < {length}"
        for stream, length in zip("abc", WINDOWS.get(name, ()), strict=False)
    ]
    where = " AND ".join([conditions[name], *limits])
    rows = pa.table({"t": times, "k": [n % 2 for n in range(len(times))], "id": range(len(times))})
    with duckdb.connect() as connection:
        connection.register("given", rows)
        connection.execute("CREATE TABLE wide AS SELECT CAST(t AS HUGEINT) AS t, k, id FROM given")
        found = connection.execute(
            f"SELECT a.id, b.id, c.id FROM wide a, wide b, wide c WHERE {where}"
        ).fetchall()
    return Counter(found)


def _bag(table: pa.Table) -> Counter[Any]:
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@pytest.mark.parametrize(("asked", "times"), list(product(ASKED, ENDS)))
def test_extreme_times_join(asked: str, times: str, plan: Any) -> None:
    wanted = _by_duckdb(ENDS[times], asked)
    assert wanted.total() >= 3
    tables = dict.fromkeys("abc", _rows(ENDS[times]))
    join = weir.join(**tables, **ASKED[asked], plan=plan, select="a.id AS a, b.id AS b, c.id AS c")
    assert _bag(join.to_arrow()) == wanted


@pytest.mark.parametrize("times", ["latest", "earliest"])
def test_extreme_times_come_in_batches(times: str) -> None:
    """State expires at the ends of the range as it does in the middle, and not before."""
    ordered = sorted(ENDS[times])
    rows, query = (
        _rows(ordered),
        weir.join(
            streams=dict.fromkeys("abc", SCHEMA), **ASKED["window"], select="a.id AS a, b.id AS b, c.id AS c"
        ).start(),
    )
    found: Counter[Any] = Counter()
    for row in range(len(rows)):
        for stream in "abc":
            found += _bag(query.process({stream: rows.slice(row, 1)}))
    assert found == _by_duckdb(ordered, "window")
    live = sum(size.rows for size in query.state.sizes().values())
    assert live < 3 * len(rows), "the watermark has passed some rows"


@pytest.mark.parametrize("times", ENDS.values(), ids=ENDS)
def test_row_windows_know_no_times(times: list[int]) -> None:
    rows = _rows(times)
    join = weir.join(a=rows, b=rows, on="a.k = b.k", within=weir.rows(1000), select="a.id AS a, b.id AS b")
    ids = range(len(times))
    assert _bag(join.to_arrow()) == Counter((a, b) for a, b in product(ids, ids) if a % 2 == b % 2)
