"""What concerns one stream alone is computed by Spark: every value equals that of Spark's own batch join."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import reduce
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

import weir

pytestmark = pytest.mark.spark
NEW_YORK = "America/New_York"
# The night in which New York's clocks go back; four hours around it.
_START = datetime(2024, 11, 3, 4, 0, tzinfo=UTC)
_TYPES = (
    "ts timestamp, id int, k string, x int, y bigint, d double, c decimal(10,2), s string, dt date, "
    "st struct<k: int, n: struct<z: string>>, m map<string, int>, xs array<int>"
)
_WINDOW = "abs(unix_micros(a.ts) - unix_micros(b.ts)) < 600000000"

CONDITIONS = [
    "a.k = b.k AND hour(a.ts) = 1",
    "a.k = b.k AND a.ts > timestamp'2024-11-03 01:30:00'",
    "a.k = b.k AND a.ts > '2024-11-03 01:30:00' AND to_timestamp('2024-11-03 03:00:00') > b.ts",
    "a.k = b.k AND cast(a.ts AS string) LIKE '2024-11-03 01:%'",
    "lower(a.k) = lower(b.k)",
    "a.x = b.y + 1",
    "a.st.k = b.st.k AND date_format(a.ts, 'HH') = date_format(b.ts, 'HH')",
    "to_date(a.ts) = to_date(b.ts) AND a.x = b.x",
    "coalesce(a.x, -1) = coalesce(b.y, -1)",
    "cast(a.x AS string) = b.s",
    "a.st = b.st",
    "(a.x, a.k) = (b.x, b.k)",
    "struct(a.x AS p, lower(a.k) AS q) <=> struct(b.x AS p, lower(b.k) AS q)",
    "a.m['x'] = b.m['x'] AND a.x = b.x",
    "exists(a.xs, e -> e > 2) AND upper(substring(a.k FROM 1 FOR 1)) = upper(b.k) AND NOT (a.x > 3 OR b.x > 4)",
    "a.x + 1 < b.x * 2 AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 MINUTES AND a.d BETWEEN 0 AND 0.8",
    "CASE WHEN a.x > 2 THEN b.x + 1 ELSE b.x END = 3 AND ucase(a.k) = ucase(b.k)",
    "a.k IN (lower(b.k), upper(b.k), 'zz') AND a.s RLIKE r'^\\d+$'",
]
ITEMS = [
    "a.id", "b.id AS bid", "lower(a.k)", "a.x + 1", "a.x+b.x", "a.st.k", "b.st.n.z AS z", "a.m['x'] AS mx",
    "a.xs[0] AS x0", "hour(a.ts) AS h", "date_format(b.ts, \"yyyy-MM-dd'T'HH:mm z\") AS f",
    "concat(date_format(a.ts, 'HH:mm'), '-', b.k) AS g", "cast(a.ts AS string) AS t", "to_date(b.ts) AS dd",
    "a.ts + INTERVAL '1' DAY AS plus", "transform(a.xs, e -> e * a.x) AS tr", "named_struct('p', a.x).p AS p",
    "CASE WHEN a.x > 2 THEN b.d * 2 ELSE -b.d END AS cs", "a.c * 1.5 AS c15", "a.c / 3BD AS c3", "X'1F' AS hex",
    "regexp_extract(a.s, '(\\\\d)(\\\\d*)', 2) AS re", "'it''s \\u0041\\t\"' || a.k AS esc", "sha2(a.k, 256) AS sha",
    "a.x::string || r'\\d' AS raw", "array_sort(a.xs) AS srt", "format_string('%s-%05d', a.k, b.x) AS fs",
    "if(a.x > b.x, upper(a.k), b.k) AS iff", "nvl2(a.x, 'some', 'none') AS nv", "a.x IS NULL AS isn",
    "make_interval(0, 0, 0, 0, 0, a.x) IS NULL AS mi", "map_from_arrays(array('q'), array(a.x))['q'] AS mq",
    "timestampdiff(MINUTE, a.ts, timestamp'2024-11-03 00:00:00') AS td", "date_trunc('day', b.ts) AS tr2",
    "stack_sum(a.x, 2) AS udf1", "a.x BETWEEN 1 AND 3 AS btw", "2 + a.x * 3 - b.x AS mixed",
    "array(a.x, b.x)[0] AS arr", "greatest(a.x, 2, a.y) AS gr", "try_divide(a.x, b.x - b.x) AS dv",
]  # fmt: skip


def _rows(seed: int, count: int) -> list[tuple[Any, ...]]:
    rng = np.random.default_rng(seed)

    def some(value: Any, share: float = 0.1) -> Any:
        return None if rng.random() < share else value

    def row(number: int) -> tuple[Any, ...]:
        x = int(rng.integers(0, 6))
        return (
            _START + timedelta(seconds=int(rng.integers(0, 4 * 3600))),
            number,
            some("aAbBcC"[int(rng.integers(0, 6))]),
            some(x),
            some(int(rng.integers(0, 6))),
            some(float(rng.random())),
            some(None if x == 5 else Decimal(x) / 4),
            some(str(int(rng.integers(0, 20)))),
            some((_START + timedelta(days=x)).date()),
            some((some(x), some((some("pq"[x % 2]),)))),
            some({"x": x, "y": 1}),
            some([x, 2, int(rng.integers(0, 9))]),
        )

    return [row(number) for number in range(count)]


@pytest.fixture(scope="module")
def pair(spark: SparkSession) -> Iterator[dict[str, DataFrame]]:
    """Two static streams, in a session in New York."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", NEW_YORK)
    frames = {
        name: spark.createDataFrame(_rows(seed, 120), _TYPES).coalesce(1).cache()
        for seed, name in enumerate("ab")
    }
    yield frames
    spark.conf.set("spark.sql.session.timeZone", before)


