"""Results that are read back go on exactly once, into a windowed count and a second join; DuckDB agrees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.dataset as ds
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.streaming.query import StreamingQuery

import weir
from weir.errors import QueryError
from weir.spark.join import SparkJoin
from weir.spark.query import SparkQuery
from weir.spark.result_log import ResultLog

from .streams import LATE, Feed, add_batch, bag, generate, read_bag, rows, write_feed

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SELECT = "a.ts, a.k, a.id AS aid, b.id AS bid"
ON = "a.k = b.k AND a.v <= b.v"
JOINED = """
    SELECT a.ts, a.k, a.id AS aid, b.id AS bid FROM a, b
    WHERE a.k = b.k AND a.v <= b.v AND a.ts < b.ts + INTERVAL 8 SECONDS AND b.ts < a.ts + INTERVAL 8 SECONDS
"""
LAST = 1000  # seconds: a last result so late that all other windows are closed


class KilledError(Exception):
    """Stands for the death of a driver."""


def define(frames: dict[str, DataFrame], **changes: Any) -> SparkJoin:
    asked = {"on": ON, "within": "8 seconds", "late": LATE, "select": SELECT, "partitions": 2, **changes}
    return weir.join(**frames, **asked)


def finish(query: StreamingQuery | SparkQuery) -> None:
    assert query.awaitTermination(120), "the query is still running"


def ask(feed: Feed, statement: str) -> Counter[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name, table in feed.tables().items():
            connection.register(name, table)
        return bag(connection.sql(statement).to_arrow_table())


def die_when_logging(monkeypatch: pytest.MonkeyPatch, after: bool) -> None:
    """Kill the query as it logs the next batch, whose files are published: before or after that."""
    add = ResultLog.add

    def fail(log: ResultLog, batch: int, names: Collection[str]) -> None:
        if after:
            add(log, batch, names)
        raise KilledError

    monkeypatch.setattr(ResultLog, "add", fail)


def test_a_windowed_count_through_stops_and_kills(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = generate(2, 4, 40, 5, seed=3)
    feed = write_feed(tmp_path / "in", {name: tables[:1] for name, tables in batches.items()})
    results, counts = tmp_path / "results", tmp_path / "counts"

    def join(**trigger: Any) -> Any:
        return define(feed.frames(spark)).readBack(str(results), str(tmp_path / "ckpt"), **trigger)

    def count(frame: DataFrame, **trigger: Any) -> StreamingQuery:
        counted = frame.groupBy(F.window("ts", "10 seconds")).count().select("window.start", "count")
        writer = counted.writeStream.outputMode("append").option(
            "checkpointLocation", str(tmp_path / "ckpt2")
        )
        return writer.trigger(**trigger).start(str(counts)) if trigger else writer.start(str(counts))

    def grow(number: int) -> None:
        nonlocal feed
        feed = add_batch(feed, {name: tables[number] for name, tables in batches.items()})

    # Both run, in one program, then both stop.
    frame, query = join(processingTime="100 milliseconds")
    assert [q.id for q in spark.streams.active] == [query.id]
    counter = count(frame, processingTime="100 milliseconds")
    query.processAllAvailable()
    grow(1)
    query.processAllAvailable()
    counter.processAllAvailable()
    counter.stop()
    query.stop()
    # The next batch dies before it is logged; its repeat dies after that, though before it is committed.
    before = read_bag(results)
    grow(2)
    for after in (False, True):
        with monkeypatch.context() as patched, pytest.raises(Exception, match="KilledError"):
            die_when_logging(patched, after)
            finish(join(availableNow=True).query)
        assert read_bag(results) == ask(feed, JOINED)
        logged = bag(spark.read.parquet(str(results)).toArrow())
        assert logged == (ask(feed, JOINED) if after else before), "a batch counts when it is logged"
        finish(count(frame, availableNow=True))
    grow(3)
    feed = add_batch(feed, {"a": rows([LAST], [0], [0]), "b": rows([LAST], [0], [0])})
    writer = define(feed.frames(spark)).writeStream.option("checkpointLocation", str(tmp_path / "ckpt"))
    finish(writer.trigger(availableNow=True).start(str(results)))  # as good as readBack, once there is a log
    finish(count(frame, availableNow=True))
    assert bag(spark.read.parquet(str(results)).toArrow()) == read_bag(results) == ask(feed, JOINED)
    start = "time_bucket(INTERVAL 10 SECONDS, ts)"
    counted = f"SELECT {start} AS start, count(*) AS count FROM ({JOINED}) GROUP BY ALL"
    answer = ask(feed, f"SELECT * FROM ({counted}) QUALIFY start < max(start) OVER ()")
    assert len(answer) > 4 and sum(count for count, _ in answer) > 200
    assert bag(spark.read.parquet(str(counts)).toArrow()) == answer


def test_two_joins_in_a_row(spark: SparkSession, tmp_path: Path) -> None:
    feed = write_feed(tmp_path / "in", generate(3, 3, 30, 4, seed=5))
    frames = feed.frames(spark)
    first = define({name: frames[name] for name in "ab"}).filter("aid % 2 = 0")
    pairs, query = first.readBack(str(tmp_path / "pairs"), str(tmp_path / "ckpt"), availableNow=True)
    finish(query)
    third = frames["c"].withWatermark("ts", LATE)
    second = weir.join(
        p=pairs, c=third, on="p.k = c.k", within="6 seconds", select="p.aid, p.bid, c.id AS cid", partitions=2
    )
    assert second.query.stream("p").late == (8_000_000 - 1 + 6_000_000 + 8_000_000 - 1) // 1000 * 1000 + 1000
    running = second.writeStream.option("checkpointLocation", str(tmp_path / "ckpt2")).trigger(
        availableNow=True
    )
    finish(running.start(str(tmp_path / "out")))
    answer = ask(
        feed,
        f"""SELECT p.aid, p.bid, c.id AS cid FROM ({JOINED}) p, c WHERE p.aid % 2 = 0 AND p.k = c.k
            AND p.ts < c.ts + INTERVAL 6 SECONDS AND c.ts < p.ts + INTERVAL 6 SECONDS""",
    )
    assert answer.total() > 100
    assert read_bag(tmp_path / "out") == answer


# --- what it refuses


@pytest.fixture
def frames(spark: SparkSession, tmp_path: Path) -> dict[str, DataFrame]:
    feed = write_feed(tmp_path / "in", {"a": [rows([1], [1])], "b": [rows([2], [1])]})
    return feed.frames(spark)


def refuse(join: SparkJoin, folder: Path, **asked: Any) -> str:
    with pytest.raises(QueryError) as error:
        join.readBack(str(folder / "out"), str(folder / "ckpt"), **asked)
    return str(error.value)


def test_a_time_that_weir_cannot_judge_is_refused(frames: dict[str, DataFrame], tmp_path: Path) -> None:
    join = define(frames)
    assert "select one of a.ts, b.ts" in refuse(join.drop("ts"), tmp_path)
    later = join.transform(lambda frame: frame.withColumn("ts", F.col("ts") + F.expr("INTERVAL 1 DAY")))
    assert "select one of" in refuse(later, tmp_path)
    assert "'ts' is not the event time of a stream" in refuse(later, tmp_path, time="ts")
    assert "unknown column 'tss'" in refuse(join, tmp_path, time="tss")
    assert "must be a timestamp; 'k' is bigint" in refuse(join, tmp_path, time="k")
    assert "cannot be negative" in refuse(join, tmp_path, late="-1 second")
    counted = define(frames, within=weir.rows(5), partitions=1)
    assert "windows that count rows" in refuse(counted, tmp_path)
    assert not (tmp_path / "out").exists() and not (tmp_path / "ckpt").exists()


def test_a_folder_of_something_else_is_refused(frames: dict[str, DataFrame], tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "part-0.parquet").write_bytes(b"")
    assert "files that readBack did not write" in refuse(define(frames), tmp_path)


def test_the_time_may_be_renamed_and_its_lateness_given(
    spark: SparkSession, frames: dict[str, DataFrame], tmp_path: Path
) -> None:
    renamed = define(frames, within=weir.rows(5), partitions=1).select(F.col("ts").alias("the time"), "k")
    back = renamed.readBack(
        str(tmp_path / "out"),
        str(tmp_path / "ckpt"),
        late="90 seconds",
        availableNow=True,
        queryName="renamed",
    )
    finish(back.query)
    assert back.query.name == "renamed"
    assert back.frame.isStreaming and back.frame.columns == ["the time", "k"]
    assert back.frame.schema["the time"].metadata == {"spark.watermarkDelayMs": 90_000}
    assert ds.dataset(tmp_path / "out", format="parquet").to_table().num_rows == 1
    (tmp_path / "ckpt").rename(tmp_path / "moved")
    assert "results of another checkpoint" in refuse(renamed, tmp_path, late="90 seconds")
