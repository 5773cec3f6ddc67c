"""Mistakes as a user of Spark types them: each is one sentence, before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import weir
from weir.errors import QueryError
from weir.spark.join import SparkJoin
from weir.spark.writer import JoinWriter

from .streams import PAIR, Feed, pair_feed

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@dataclass(frozen=True)
class Desk:
    """What a user has at hand."""

    spark: SparkSession
    feed: Feed
    folder: Path

    @property
    def streams(self) -> dict[str, DataFrame]:
        return self.feed.frames(self.spark)

    @property
    def statics(self) -> dict[str, DataFrame]:
        return self.feed.statics(self.spark)

    @property
    def join(self) -> SparkJoin:
        return weir.join(**self.streams, **PAIR, partitions=1)

    @property
    def writer(self) -> JoinWriter:
        return self.join.writeStream.option("checkpointLocation", str(self.folder / "c")).trigger(once=True)

    def write(self, format: str, **options: Any) -> Any:
        return self.writer.format(format).start(str(self.folder / "out"), **options)

    def table(self, columns: str, how: str = "USING parquet", *partition_by: str) -> Any:
        """Start into a table of these columns."""
        self.spark.sql(f"CREATE TABLE weir_mistake ({columns}) {how}")
        return self.writer.partitionBy(*partition_by).toTable("weir_mistake")

    def leftover(self) -> Any:
        """Start into a new table whose folder is not empty."""
        warehouse = str(self.spark.conf.get("spark.sql.warehouse.dir")).removeprefix("file:")
        (Path(warehouse) / "weir_mistake").mkdir(parents=True)
        (Path(warehouse) / "weir_mistake" / "old.parquet").write_text("old")
        try:
            return self.writer.toTable("weir_mistake")
        finally:
            (Path(warehouse) / "weir_mistake" / "old.parquet").unlink()
            (Path(warehouse) / "weir_mistake").rmdir()

    def view(self) -> Any:
        self.spark.range(1).createOrReplaceTempView("weir_mistake_view")
        return self.writer.toTable("weir_mistake_view")

    def timed(self, time: Any, **more: Any) -> Any:
        return weir.join(**self.streams, **PAIR, time=time, **more)

    def watermarks(self) -> Any:
        streams = self.streams
        made = streams["a"].withWatermark("ts", "1 second").withColumnRenamed("ts", "made")
        paid = streams["b"].withWatermark("ts", "2 seconds").selectExpr("ts AS paid", "id")
        return weir.join(a=made.join(paid, "id"), b=streams["b"], **PAIR)


COLUMNS = "k BIGINT, av BIGINT, bv BIGINT, aid BIGINT, bid BIGINT"
SQL = "SELECT a.k FROM {} WHERE a.k = b.k WINDOW 5 SECONDS"
MISTAKES: dict[str, tuple[Callable[[Desk], Any], str]] = {
    # sinks
    "format typo": (lambda d: d.write("parqet"), r"unknown sink format 'parqet'; did you mean 'parquet'\?"),
    "format delta": (
        lambda d: d.write("delta"),
        r"'delta' is not on Spark's classpath; add.*io\.delta:delta",
    ),
    "format kafka": (lambda d: d.write("kafka"), r"'kafka' is not on Spark's.*spark-sql-kafka-0-10_2\.13:4"),
    "format avro": (lambda d: d.write("avro"), r"'avro' is not on Spark's classpath.*spark-avro_2\.13:4"),
    "format class": (lambda d: d.write("com.acme.Sink"), r"Spark knows no sink format 'com\.acme\.Sink'"),
    "format rate": (lambda d: d.write("rate"), r"'rate' can be read but not written; known sinks: 'parquet'"),
    "format number": (lambda d: d.writer.format(5), r"format is a name, like 'parquet'; got 5"),
    "text of many columns": (
        lambda d: d.write("text"),
        r"text format holds one string column.*use csv or json",
    ),
    "csv of a struct": (
        lambda d: (
            d.join.selectExpr("struct(k) AS s")
            .writeStream.option("checkpointLocation", str(d.folder / "c"))
            .start(str(d.folder / "out"), "csv")
        ),
        r"column 's' is struct<k:bigint>, which csv files cannot hold; cast or drop it",
    ),
    "jdbc without url": (lambda d: d.writer.format("jdbc").start(), r"jdbc sink .*Option 'url' is required"),
    "jdbc without driver": (
        lambda d: d.writer.format("jdbc").start(url="jdbc:acme:x", dbtable="t"),
        r"jdbc sink cannot be opened: No suitable driver; .*driver on the classpath",
    ),
    "option typo": (
        lambda d: d.write("csv", heeder=True),
        r"option 'heeder' of csv; did you mean 'header'\?",
    ),
    "compression typo": (lambda d: d.write("json", compresion="gzip"), r"did you mean 'compression'\?"),
    "checkpoint_location": (
        lambda d: d.join.writeStream.option("checkpoint_location", "/tmp/x").start("/tmp/y"),
        r"unknown option 'checkpoint_location'; did you mean 'checkpointLocation'\?",
    ),
    "trigger as option": (
        lambda d: d.write("csv", processing_time="1 second"),
        r"'processing_time' is not an option; did you mean \.trigger\(processingTime=\.\.\.\)",
    ),
    "no checkpoint": (lambda d: d.join.writeStream.start("/tmp/y"), r"a checkpointLocation is needed"),
    "no path": (lambda d: d.writer.start(), r"the parquet sink needs a path: .*start\('some/folder'\)"),
    "two paths": (lambda d: d.writer.option("PATH", "x").start("y"), r"two paths are given, .*'x' .*'y'"),
    "hdfs refuses": (
        lambda d: d.writer.start("hdfs://127.0.0.1:1/out"),
        r"the path hdfs://127\.0\.0\.1:1/out cannot be written: .*[Cc]onnection",
    ),
    "checkpoint on hdfs": (
        lambda d: d.join.writeStream.option("checkpointLocation", "hdfs://127.0.0.1:1/c").start("/tmp/y"),
        r"the checkpoint hdfs://127\.0\.0\.1:1/c/weir cannot be read: .*[Cc]onnection",
    ),
    "unknown scheme": (
        lambda d: d.writer.start("s4://b/out"),
        r"cannot reach the path s4://b/out: No Fil.*s4",
    ),
    "partition typo": (
        lambda d: d.write("parquet", partitionBy="kk"),
        r"unknown column 'kk' in partitionBy; did you mean 'k'\? Known: 'k', 'av'",
    ),
    "partition by all": (
        lambda d: d.write("parquet", partitionBy=["k", "av", "bv", "aid", "bid"]),
        r"partitionBy names every column",
    ),
    "memory without name": (lambda d: d.join.writeStream.format("memory").start(), r"set queryName\("),
    "console rows": (
        lambda d: d.join.writeStream.format("console").start(numRows="many"),
        r"option numRows of the console is a whole number; got 'many'",
    ),
    "complete mode": (lambda d: d.write("csv", outputMode="complete"), r"outputMode must be 'append'"),
    # triggers
    "processing_time": (
        lambda d: d.writer.trigger(processing_time="1 second"),
        r"unknown keyword 'processing_time' of trigger; did you mean 'processingTime'\?",
    ),
    "trigger without keyword": (
        lambda d: d.writer.trigger("1 second"),
        r"trigger takes keywords: trigger\(processingTime='5 seconds'\).*; got '1 second'",
    ),
    "trigger of nothing": (lambda d: d.writer.trigger(), r"trigger takes exactly one keyword: trigger\("),
    "two triggers": (
        lambda d: d.writer.trigger(once=True, availableNow=True),
        r"trigger takes exactly one keyword: .*; got once and availableNow",
    ),
    "trigger False": (
        lambda d: d.writer.trigger(availableNow=False),
        r"availableNow=.*takes only True; got Fal",
    ),
    "trigger number": (lambda d: d.writer.trigger(processingTime=5), r"an interval, like '5 seconds'; got 5"),
    "trigger unit": (lambda d: d.writer.trigger(processingTime="5 secnds"), r"interval, .*; got '5 secnds'"),
    "continuous": (lambda d: d.writer.trigger(continuous="1 second"), r"not continuous: use processingTime"),
    # tables
    "table type": (
        lambda d: d.table(COLUMNS.replace("bid BIGINT", "bid STRING")),
        r"column 'bid' of table 'weir_mistake' is string, but the result's is bigint; cast it",
    ),
    "table lacks a column": (
        lambda d: d.table("k BIGINT, av BIGINT, bv BIGINT, aid BIGINT"),
        r"unknown result column 'bid' in table 'weir_mistake'; did you mean 'aid'\? Known: 'k'",
    ),
    "table has more": (
        lambda d: d.table(f"{COLUMNS}, note STRING"),
        r"the result has no column 'note', which table 'weir_mistake' has; select it",
    ),
    "table format": (
        lambda d: d.table(COLUMNS, "USING json"),
        r"table 'weir_mistake' is in json, not parquet: say \.format\('json'\)",
    ),
    "table partitions": (
        lambda d: d.table(COLUMNS, "USING parquet PARTITIONED BY (k)", "av"),
        r"table 'weir_mistake' is partitioned by k, not by av",
    ),
    "leftover folder": (
        Desk.leftover,
        r"table 'weir_mistake' cannot be created: .*already exists.*delete what an earlier table left",
    ),
    "view as table": (Desk.view, r"'weir_mistake_view' is a view, which cannot be written"),
    "two sinks": (
        lambda d: d.writer.foreachBatch(print).toTable("weir_mistake"),
        r"foreachBatch and toTable are two sinks; use one of them",
    ),
    # inputs
    "static and streaming": (
        lambda d: weir.join(a=d.streams["a"], b=d.statics["b"], **PAIR),
        r"stream 'a' is streaming and stream 'b' is static; read all with spark\.readStream, or join",
    ),
    "two watermarks": (Desk.watermarks, r"stream 'a' has watermarks on .*'paid'.*; say which .* time=\{'a'"),
    "time of a typo": (lambda d: d.timed("tss"), r"'tss'.*(did you mean 'ts'|no column)"),
    "time of a bigint": (
        lambda d: d.timed({"a": "a.k + 1", "b": "ts"}),
        r"time='a\.k \+ 1' of stream 'a' is long, not a timestamp; convert it, like timestamp_millis",
    ),
    "time of an unknown column": (
        lambda d: d.timed({"a": "to_timestamp(epoch)", "b": "ts"}),
        r"time='to_timestamp\(epoch\)' of stream 'a' is not valid: A column.*`epoch`",
    ),
    "time of the clock": (
        lambda d: d.timed({"a": "current_timestamp()", "b": "ts"}),
        r"time= of stream 'a' cannot be current_timestamp: a repeated batch would have another",
    ),
    # steps and actions
    "show": (lambda d: d.join.show(), r"'show' needs a result that ends, .* start it with writeStream"),
    "toPandas": (lambda d: d.join.toPandas(), r"'toPandas' needs a result that ends"),
    "write": (lambda d: d.join.write.parquet("x"), r"'write' needs a result that ends.*writeStream"),
    "groupBy": (lambda d: d.join.groupBy("k").count(), r"'groupBy' after a join would need state"),
    "unionByName": (lambda d: d.join.unionByName(None), r"'unionByName' after a join would need state"),
    "column typo": (lambda d: d.join["kk"], r"unknown column 'kk'; did you mean 'k'\?"),
    # statements
    "table not found": (
        lambda d: weir.sql(SQL.format("a, weir_nowhere b"), a=d.streams["a"]),
        r"unknown table 'weir_nowhere' in FROM; known: 'a'",
    ),
    "natural join": (
        lambda d: weir.sql("SELECT * FROM a NATURAL JOIN b WINDOW 5 SECONDS", **d.streams),
        r"NATURAL JOIN is not supported; only inner joins are",
    ),
}


@pytest.fixture(scope="module")
def feed(tmp_path_factory: pytest.TempPathFactory) -> Feed:
    return pair_feed(tmp_path_factory.mktemp("mistakes") / "in", 1)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_sentence(name: str, feed: Feed, spark: SparkSession, tmp_path: Path) -> None:
    make, sentence = MISTAKES[name]
    try:
        with pytest.raises(QueryError, match=sentence) as error:
            make(Desk(spark, feed, tmp_path)).stop()
    finally:
        spark.sql("DROP TABLE IF EXISTS weir_mistake")
    print(f"\n{name}: {error.value}")
    assert len(str(error.value)) < 400 and "\n" not in str(error.value)
    assert error.value.__cause__ is None or error.value.__suppress_context__
