"""Every sink gets each result once and unchanged, also when a batch is repeated."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

import weir
from weir.errors import QueryError
from weir.spark.join import SparkJoin

from .streams import (
    PAIR,
    Feed,
    bag,
    expected,
    finish,
    pair_feed,
    read_bag,
    repeat_last_batch,
    rows,
    run,
    write_feed,
)

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]
BATCHES = 2


@pytest.fixture(scope="module")
def feed(tmp_path_factory: pytest.TempPathFactory) -> Feed:
    return pair_feed(tmp_path_factory.mktemp("sinks") / "in", BATCHES)


@pytest.fixture(scope="module")
def answer(feed: Feed) -> Counter[tuple[Any, ...]]:
    found = expected(feed.tables(), **PAIR)
    assert sum(found.values()) > 50
    return found


@pytest.fixture
def join(feed: Feed, spark: SparkSession) -> SparkJoin:
    return weir.join(**feed.frames(spark), **PAIR, partitions=2)


# --- files


@pytest.mark.parametrize("format", ["parquet", "json", "orc"])
def test_a_repeated_batch_leaves_files_as_they_were(
    format: str, join: SparkJoin, answer: Counter[tuple[Any, ...]], tmp_path: Path
) -> None:
    out, checkpoint = tmp_path / "out", tmp_path / "ckpt"
    run(join, checkpoint, out, format)
    names = sorted(path.name for path in out.iterdir() if not path.name.startswith("_"))
    assert names and all(re.fullmatch(r"part-[0-9a-f]{12}-00000000[01]-000\d-0\..*", name) for name in names)
    assert read_bag(out, format) == answer
    repeat_last_batch(checkpoint)
    query = run(join, checkpoint, out, format)
    assert [progress["batchId"] for progress in query.recentProgress] == [BATCHES - 1]
    assert read_bag(out, format) == answer
    assert names == sorted(path.name for path in out.iterdir() if not path.name.startswith("_"))
    hidden = [p.name for p in out.rglob("*") if p.name.startswith(("_part", "_batch", ".")) and p.is_file()]
    assert not hidden


def test_partitioned_files_and_a_repeated_batch(
    join: SparkJoin, answer: Counter[tuple[Any, ...]], spark: SparkSession, tmp_path: Path
) -> None:
    out, checkpoint = tmp_path / "out", tmp_path / "ckpt"

    def written() -> Any:
        writer = join.writeStream.format("csv").option("header", True).partitionBy("k", "av")
        writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        finish(writer.start(str(out)))
        return spark.read.option("header", True).option("inferSchema", True).csv(str(out)).toArrow()

    assert bag(written()) == answer
    assert any(path.name.startswith("av=") for path in (out / "k=0").iterdir())
    files = sorted(out.rglob("part-*"))
    repeat_last_batch(checkpoint)
    assert bag(written()) == answer
    assert files == sorted(out.rglob("part-*"))


def test_a_table_and_a_repeated_batch(
    join: SparkJoin, answer: Counter[tuple[Any, ...]], spark: SparkSession, tmp_path: Path
) -> None:
    spark.sql("DROP TABLE IF EXISTS weir_pairs")
    writer = join.writeStream.option("checkpointLocation", str(tmp_path / "ckpt")).trigger(availableNow=True)
    finish(writer.option("path", str(tmp_path / "table")).toTable("weir_pairs"))
    try:
        assert bag(spark.table("weir_pairs").toArrow()) == answer
        repeat_last_batch(tmp_path / "ckpt")
        finish(writer.toTable("weir_pairs"))
        assert bag(spark.table("weir_pairs").toArrow()) == answer
        assert read_bag(tmp_path / "table") == answer
    finally:
        spark.sql("DROP TABLE IF EXISTS weir_pairs")


def test_a_table_of_another_format_is_refused(join: SparkJoin, spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("DROP TABLE IF EXISTS weir_other")
    spark.sql(
        "CREATE TABLE weir_other (k BIGINT, av BIGINT, bv BIGINT, aid BIGINT, bid BIGINT) "
        f"USING json LOCATION '{tmp_path / 'other'}'"
    )
    try:
        writer = join.writeStream.option("checkpointLocation", str(tmp_path / "ckpt"))
        with pytest.raises(QueryError, match=r"weir_other.*json.*parquet|parquet.*weir_other.*json"):
            finish(writer.trigger(availableNow=True).toTable("weir_other"))
    finally:
        spark.sql("DROP TABLE weir_other")


@pytest.mark.parametrize("odd", ["with space", "half #1", "100%25", "a?b"])
def test_paths_with_special_characters_are_not_decoded(odd: str, spark: SparkSession, tmp_path: Path) -> None:
    feed = write_feed(tmp_path / "in", {"a": [rows([1], [1])], "b": [rows([2], [1])]})
    join = weir.join(**feed.frames(spark), **PAIR, partitions=1)
    run(join, tmp_path / odd / "ckpt", tmp_path / odd / "out")
    assert sum(read_bag(tmp_path / odd / "out").values()) == 1
    assert (tmp_path / odd / "ckpt" / "weir" / "manifests" / "0-0001.json").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["in", odd])


# --- sinks that are no files


def test_the_memory_table_holds_all_results(
    join: SparkJoin, answer: Counter[tuple[Any, ...]], spark: SparkSession
) -> None:
    writer = join.writeStream.format("memory").queryName("weir_memory").trigger(availableNow=True)
    query = finish(writer.start())
    assert query.name == "weir_memory"
    assert bag(spark.table("weir_memory").toArrow()) == answer


def test_noop_counts_without_keeping(join: SparkJoin, answer: Counter[tuple[Any, ...]]) -> None:
    query = finish(join.writeStream.format("noop").trigger(availableNow=True).start())
    assert sum(p["weir"]["numOutputRows"] for p in query.recentProgress) == sum(answer.values())


def test_the_console_shows_rows(join: SparkJoin, capsys: pytest.CaptureFixture[str]) -> None:
    only = join.filter("k = 1").select(F.col("k").alias("the key"))
    finish(only.writeStream.format("console").option("numRows", 2).trigger(availableNow=True).start())
    printed = capsys.readouterr().out
    assert "batch 0" in printed and "batch 1" in printed
    assert "|the key|\n+-------+\n|      1|\n|      1|\n+-------+" in printed


def test_foreach_batch_may_read_twice_in_part_or_not_at_all(
    feed: Feed, answer: Counter[tuple[Any, ...]], spark: SparkSession, tmp_path: Path
) -> None:
    seen: Counter[tuple[Any, ...]] = Counter()
    batches: list[int] = []

    def sink(results: DataFrame, batch: int) -> None:
        batches.append(batch)
        once, again = bag(results.toArrow()), bag(results.toArrow())
        assert once == again and results.count() == sum(once.values())
        seen.update(once)

    def run_with(call: Any, name: str) -> list[Any]:
        join = weir.join(**feed.frames(spark), **PAIR, partitions=2)
        writer = join.writeStream.foreachBatch(call).option("checkpointLocation", str(tmp_path / name))
        query = finish(writer.trigger(availableNow=True).start())
        left = [p.name for p in (tmp_path / name / "weir" / "stats").glob("*.json")]
        assert len(left) <= 1, "counts of old batches are left behind"
        return [progress["weir"]["numOutputRows"] for progress in query.recentProgress]

    counted = run_with(sink, "twice")
    assert batches == [0, 1] and seen == answer
    assert counted[0] > 0 and sum(counted) == sum(answer.values())
    parts: list[int] = []
    counted = run_with(lambda results, batch: parts.append(len(results.limit(1).collect())), "in part")
    assert parts == [1, 1] and counted == [None, None]
    assert run_with(lambda results, batch: None, "not at all") == [None, None]


# --- steps


def test_stateless_steps_run_inside_the_batch(join: SparkJoin, feed: Feed, tmp_path: Path) -> None:
    steps = (
        join.filter("av > 0")
        .where(F.col("bv") < 4)
        .transform(lambda frame: frame.withColumn("sum", F.col("av") + F.col("bv")))
        .drop("bid", "bv")
        .select("k", "av", F.col("sum").alias("total"), "aid")
    )
    assert steps.columns == ["k", "av", "total", "aid"]
    run(steps, tmp_path / "ckpt", tmp_path / "out")
    asked = {
        **PAIR,
        "on": f"{PAIR['on']} AND a.v > 0 AND b.v < 4",
        "select": "a.k, a.v AS av, a.v + b.v AS total, a.id AS aid",
    }
    found = read_bag(tmp_path / "out")
    assert found and found == expected(feed.tables(), **asked)


def test_stateful_steps_are_refused(join: SparkJoin) -> None:
    for step in (
        lambda frame: frame.groupBy("k").count(),
        lambda frame: frame.distinct(),
        lambda frame: frame.dropDuplicates(["k"]),
        lambda frame: frame.orderBy("k"),
        lambda frame: frame.limit(3),
        lambda frame: frame.join(frame.select("k"), "k"),
        lambda frame: frame.agg(F.max("k")),
    ):
        with pytest.raises(QueryError, match=r"would need state across batches; .*foreachBatch"):
            join.transform(step)
    for name in ("groupBy", "orderBy", "join", "dropDuplicates", "limit", "withWatermark"):
        with pytest.raises(QueryError, match=f"'{name}' after a join would need state"):
            getattr(join, name)
    with pytest.raises(AttributeError, match="a join has no 'nonsense'"):
        join.nonsense  # noqa: B018 - asking is the test


# --- types

TYPED = r"""
    SELECT TIMESTAMP '2024-03-10 06:59:59.123456 UTC' AS ts, 1 AS k,
           named_struct('x', 1, 'inner', named_struct(
               'at', TIMESTAMP '2024-07-01 00:00:00 UTC', 'n', CAST(NULL AS INT))) AS struct_,
           array(named_struct('a', 1.5D), NULL, named_struct('a', double('NaN'))) AS array_,
           map('one', array(1, NULL), 'none', NULL) AS map_,
           map(1L, TIMESTAMP '2024-01-01 00:00:00 UTC') AS times_,
           CAST('-12345678901234567890.123456789' AS DECIMAL(38, 9)) AS decimal_,
           TIMESTAMP '2024-11-03 05:30:00 UTC' AS instant_,
           TIMESTAMP_NTZ '2024-11-03 01:30:00.000001' AS wall_,
           DATE '0999-02-28' AS date_, X'00FF' AS binary_, true AS boolean_, CAST(NULL AS STRING) AS null_,
           CAST(1 AS TINYINT) AS tiny_, CAST(2 AS SMALLINT) AS small_, CAST(1.5 AS FLOAT) AS float_,
           'naïve ☃' AS string_, CAST(NULL AS STRUCT<x: INT>) AS no_struct_,
           CAST(array() AS ARRAY<STRING>) AS empty_
    UNION ALL
    SELECT TIMESTAMP '2024-03-10 07:00:01 UTC', 1, NULL, array(), map(), NULL, NULL, NULL, NULL, NULL,
           X'', NULL, 'x', NULL, NULL, NULL, '', named_struct('x', NULL), NULL
