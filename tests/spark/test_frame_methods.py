"""Of a DataFrame's methods, stateless ones are steps, static joins have the rest, streaming ones say so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

import weir
from weir.errors import QueryError
from weir.spark.frame_methods import STEP_METHODS
from weir.spark.join import SparkJoin
from weir.spark.steps import STATEFUL_METHODS

from .streams import PAIR, Feed, bag, expected, pair_feed, read_bag, run

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

# What a join has of its own, under Spark's name.
OWN = {
    "columns", "dtypes", "explain", "isStreaming", "na", "printSchema", "schema", "sparkSession", "toDF",
    "transform", "writeStream",
}  # fmt: skip
PUBLIC = sorted(name for name in dir(DataFrame) if not name.startswith("_"))


@pytest.fixture(scope="module")
def feed(tmp_path_factory: pytest.TempPathFactory) -> Feed:
    return pair_feed(tmp_path_factory.mktemp("methods") / "in", 1)


@pytest.fixture(scope="module")
def streaming(feed: Feed, spark: SparkSession) -> SparkJoin:
    return weir.join(**feed.frames(spark), **PAIR, partitions=1)


@pytest.fixture(scope="module")
def static(feed: Feed, spark: SparkSession) -> SparkJoin:
    return weir.join(**feed.statics(spark), **PAIR, partitions=1)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_method_is_a_step_or_refused_by_name(name: str, streaming: SparkJoin) -> None:
    if name in OWN or name in STEP_METHODS:
        assert hasattr(SparkJoin, name)
        return
    sentence = "would need state" if name in STATEFUL_METHODS else "needs a result that ends.*writeStream"
    with pytest.raises(QueryError, match=f"'{name}' .*{sentence}"):
        getattr(streaming, name)


STEPS: dict[str, tuple[Callable[[SparkJoin], Any], str]] = {
    "withColumn": (lambda j: j.withColumn("s", F.col("av") + 1), "*, av + 1 AS s"),
    "withColumns": (lambda j: j.withColumns({"s": F.col("k") * 2}), "*, k * 2 AS s"),
    "renamed": (lambda j: j.withColumnRenamed("k", "key"), "k AS key, av, bv, aid, bid"),
    "selectExpr": (lambda j: j.selectExpr("k", "av - bv AS d"), "k, av - bv AS d"),
    "fillna": (lambda j: j.fillna(9, ["av"]).na.fill(9), "k, coalesce(av, 9) AS av, bv, aid, bid"),
    "column of the join": (lambda j: j.filter(j.k > 1).select(j["av"]), "av FROM j WHERE k > 1 --"),
    "where and drop": (lambda j: j[j.k == 2].drop("av", "bv", "aid"), "k, bid FROM j WHERE k = 2 --"),
    "unpivot": (
        lambda j: j.unpivot("k", ["av"], "n", "v").dropna(),
        "k, 'av' AS n, av AS v FROM j WHERE av IS NOT NULL AND k IS NOT NULL --",
    ),
    "transform with arguments": (
        lambda j: j.transform(lambda frame, by: frame.withColumn("k", F.col("k") + by), by=3),
        "k + 3 AS k, av, bv, aid, bid",
    ),
    "mapInArrow": (lambda j: j.mapInArrow(lambda batches: batches, j.schema).coalesce(1), "*"),
}


@pytest.mark.parametrize("name", STEPS)
def test_steps_mean_what_they_mean_in_sql(name: str, feed: Feed, static: SparkJoin) -> None:
    step, select = STEPS[name]
    j = weir.join(**feed.tables(), **PAIR).to_arrow()
    assert j.num_rows > 20
    answer = bag(duckdb.sql(f"SELECT {select} FROM j").to_arrow_table())
    assert bag(step(static).toDF().toArrow()) == answer


def test_steps_run_in_each_batch(streaming: SparkJoin, feed: Feed, tmp_path: Path) -> None:
    steps = streaming.withColumnRenamed("aid", "id").selectExpr("k", "id", "av", "bv", "bid")
    run(steps, tmp_path / "c", tmp_path / "out")
    asked = {**PAIR, "select": "a.k, a.id AS id, a.v AS av, b.v AS bv, b.id AS bid"}
    assert read_bag(tmp_path / "out") == expected(feed.tables(), **asked)


def test_a_static_join_is_read_like_a_dataframe(
    static: SparkJoin, feed: Feed, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = weir.join(**feed.tables(), **PAIR).to_arrow()
    assert static.count() == answer.num_rows == len(static.collect())
    per_key = static.groupBy("k").count().toArrow()
    rows = duckdb.sql("SELECT k, count(*) AS count FROM answer GROUP BY k").to_arrow_table()
    assert bag(per_key) == bag(rows)
    static.orderBy("k").limit(1).show()
    static.printSchema()
    printed = capsys.readouterr().out
    assert "only showing" not in printed and "|  k| av|" in printed and " |-- k: long" in printed
    assert static.toDF("v", "w", "x", "y", "z").columns == ["v", "w", "x", "y", "z"]
    assert static.dtypes[0] == ("k", "bigint")


def test_unknown_attributes_name_the_nearest(streaming: SparkJoin) -> None:
    with pytest.raises(AttributeError, match=r"a join has no 'withColum'; did you mean 'withColumn'\?"):
        streaming.withColum  # noqa: B018 - asking is the test
    with pytest.raises(QueryError, match="returns a DataFrame; got None"):
        streaming.transform(lambda frame: None)  # type: ignore[arg-type, return-value]


# --- event times and tables of the session


def test_the_time_column_comes_from_the_watermark(feed: Feed, spark: SparkSession, tmp_path: Path) -> None:
    frames = {name: frame.withColumnRenamed("ts", "at") for name, frame in feed.frames(spark).items()}
    marked = {name: frame.withWatermark("at", "6 seconds") for name, frame in frames.items()}
    asked = {name: value for name, value in PAIR.items() if name != "late"}
    join = weir.join(**marked, **asked, partitions=1)
    assert [stream.time for stream in join.query.streams] == ["at", "at"]
    assert [stream.late for stream in join.query.streams] == [6_000_000] * 2
    run(join, tmp_path / "c", tmp_path / "out")
    assert read_bag(tmp_path / "out") == expected(feed.tables(), **PAIR)
    with_both = {
        name: frame.withColumn("ts", F.lit(None).cast("timestamp")) for name, frame in marked.items()
    }
    assert weir.join(**with_both, **asked).query.streams[0].time == "at"
    assert weir.join(**with_both, **asked, time="ts").query.streams[0].time == "ts"


def test_the_time_may_be_an_expression(feed: Feed, spark: SparkSession) -> None:
    frames = feed.statics(spark)
    millis = {
        name: frame.selectExpr("unix_micros(ts) AS us", "k", "v", "id") for name, frame in frames.items()
    }
    asked = {**PAIR, "time": {"a": "timestamp_micros(a.us)", "b": "timestamp_micros(us)"}}
    join = weir.join(**millis, **asked)
    assert join.query.streams[0].time == "event_time"
    assert bag(join.toDF().toArrow()) == expected(feed.tables(), **PAIR)


def test_a_statement_reads_views_of_the_session(feed: Feed, spark: SparkSession) -> None:
    frames = feed.statics(spark)
    frames["a"].createOrReplaceTempView("weir_view_a")
    frames["b"].createOrReplaceTempView("weir_view_b")
    text = (
        "SELECT a.k, a.v AS av, b.v AS bv, a.id AS aid, b.id AS bid "
        "FROM {} a JOIN weir_view_b b USING (k) WHERE a.v <= b.v WINDOW 8 SECONDS"
    )
    answer = expected(feed.tables(), **PAIR)
    by_views: Any = weir.sql(text.format("weir_view_a"), late="6 seconds")
    assert bag(by_views.toDF().toArrow()) == answer
    mixed: Any = weir.sql(text.format("mine"), late="6 seconds", mine=frames["a"])
    assert bag(mixed.toDF().toArrow()) == answer


def test_using_equals_sparks_own(spark: SparkSession) -> None:
    rows = pa.table({"ts": pa.array([1, 2, 3], pa.timestamp("us")), "k": [1, 2, 2], "x": [4, 5, 6]})
    left, right = spark.createDataFrame(rows), spark.createDataFrame(rows.rename_columns(["ts", "k", "y"]))
    left.createOrReplaceTempView("weir_left")
    right.createOrReplaceTempView("weir_right")
    text = "SELECT k, k + 1 AS n, x, y FROM weir_left JOIN weir_right USING (k)"
    ours: Any = weir.sql(f"{text} WHERE k > 1 WINDOW 1 DAY")
    assert bag(ours.toDF().toArrow()) == bag(spark.sql(f"{text} WHERE k > 1").toArrow())
    every: Any = weir.sql("SELECT * FROM weir_left a JOIN weir_right b USING (k) WINDOW 1 DAY")
    assert every.columns == ["k", "a_ts", "a_x", "b_ts", "b_y"]
