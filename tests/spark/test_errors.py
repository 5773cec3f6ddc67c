"""Errors say what is wrong, where, and what to do."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import weir
from weir.errors import QueryError
from weir.runtime.batch_events import listen
from weir.spark.join import SparkJoin

from .streams import PAIR, Feed, expected, pair_feed, read_bag, rows, run

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.fixture(scope="module")
def feed(tmp_path_factory: pytest.TempPathFactory) -> Feed:
    return pair_feed(tmp_path_factory.mktemp("errors") / "in", 1)


@pytest.fixture(scope="module")
def join(feed: Feed, spark: SparkSession) -> SparkJoin:
    return weir.join(**feed.frames(spark), **PAIR)


def test_a_missing_checkpoint_location_is_refused(join: SparkJoin, tmp_path: Path) -> None:
    with pytest.raises(QueryError, match=r"a checkpointLocation is needed.*option\(\"checkpointLocation\""):
        join.writeStream.format("parquet").start(str(tmp_path / "out"))
    with pytest.raises(QueryError, match="a checkpointLocation is needed"):
        join.writeStream.foreachBatch(lambda results, batch: None).start()


def test_an_unwritable_checkpoint_is_refused(join: SparkJoin, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(QueryError, match=r"checkpoint .*file/ckpt.* cannot be written"):
        run(join, tmp_path / "file" / "ckpt", tmp_path / "out")


def test_a_checkpoint_among_the_results_is_refused(join: SparkJoin, tmp_path: Path) -> None:
    with pytest.raises(QueryError, match=r"path and checkpointLocation are one folder, file:.*; use two"):
        run(join, tmp_path / "out", tmp_path / "out")
    assert not list((tmp_path / "out").glob("part-*"))


def test_an_unwritable_output_path_is_named(join: SparkJoin, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(Exception, match=str(tmp_path / "file")) as error:
        run(join, tmp_path / "ckpt", tmp_path / "file" / "out")
    assert isinstance(error.value, QueryError) or "batch 0 failed" in str(error.value)


def test_an_unknown_scheme_is_refused(join: SparkJoin, tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="nosuch"):
        join.writeStream.option("checkpointLocation", "nosuch://host/ckpt").start(str(tmp_path / "out"))
    with pytest.raises(QueryError, match="nosuch"):
        join.writeStream.option("checkpointLocation", str(tmp_path)).start("nosuch://host/out")


@pytest.mark.parametrize("mode", ["complete", "update", "Complete"])
def test_only_append_mode_is_accepted(mode: str, join: SparkJoin) -> None:
    with pytest.raises(QueryError, match=f"outputMode must be 'append'; got '{mode}'"):
        join.writeStream.outputMode(mode)
    assert join.writeStream.outputMode("Append") is not None


def test_incomplete_sinks_are_refused(join: SparkJoin, tmp_path: Path) -> None:
    ready = str(tmp_path / "ckpt")
    for format in ("parquet", "json"):
        with pytest.raises(QueryError, match=f"the {format} sink needs a path"):
            join.writeStream.format(format).option("checkpointLocation", ready).start()
    with pytest.raises(QueryError, match="queryName"):
        join.writeStream.format("memory").start()
    with pytest.raises(QueryError, match="use foreachBatch"):
        join.writeStream.foreach(print)
    for trigger in ({"continuous": "1 second"}, {"realTime": "1 second"}):
        with pytest.raises(QueryError, match="processingTime, availableNow or once"):
            join.writeStream.trigger(**trigger)
    with pytest.raises(QueryError, match="unknown parquet compression 'zip'; use snappy"):
        writer = join.writeStream.option("checkpointLocation", ready).option("compression", "zip")
        writer.start(str(tmp_path / "out"))


@pytest.mark.parametrize("partitions", [0, -1, 1.5, True, "2"])
def test_partitions_must_be_a_positive_integer(partitions: Any, feed: Feed, spark: SparkSession) -> None:
    with pytest.raises(QueryError, match="partitions must be a whole number of at least 1; got"):
        weir.join(**feed.frames(spark), **PAIR, partitions=partitions)


def test_dataframes_and_tables_do_not_mix(feed: Feed, spark: SparkSession) -> None:
    frames = feed.frames(spark)
    with pytest.raises(QueryError, match="stream 'b' must be a Spark DataFrame like the others; got Table"):
        weir.join(a=frames["a"], b=rows([1], [1]), **PAIR)
    with pytest.raises(QueryError, match="partitions= applies to Spark DataFrames"):
        weir.join(**feed.tables(), **PAIR, partitions=2)


def test_static_joins_use_to_df_and_streaming_ones_write_stream(
    feed: Feed, join: SparkJoin, spark: SparkSession
) -> None:
    with pytest.raises(QueryError, match=r"static: use toDF\(\)"):
        weir.join(**feed.statics(spark), **PAIR).writeStream  # noqa: B018 - asking is the test
    with pytest.raises(QueryError, match="start it with writeStream"):
        join.toDF()


def test_columns_that_arrow_cannot_carry_are_refused(feed: Feed, spark: SparkSession) -> None:
    statics = feed.statics(spark)
    odd = statics["a"].selectExpr("*", "make_interval(1, 2) AS span")
    with pytest.raises(QueryError, match="column 'span' of stream 'a' is interval, which Arrow cannot carry"):
        weir.join(a=odd, b=statics["b"], **PAIR)
    nested = statics["a"].selectExpr("*", "array(make_interval(1, 2)) AS spans")
    with pytest.raises(QueryError, match="column 'spans' of stream 'a' is array<interval>"):
        weir.join(a=nested, b=statics["b"], **PAIR)


def test_columns_that_arrow_would_convert_are_refused(feed: Feed, spark: SparkSession) -> None:
    statics = feed.statics(spark)
    for column, shown in (
        ("parse_json('1') AS odd", "variant"),
        ("array(parse_json('1')) AS odd", "array<variant>"),
        ("'x' COLLATE UTF8_LCASE AS odd", "string collate UTF8_LCASE"),
    ):
        with pytest.raises(QueryError, match=f"column 'odd' of stream 'a' is {shown}, which Arrow cannot"):
            weir.join(a=statics["a"].selectExpr("*", column), b=statics["b"], **PAIR)
    days = statics["a"].selectExpr("*", "INTERVAL '3' DAY AS days")
    found = weir.join(a=days, b=statics["b"], **{**PAIR, "select": "a.days"}).toDF().first()
    assert found is not None and found.days == datetime.timedelta(days=3)


def test_spark_connect_is_refused() -> None:
    kind = type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe"})
    with pytest.raises(QueryError, match=r"stream 'a' belongs to Spark Connect.*classic session"):
        weir.join(a=kind(), b=kind(), **PAIR)


def test_a_deleted_input_file_is_named_and_no_result_is_lost(spark: SparkSession, tmp_path: Path) -> None:
    feed = pair_feed(tmp_path / "in", 2)
    lost = tmp_path / "in" / "b" / "0001.parquet"

    def lose(phase: str, batch: int) -> None:
        if (phase, batch) == ("decide", 1):
            lost.rename(tmp_path / "elsewhere")

    stop = listen(lose)
    try:
        with pytest.raises(Exception, match=f"{lost}.* does not exist") as error:
            run(weir.join(**feed.frames(spark), **PAIR), tmp_path / "ckpt", tmp_path / "out")
    finally:
        stop()
    assert "batch 1 failed" in str(error.value)
    (tmp_path / "elsewhere").rename(lost)
    run(weir.join(**feed.frames(spark), **PAIR), tmp_path / "ckpt", tmp_path / "out")
    assert read_bag(tmp_path / "out") == expected(feed.tables(), **PAIR)


def test_a_changed_column_type_in_input_files_fails_without_output(
    spark: SparkSession, tmp_path: Path
) -> None:
    feed = pair_feed(tmp_path / "in", 1)
    frames = feed.frames(spark)
    path = next((tmp_path / "in" / "b").iterdir())
    pq.write_table(feed.tables()["b"].set_column(1, "k", pa.array(["x"] * 40)), path)
    with pytest.raises(Exception, match=path.name):
        run(weir.join(**frames, **PAIR), tmp_path / "ckpt", tmp_path / "out")
    assert not list((tmp_path / "out").glob("part-*"))


def test_unknown_names_are_refused(feed: Feed, spark: SparkSession) -> None:
    with pytest.raises(QueryError, match="kk"):
        weir.join(**feed.frames(spark), **{**PAIR, "on": "a.kk = b.k"})
    with pytest.raises(QueryError, match="'x'"):
        weir.join(**feed.frames(spark), **PAIR, driver_order=["a", "x"])


def test_a_second_query_of_the_same_name_is_refused(join: SparkJoin, tmp_path: Path) -> None:
    def start(number: int) -> Any:
        writer = join.writeStream.format("noop").queryName("weir_once")
        return writer.option("checkpointLocation", str(tmp_path / str(number))).start()

    first = start(1)
    try:
        with pytest.raises(Exception, match="weir_once"):
            start(2)
    finally:
        first.stop()