"""


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_every_type_passes_through(zone: str, spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        spark.sql(TYPED).coalesce(1).write.parquet(str(tmp_path / "in" / "a"))
        spark.sql("SELECT TIMESTAMP '2024-03-10 07:00:00 UTC' AS ts, 1 AS k").write.parquet(
            str(tmp_path / "in" / "b")
        )
        source = Feed(tmp_path / "in", {"a": [], "b": []})
        given = source.statics(spark)["a"]
        columns = [name for name in given.columns if name != "k"]
        asked: dict[str, Any] = {
            "on": "a.k = b.k",
            "within": "1 minute",
            "select": ", ".join(f"a.{name}" for name in columns),
        }
        want = sorted(map(repr, given.select(columns).collect()))
        join = weir.join(**source.frames(spark), **asked, partitions=1)
        kinds = {field.name: field.dataType.simpleString() for field in given.schema}
        assert {f.name: f.dataType.simpleString() for f in join.schema} == {n: kinds[n] for n in columns}
        run(join, tmp_path / "ckpt", tmp_path / "out")
        folded = spark.read.parquet(str(tmp_path / "out"))
        assert {f.name: f.dataType.simpleString() for f in folded.schema} == {n: kinds[n] for n in columns}
        assert sorted(map(repr, folded.select(columns).collect())) == want
        lazy: list[str] = []
        writer = join.writeStream.option("checkpointLocation", str(tmp_path / "lazy"))
        writer = writer.foreachBatch(
            lambda found, batch: lazy.extend(map(repr, found.select(columns).collect()))
        )
        finish(writer.trigger(availableNow=True).start())
        assert sorted(lazy) == want
        static = weir.join(**source.statics(spark), **asked).toDF()
        assert sorted(map(repr, static.select(columns).collect())) == want
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_a_difference_of_times_reads_back_as_an_interval(spark: SparkSession, tmp_path: Path) -> None:
    feed = write_feed(tmp_path / "in", {"a": [rows([1], [1])], "b": [rows([3.5], [1])]})
    asked = {"on": "a.k = b.k", "within": "9 seconds", "select": "b.ts - a.ts AS took"}
    run(weir.join(**feed.frames(spark), **asked, partitions=1), tmp_path / "ckpt", tmp_path / "out")
    took = datetime.timedelta(seconds=2.5)
    assert ds.dataset(tmp_path / "out").to_table()["took"].to_pylist() == [took]
    assert [row.took for row in spark.read.parquet(str(tmp_path / "out")).collect()] == [took]
    assert pa.types.is_duration(ds.dataset(tmp_path / "out").schema.field("took").type)
