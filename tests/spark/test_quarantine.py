"""`on_error="quarantine"` on Spark: no row ends a query, and what is left out is written once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import weir
from weir.runtime.batch_events import listen
from weir.spark import quarantine_files
from weir.spark.filesystem import LocalFolder
from weir.spark.quarantine_files import QuarantineFolder

from .streams import (
    LATE,
    START,
    Feed,
    bag,
    finish,
    pair_feed,
    read_bag,
    repeat_last_batch,
    rows,
    run,
    write_feed,
)

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("ansi")]

# A filter and a column that Spark computes may fail, and so may a condition and a column of the kernel.
ASKED: dict[str, Any] = {
    "on": "a.k = b.k AND 12 / a.v > 3 AND a.id / b.v >= 0",
    "within": "8 seconds",
    "late": LATE,
    "select": "a.id AS aid, b.id AS bid, a.id % (b.id - 7) AS m, 100 div (b.v - 1) AS d",
}
NEAR = "a.k = b.k AND abs(epoch_us(a.ts) - epoch_us(b.ts)) < 8000000"
JOINS = f"{NEAR} AND a.v <> 0 AND 12 / a.v > 3 AND a.id IS NOT NULL"
FAILING = "(b.v = 0 OR b.id = 7 OR b.v = 1)"


@pytest.fixture
def ansi(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.ansi.enabled", "true")
    yield
    spark.conf.set("spark.sql.ansi.enabled", "false")


@pytest.fixture(scope="module")
def feed(tmp_path_factory: pytest.TempPathFactory) -> Feed:
    return pair_feed(tmp_path_factory.mktemp("quarantine") / "in", 2)


def ask_duckdb(feed: Feed, select: str, where: str, streams: str = "a, b") -> Counter[tuple[Any, ...]]:
    connection = duckdb.connect()
    for name, table in feed.tables().items():
        connection.register(name, table)
    return bag(connection.sql(f"SELECT {select} FROM {streams} WHERE {where}").to_arrow_table())


def expect(feed: Feed) -> tuple[Counter[tuple[Any, ...]], Counter[tuple[Any, ...]]]:
    """The results, and the event times of what is left out: rows of a, and pairs of rows."""
    select = "a.id AS aid, b.id AS bid, a.id % (b.id - 7) AS m, 100 // (b.v - 1) AS d"
    results = ask_duckdb(feed, select, f"{JOINS} AND a.id / b.v >= 0 AND NOT {FAILING}")
    micros = "epoch_us(a.ts) AS at, epoch_us(b.ts) AS bt"
    pairs = ask_duckdb(feed, micros, f"{JOINS} AND b.v IS NOT NULL AND {FAILING}")
    rows = ask_duckdb(feed, "epoch_us(a.ts) AS at, NULL::BIGINT AS bt", "a.v = 0", "a")
    assert min(map(len, (results, pairs, rows))) > 3
    return results, pairs + rows


def read_quarantine(spark: SparkSession, checkpoint: Path) -> Counter[tuple[Any, ...]]:
    frame = spark.read.parquet(str(checkpoint / "weir/quarantine"))
    micros = ("unix_micros(rows.a.event_time)", "unix_micros(rows.b.event_time)")
    return Counter(map(tuple, frame.selectExpr(*micros).collect()))


def list_files(checkpoint: Path) -> list[str]:
    return sorted(path.name for path in (checkpoint / "weir/quarantine").iterdir())


def count_quarantined(query: Any) -> int:
    return sum(progress["weir"]["numRowsQuarantined"] for progress in query.recentProgress)


def test_files_hold_what_is_left_out_and_a_repeated_batch_replaces_its_own(
    spark: SparkSession, feed: Feed, tmp_path: Path
) -> None:
    results, left_out = expect(feed)
    checkpoint, out = tmp_path / "ckpt", tmp_path / "out"

    def start() -> Any:
        joined = weir.join(**feed.frames(spark), **ASKED, partitions=2, on_error="quarantine")
        return run(joined, checkpoint, out)

    query = start()
    assert read_bag(out) == results
    assert read_quarantine(spark, checkpoint) == left_out
    assert count_quarantined(query) == sum(left_out.values())
    files = list_files(checkpoint)
    assert files and all(name.startswith(("part-000000000-", "part-000000001-")) for name in files)
    shown = (
        spark.read.parquet(str(checkpoint / "weir/quarantine")).selectExpr("expression", "error").collect()
    )
    errors = {(row.expression, row.error) for row in shown}
    assert ("12 / a.v > 3", '12 / a.v > 3 fails: Spark cannot compute it for {"v":0}') in errors
    assert any(e.startswith("a.id / b.v") and "division by zero" in error for e, error in errors)
    repeat_last_batch(checkpoint)
    (checkpoint / "weir/quarantine/_part-000000001-0000-0-0123456789ab.parquet").touch()
    start()
    assert read_bag(out) == results and read_quarantine(spark, checkpoint) == left_out
    assert list_files(checkpoint) == files


@pytest.mark.parametrize("spread", ["auto", "share", "psp"])
def test_a_batch_that_fails_before_its_commit_leaves_no_second_copy(
    spread: str, spark: SparkSession, feed: Feed, tmp_path: Path
) -> None:
    """The sink of the first attempt reads everything and fails, the second is over when its driver dies."""
    results, left_out = expect(feed)
    checkpoint, taken = tmp_path / "ckpt", dict[int, Counter[tuple[Any, ...]]]()
    attempts = iter([1, 2, 3])

    def sink(frame: DataFrame, batch: int) -> None:
        frame.count()  # a second reading
        taken[batch] = bag(frame.toArrow())
        if batch == 1 and next(attempts) == 1:
            raise ConnectionError("the other side hung up")

    def start() -> Any:
        joined = weir.join(**feed.frames(spark), **ASKED, partitions=2, spread=spread, on_error="quarantine")
        writer = joined.writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint))
        return finish(writer.trigger(availableNow=True).start())

    def die(phase: str, batch: int) -> None:
        if (phase, batch) == ("sync_results", 1):
            raise ConnectionError("the driver died")

    with pytest.raises(Exception, match="the other side hung up"):
        start()
    stop = listen(die)
    try:
        with pytest.raises(Exception, match="the driver died"):
            start()
    finally:
        stop()
    assert read_quarantine(spark, checkpoint) == left_out
    query = start()
    assert sum(taken.values(), Counter()) == results
    assert read_quarantine(spark, checkpoint) == left_out
    assert all(name.startswith("part-") for name in list_files(checkpoint))
    assert 0 < count_quarantined(query) < sum(left_out.values())


def test_a_poisoned_query_goes_on_with_another_on_error(spark: SparkSession, tmp_path: Path) -> None:
    """The row that fails was stored in the batch before, and nothing had joined it there."""

    def table(seconds: int, k: list[int], v: list[int]) -> pa.Table:
        times = pa.array([START + seconds * 1_000_000] * len(k), pa.timestamp("us", "UTC"))
        return pa.table({"ts": times, "k": k, "v": v})

    feed = write_feed(tmp_path / "in", {
        "a": [table(0, [1, 2], [0, 5]), table(1, [3], [4]), table(2, [3], [0])],
        "b": [table(0, [9], [9]), table(1, [1, 2], [1, 1]), table(2, [1, 2], [2, 2])],
    })  # fmt: skip
    checkpoint, out = tmp_path / "ckpt", tmp_path / "out"

    def start(on_error: str) -> Any:
        asked = {"on": "a.k = b.k", "within": "1 minute", "select": "20 div a.v AS d, b.v AS bv"}
        return run(weir.join(**feed.frames(spark), **asked, on_error=on_error), checkpoint, out)

    for _ in range(2):
        with pytest.raises(weir.EvaluationError, match=r"20 div a.v fails: Spark cannot compute it"):
            start("fail")
    stop = listen(lambda phase, batch: stop_at(phase, batch, 2))
    try:
        with pytest.raises(Exception, match="stopped before batch 2"):
            start("quarantine")
    finally:
        stop()
    assert read_bag(out) == Counter({(1, 4): 1})
    assert sum(read_quarantine(spark, checkpoint).values()) == 1
    start("null")
    assert read_bag(out) == Counter({(1, 4): 1, (2, 4): 1, (2, None): 1})
    assert sum(read_quarantine(spark, checkpoint).values()) == 1


def stop_at(phase: str, batch: int, last: int) -> None:
    if (phase, batch) == ("decide", last):
        raise ConnectionError(f"stopped before batch {last}")


def test_an_event_time_that_fails_is_a_row_without_one(
    spark: SparkSession, feed: Feed, tmp_path: Path
) -> None:
    time = "CASE WHEN id < 3 THEN to_timestamp('no time') ELSE ts END"
    asked = {**ASKED, "on": "a.k = b.k", "select": "a.id AS aid, b.id AS bid", "time": {"a": time, "b": "ts"}}
    query = run(
        weir.join(**feed.frames(spark), **asked, on_error="quarantine"), tmp_path / "ckpt", tmp_path / "out"
    )
    assert query.recentProgress[0]["weir"]["streams"]["a"]["numRowsNullTime"] == 3
    answer = ask_duckdb(feed, "a.id AS aid, b.id AS bid", f"{NEAR} AND a.id >= 3")
    assert read_bag(tmp_path / "out") == answer


def test_what_cannot_be_quarantined_is_refused(spark: SparkSession, feed: Feed) -> None:
    with pytest.raises(weir.QueryError, match="writes into the checkpoint of a streaming query"):
        weir.join(**feed.statics(spark), **ASKED, on_error="quarantine").toDF()
    select = "conv(cast(a.id + b.id AS string), 10, 16) AS h"
    with pytest.raises(weir.QueryError, match=r"'conv\(.*' is computed by Spark from the results"):
        weir.join(**feed.frames(spark), **{**ASKED, "select": select}, on_error="quarantine")


def test_a_folder_takes_no_more_than_so_many_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(quarantine_files, "MAX_FILES", 2)
    folder = QuarantineFolder(LocalFolder(f"file:{tmp_path}", str(tmp_path)))
    (tmp_path / "quarantine").mkdir()
    (tmp_path / "quarantine" / "part of my notes").touch()
    for batch in (0, 1, 2, 1):
        name = f"_part-{batch:09d}-0000-0-0123456789ab.parquet"
        (tmp_path / "quarantine" / name).write_text(f"of batch {batch}")
        folder.publish(batch, [name], cleans_up=True)
    kept = ["part of my notes", *(f"part-{batch:09d}-0000-0.parquet" for batch in (0, 1))]
    assert sorted(path.name for path in (tmp_path / "quarantine").iterdir()) == kept
    (warning,) = caplog.records
    assert "has 2 files; move or delete them" in warning.getMessage()
    folder.publish(1, [], cleans_up=True)  # the repeat leaves nothing out
    assert sorted(path.name for path in (tmp_path / "quarantine").iterdir()) == kept[:2]


def test_rows_dropped_for_their_time_are_kept(spark: SparkSession, tmp_path: Path) -> None:
    batches = {
        "a": [rows([10, 20], [1, 1]), rows([3, None, 21], [1, 1, 1])],
        "b": [rows([10, 20], [1, 1]), rows([7_900 * 31_556_952, 22], [1, 1])],
    }
    feed = write_feed(tmp_path / "in", batches)
    asked: dict[str, Any] = {"on": "a.k = b.k", "within": "5 seconds", "select": "a.id AS aid, b.id AS bid"}
    joined = weir.join(**feed.frames(spark), **asked, partitions=2, on_error="quarantine")
    for _ in range(2):  # a repeated batch replaces its own
        query = run(joined, tmp_path / "ckpt", tmp_path / "out")
        frame = spark.read.parquet(str(tmp_path / "ckpt/weir/quarantine"))
        shown = frame.selectExpr("expression", "split(error, ':')[0]", "rows.a.columns['id']", "batch")
        assert Counter(map(tuple, shown.collect())) == Counter(
            [
                ("a.ts", "late", "0", 1),
                ("a.ts", "without an event time", "1", 1),
                ("b.ts", "ahead", None, 1),
            ]
        )
        repeat_last_batch(tmp_path / "ckpt")
    assert count_quarantined(query) == 0