def _join_by_spark(pair: dict[str, DataFrame], on: str, select: list[str]) -> DataFrame:
    a, b = (pair[name].alias(name) for name in "ab")
    return a.join(b, F.expr(f"({on}) AND {_WINDOW}")).selectExpr(*select)


@pytest.fixture(scope="module")
def matches(pair: dict[str, DataFrame]) -> dict[str, tuple[Counter[Any], Counter[Any]]]:
    """The pairs that satisfy each condition, by the join and by Spark, each in one job."""
    joins = [weir.join(**pair, on=on, within="10 minutes", select="a.id, b.id AS bid") for on in CONDITIONS]
    tagged = [join.toDF().select(F.lit(number), "id", "bid") for number, join in enumerate(joins)]
    found = reduce(DataFrame.unionAll, tagged).collect()
    holds = [f"({on}) AS c{number}" for number, on in enumerate(CONDITIONS)]
    rows = _join_by_spark(pair, "true", ["a.id", "b.id AS bid", *holds]).collect()
    return {
        on: (
            Counter((id, bid) for tag, id, bid in found if tag == number),
            Counter((row[0], row[1]) for row in rows if row[number + 2]),
        )
        for number, on in enumerate(CONDITIONS)
    }


@pytest.mark.parametrize("on", CONDITIONS)
def test_a_condition_holds_where_it_holds_in_spark(
    matches: dict[str, tuple[Counter[Any], Counter[Any]]], on: str
) -> None:
    found, expected = matches[on]
    assert found == expected
    assert expected


def test_output_columns_have_the_values_of_spark(spark: SparkSession, pair: dict[str, DataFrame]) -> None:
    spark.udf.register("stack_sum", lambda x, y: None if x is None else x + y, "int")
    joined = weir.join(**pair, on="a.k = b.k", within="10 minutes", select=", ".join(ITEMS))
    ours, theirs = joined.toDF(), _join_by_spark(pair, "a.k = b.k", ITEMS)
    rows = sorted(theirs.collect(), key=lambda row: (row[0], row[1]))
    assert len(rows) > 100
    found = sorted(ours.collect(), key=lambda row: (row[0], row[1]))
    for item, mine, spark_values in zip(
        ITEMS, zip(*found, strict=True), zip(*rows, strict=True), strict=True
    ):
        assert list(map(str, mine)) == list(map(str, spark_values)), item
    names = [field.name for field in ours.schema]
    assert names[:6] == ["id", "bid", "lower(a.k)", "a.x + 1", "a.x + b.x", "a.st.k"]
    assert names[6:] == theirs.columns[6:]
    assert [f.dataType for f in ours.schema][2:] == [f.dataType for f in theirs.schema][2:]
