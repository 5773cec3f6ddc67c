"""What concerns one stream alone is computed by Spark: every value equals that of Spark's own batch join."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from tests.spark.streams import LATE, pair_feed, read_bag, repeat_last_batch, run

import weir
from weir.errors import QueryError

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
    "a.s = b.x",
    "a.c <=> b.s AND a.s >= b.y",
    "a.st = b.st",
    "(a.x, a.k) = (b.x, b.k)",
    "struct(a.x AS p, lower(a.k) AS q) <=> struct(b.x AS p, lower(b.k) AS q)",
    "a.m['x'] = b.m['x'] AND a.x = b.x",
    "exists(a.xs, e -> e > 2) AND upper(substring(a.k FROM 1 FOR 1)) = upper(b.k)",
    "a.k = b.k AND NOT (a.x > 3 OR b.x > 4 OR lower(a.s) = b.s)",
    "a.x + 1 < b.x * 2 AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 MINUTES AND a.d BETWEEN 0 AND 0.8",
    "CASE WHEN a.x > 2 THEN b.x + 1 ELSE b.x END = 3 AND ucase(a.k) = ucase(b.k)",
    "a.k IN (lower(b.k), upper(b.k), 'zz') AND a.s RLIKE r'^\\d+$'",
]
ITEMS = [
    "a.id", "b.id AS bid", "lower(a.k)", "a.x + 1", "a.x+b.x", "a.st.k", "b.st.n.z AS z", "a.m['x'] AS mx",
    "a.xs[0] AS x0", "hour(a.ts) AS h", "date_format(b.ts, \"yyyy-MM-dd'T'HH:mm z\") AS f",
    "concat(date_format(a.ts, 'HH:mm'), '-', b.k) AS g", "cast(a.ts AS string) AS t", "to_date(b.ts) AS dd",
    "a.ts + INTERVAL '1' DAY AS plus", "transform(a.xs, e -> e * a.x) AS tr", "named_struct('p', a.x).p AS p",
    "CASE WHEN a.x > 2 THEN b.d * 2 ELSE -b.d END AS cs", "a.c * 1.5 AS c15", "a.c / 3BD AS c3",
    "X'1F' AS hex", "regexp_extract(a.s, '(\\\\d)(\\\\d*)', 2) AS re", "'it''s \\u0041\\t\"' || a.k AS esc",
    "sha2(a.k, 256) AS sha",
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
    asked: dict[str, Any] = {"within": "10 minutes", "select": "a.id, b.id AS bid", "partitions": 1}
    joins = [weir.join(**pair, on=on, **asked) for on in CONDITIONS]
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


@pytest.mark.parametrize(
    "on",
    [
        "lower(a.k) = lower(b.k)", "a.x = b.y + 1", "a.st.k = b.st.k", "a.st = b.st",
        "to_date(a.ts) = to_date(b.ts)",
        "cast(a.x AS string) = b.s", "coalesce(a.x, 0) = coalesce(b.x, 0)", "a.m['x'] <=> b.m['x']",
        "a.s = b.x", "b.c <=> a.s", "a.d = lower(b.s)",
    ],
)  # fmt: skip
def test_an_equality_over_expressions_divides_rows_by_key(pair: dict[str, DataFrame], on: str) -> None:
    joined = weir.join(**pair, on=on, within="10 minutes", partitions=2)
    assert joined.routing.name == "hash" and joined.routing.key is not None
    assert not any("weir" in name for name in joined.columns)
    assert len(joined.columns) == 2 * len(pair["a"].columns)


def test_explain_says_what_spark_computes(pair: dict[str, DataFrame]) -> None:
    on = "lower(a.k) = lower(b.k) AND a.x  > 3 AND (a.y + 1) * b.y > 2"
    text = weir.join(**pair, on=on, within="10 minutes", partitions=2, select="lower(a.k)").explanation()
    assert "computed by Spark\n  a: lower(a.k); a.y + 1; filter a.x > 3\n  b: lower(b.k)\n" in text
    assert "equality: lower(a.k) = lower(b.k)" in text and "residual: (a.y + 1) * b.y > 2" in text
    assert "over 2 partitions by lower(a.k)=lower(b.k)" in text
    assert "weir" not in text
    select = "a.x, format_string('%s-%s', a.k, b.k) AS both"
    text = weir.join(**pair, on="a.k = b.k", within="10 minutes", select=select).explanation()
    assert "select\n  x: a.x\n  both: format_string('%s-%s', a.k, b.k)\n" in text
    assert "computed by Spark\n  after the join: both\n" in text and "weir" not in text


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"on": "a.k = b.k AND rand() > a.x"}, ["'rand() > a.x' is not deterministic", "the same rows"]),
        ({"on": "a.k = b.k", "select": "concat(a.k, uuid()) AS u"}, ["uuid()", "not deterministic"]),
        ({"on": "a.k = b.k AND now() > a.ts"}, ["now()", "not deterministic"]),
        (
            {"on": "a.k = b.k AND dateformat(a.ts, 'HH') = '1'"},
            ["unknown function", "did you mean 'date_format'"],
        ),
        ({"on": "a.k = b.k AND date_format(a.ts) = '1'"}, ["'date_format(a.ts) = '1''", "WRONG_NUM_ARGS"]),
        ({"on": "a.k = b.k AND a.xs"}, ["a condition must be true or false; 'a.xs' is array<int>"]),
        ({"on": "a.k = b.k AND abs(a.xs) > 1"}, ["'abs(a.xs) > 1'", "DATATYPE_MISMATCH"]),
        ({"on": "a.k = b.k AND explode(a.xs) > 1"}, ["'explode(a.xs) > 1'"]),
        (
            {"on": "a.k = b.k", "select": "explode(a.xs) AS e"},
            ["'explode(a.xs)' is not one value for each row"],
        ),
        ({"on": "a.k = b.k", "select": "make_interval(a.x) AS i"}, ["'make_interval(a.x)' is interval"]),
        ({"on": "a.k = b.k", "select": "lower(a.nix)"}, ["unknown column 'nix' in stream 'a'"]),
        (
            {"on": "format_string('%s', lower(a.k), b.k) = 'x'"},
            ["'format_string('%s', lower(a.k), b.k)'", "weir.udf"],
        ),
        ({"on": "exists(a.xs, e -> e > b.x)"}, ["'exists(a.xs, e -> e > b.x)'", "several streams"]),
        ({"on": "a.k = b.k", "select": "nix(a.k, b.k) AS n"}, ["unknown function 'nix'"]),
        ({"on": "lower(a.k) > b.xs"}, ["lower(a.k) > b.xs"]),
        ({"on": "a.k = b.k AND sum(a.x) > 1"}, ["aggregates"]),
        (
            {
                "on": "a.k = b.k",
                "select": "format_string('%s %s', a.k || b.k, current_timestamp()) AS t",
            },
            ["current_timestamp()", "is not deterministic"],
        ),
    ],
)
def test_what_spark_cannot_compute_is_refused_in_a_sentence(
    pair: dict[str, DataFrame], asked: dict[str, str], words: list[str]
) -> None:
    with pytest.raises(QueryError) as caught:
        weir.join(**pair, **asked, within="10 minutes")
    message = str(caught.value)
    assert all(word in message for word in words), message
    assert "\n" not in message and "weir:" not in message and len(message) < 600


def test_udfs_of_spark_run_in_spark(spark: SparkSession, pair: dict[str, DataFrame]) -> None:
    def twice_of(x: pd.Series) -> pd.Series:
        return x * 2

    plain, twice = (
        F.udf(lambda k: None if k is None else k.lower(), "string"),
        F.pandas_udf(twice_of, "double"),
    )
    both = F.udf(lambda x, y: f"{x}{y}", "string")
    functions = {"low": plain, "twice": twice, "both": both}
    on = "LOW(a.k) = low(b.k) AND twice(a.d) < 1.5"
    items = ["a.id", "b.id AS bid", "twice(b.d) AS t", "both(a.k, low(b.k)) AS bo"]
    joined = weir.join(**pair, on=on, within="10 minutes", select=", ".join(items), functions=functions)
    for name, function in functions.items():
        spark.udf.register(name, function)
    expected = _join_by_spark(pair, on, items)
    assert joined.columns == expected.columns
    found = Counter(map(tuple, joined.toDF().collect()))
    assert found == Counter(map(tuple, expected.collect())) and len(found) > 50
    with pytest.raises(QueryError, match=r"'both\(a.k, b.k\)' in a condition reads several streams"):
        weir.join(**pair, on="both(a.k, b.k) = 'aa'", within="10 minutes", functions=functions)


def test_a_row_window_counts_rows_that_a_filter_drops(pair: dict[str, DataFrame]) -> None:
    asked: dict[str, Any] = {
        "on": "a.x = b.x AND hour(a.dt) = 0 AND a.y > 2",
        "within": {"a": weir.rows(40), "b": weir.rows(60)},
        "select": "a.id, b.id AS bid",
        "partitions": 1,
    }
    found = Counter(map(tuple, weir.join(**pair, **asked).toDF().collect()))
    asked.pop("partitions")
    tables = {name: frame.select("ts", "id", "x", "y", "dt").toArrow() for name, frame in pair.items()}
    local = weir.join(**tables, **asked | {"on": "a.x = b.x AND a.y > 2 AND a.dt IS NOT NULL"}).to_arrow()
    assert found == Counter(zip(*(local[name].to_pylist() for name in ("id", "bid")), strict=True))
    assert found


@pytest.fixture
def ansi(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.ansi.enabled", "true")
    yield
    spark.conf.set("spark.sql.ansi.enabled", "false")


def _make(spark: SparkSession, values: dict[int, str]) -> DataFrame:
    given = [(_START, key, value) for key, value in values.items()]
    return spark.createDataFrame(given, "ts timestamp, k int, s string").coalesce(1)


@pytest.mark.usefixtures("ansi")
@pytest.mark.parametrize("on", ["a.s = b.k", "b.k <=> a.s", "a.s < b.k / 2", "a.s > cast(b.k AS decimal)"])
def test_in_ansi_mode_text_that_is_no_number_fails_as_in_spark(spark: SparkSession, on: str) -> None:
    right = _make(spark, {1: "", 2: "", 3: ""})
    for values, malformed in (("1", " 2 ", "3"), False), (("1", "1e0", "three"), True):
        pair = {"a": _make(spark, dict(enumerate(values))), "b": right}
        asked: dict[str, Any] = {"on": on, "within": "1 minute", "select": "a.s, b.k", "partitions": 2}
        answers = [weir.join(**pair, **asked).toDF(), _join_by_spark(pair, on, ["a.s", "b.k"])]
        if malformed:
            for answer in answers:
                with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
                    answer.collect()
            null = weir.join(**pair, **asked, on_error="null").toDF().collect()
            assert {row.s for row in null} <= {"1", "1e0"}
        else:
            found, expected = (Counter(map(tuple, answer.collect())) for answer in answers)
            assert found == expected and found


BRANCH = "CASE WHEN good(a.s) THEN cast(a.s AS int) ELSE 0 END"


@weir.udf
def good(texts: pa.Array) -> pa.Array:
    return pc.not_equal(texts, "bad")


@pytest.mark.usefixtures("ansi")
def test_in_ansi_mode_only_rows_that_join_can_fail(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(values: dict[int, str]) -> DataFrame:
        return _make(spark, values)

    pair = {"a": make({1: "7", 2: "bad"}), "b": make({1: "8", 3: "no"})}
    asked: dict[str, Any] = {"within": "1 minute", "select": "cast(a.s AS int) + 1 AS n, lower(b.s) AS l"}
    joined = weir.join(**pair, on="a.k = b.k", **asked)
    (row,) = joined.toDF().collect()
    assert (row.n, row.l) == (8, "8") and joined.columns == ["n", "l"]
    with pytest.raises(PythonException, match=r"cast\(a.s AS int\) \+ 1 fails: Spark cannot comp") as error:
        weir.join(**pair, on="a.k < b.k", **asked).toDF().collect()
    assert "Traceback" not in str(error.value)
    monkeypatch.setenv("WEIR_DEBUG", "1")
    with pytest.raises(PythonException, match=r"(?s)Traceback.*fails: Spark cannot compute it"):
        weir.join(**pair, on="a.k < b.k", **asked).toDF().collect()
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):  # as Spark, which filters before it joins
        weir.join(**pair, on="a.k = b.k AND cast(a.s AS int) > 0", **asked).toDF().collect()
    # Spark compares by < only where keys are equal, and asks a branch only if it is taken.
    for on in ("a.k = b.k AND cast(a.s AS int) < b.k + 9", f"a.k = b.k AND {BRANCH} > 3"):
        (row,) = weir.join(**pair, on=on, **asked, functions={"good": good}).toDF().collect()
        assert row.n == 8
    (row,) = weir.join(**pair, on="a.k = b.k AND try_cast(a.s AS int) > 0", **asked).toDF().collect()
    assert row.n == 8
    for extra, expected in (("", [(8, "no"), (None, "no")]), (" AND cast(a.s AS int) > 0", [(8, "no")])):
        found = weir.join(**pair, on=f"a.k < b.k{extra}", **asked, on_error="null").toDF().collect()
        assert Counter(map(tuple, found)) == Counter(expected)
    lazy = "CASE WHEN b.k < a.k THEN cast(a.s AS int) + b.k ELSE 0 END AS n"
    found = weir.join(**pair, on="a.k < b.k", within="1 minute", select=lazy).toDF().collect()
    assert [row.n for row in found] == [0, 0]


def test_a_repeated_batch_computes_the_same(spark: SparkSession, tmp_path: Path) -> None:
    feed, out = pair_feed(tmp_path / "in"), tmp_path / "out"
    asked: dict[str, Any] = {
        "on": "abs(a.k) = pmod(b.k, 7) AND b.v + 0 >= a.v AND a.id % 3 < 2",
        "within": "8 seconds",
        "late": LATE,
        "select": "a.id, b.id AS bid, cast(current_timestamp() AS string) || a.id AS now",
    }
    run(weir.join(**feed.frames(spark), **asked), tmp_path / "ck", out)
    before = read_bag(out)
    on = f"({asked['on']}) AND abs(unix_micros(a.ts) - unix_micros(b.ts)) < 8000000"
    statics = feed.statics(spark)
    expected = statics["a"].alias("a").join(statics["b"].alias("b"), F.expr(on)).select("a.id", F.col("b.id"))
    assert Counter((bid, id) for bid, id, _ in before) == Counter(
        (row[1], row[0]) for row in expected.collect()
    )
    repeat_last_batch(tmp_path / "ck")
    run(weir.join(**feed.frames(spark), **asked), tmp_path / "ck", out)
    assert read_bag(out) == before
    assert len({now for _, _, now in before}) > 1 or len(before) > 10
