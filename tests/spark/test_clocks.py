"""Clocks on Spark: backfills, wrong clocks, silent streams, and repeats that decide by the recorded clock."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

import weir
from weir.plan.tree import join as tree
from weir.runtime import commit
from weir.runtime.batch_events import listen
from weir.runtime.wall_clock import use_wall_clock
from weir.testing import Crash, ListSource, ManualClock, Wait
from weir.testing import run as run_job

from .streams import PAIR, SECOND, Feed, expected, pair_feed, read_bag, rows, run, write_feed

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

TODAY = 1_800_000_000 * SECOND
PER_SECOND, WINDOW = 4, 20
ASKED: dict[str, Any] = {
    "on": "a.k = b.k",
    "within": f"{WINDOW} seconds",
    "select": "a.id AS a, b.id AS b",
    "partitions": 2,
}


@contextmanager
def a_second_for_each_batch(seconds: int = 1) -> Iterator[None]:
    """A wall clock that goes on with the batches."""
    now = [TODAY]

    def go_on(phase: str, batch: int) -> None:
        if phase == "decide":
            now[0] = TODAY + batch * seconds * SECOND

    stop = listen(go_on)
    try:
        with use_wall_clock(lambda: now[0]):
            yield
    finally:
        stop()


def fast_and_slow(root: Path, files: int, bad_row: int | None = None) -> Feed:
    """Streams of the same length; a comes four times as fast while both have data."""

    def span(name: str, first: int, last: int) -> pa.Table:
        seconds = [n / PER_SECOND for n in range(first * PER_SECOND, last * PER_SECOND)]
        table = rows(seconds, [n * (7 if name == "a" else 3) // 2 % 5 for n in range(len(seconds))])
        ids = pa.array(range(first * PER_SECOND, last * PER_SECOND), pa.int64())
        return table.set_column(3, "id", ids)

    a = [span("a", 40 * n, 40 * n + 40) if 4 * n < files else rows([], []) for n in range(files)]
    b = [span("b", 10 * n, 10 * n + 10) for n in range(files)]
    if bad_row is not None:
        b[bad_row] = pa.concat_tables([b[bad_row], rows([7_900 * 31_556_952], [1])])
    return write_feed(root, {"a": a, "b": b})


def joined(feed: Feed) -> Counter[tuple[Any, ...]]:
    """The join of all rows but those of the far future, by DuckDB."""
    tables = feed.tables()
    with duckdb.connect(config={"threads": 1}) as connection:
        for name, table in tables.items():
            connection.register(name, table.filter(pc.less(pc.year(table["ts"]), 3000)))
        near = f"abs(epoch_us(a.ts) - epoch_us(b.ts)) < {WINDOW * SECOND}"
        return Counter(
            connection.execute(f"SELECT a.id, b.id FROM a, b WHERE a.k = b.k AND {near}").fetchall()
        )


@pytest.mark.parametrize("spread", ["hash", "share", "psp"])
def test_a_backfill_is_complete_and_parks_what_is_ahead(
    spread: Any, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit, "MIN_PARKED_ROWS", 1)
    feed = fast_and_slow(tmp_path / "in", files=8, bad_row=3)
    join = weir.join(**feed.frames(spark), **ASKED, spread=spread, idle="3 seconds")
    with a_second_for_each_batch():
        query = run(join, tmp_path / "ckpt", tmp_path / "out")
    wanted = joined(feed)
    assert wanted.total() > 1000 and read_bag(tmp_path / "out") == wanted
    progress = [shown["weir"] for shown in query.recentProgress]
    streams = [section["streams"].get("b", {}) for section in progress]
    assert sum(counted.get("numRowsAhead", 0) for counted in streams) == 1
    assert sum(counted.get("numRowsDroppedByWatermark", 0) for counted in streams) == 0
    assert {name for section in progress for name in section["idle"]} == {"a"}
    parked = [section["state"]["a"]["numRowsParked"] for section in progress]
    assert parked[0] == 0 < max(parked) and parked[-1] == 0
    live = max(sum(state["numRowsTotal"] for state in section["state"].values()) for section in progress)
    window, batch = 2 * WINDOW * PER_SECOND, 50 * PER_SECOND
    assert live <= 1.5 * window + batch


def test_a_tree_opens_what_was_parked(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of three streams are ahead: one waits for its partner below, one for what those two make."""
    monkeypatch.setattr(commit, "MIN_PARKED_ROWS", 1)
    feed = fast_and_slow(tmp_path / "in", files=6)
    frames = {**feed.frames(spark), "c": feed.frame(spark, "a")}
    asked: dict[str, Any] = {
        "on": "a.k = b.k AND b.k = c.k AND a.v = c.v",
        "within": f"{WINDOW} seconds",
        "plan": tree(tree("a", "b"), "c"),
    }
    query = run(weir.join(**frames, **asked, partitions=2), tmp_path / "ckpt", tmp_path / "out")
    wanted = expected({**feed.tables(), "c": feed.tables()["a"]}, **asked)
    assert wanted.total() > 100 and read_bag(tmp_path / "out") == wanted
    parked = [shown["weir"]["state"] for shown in query.recentProgress]
    assert all(max(state[name]["numRowsParked"] for state in parked) > 0 for name in "ac")


def row(clock: ManualClock, **columns: Any) -> dict[str, Any]:
    return {"ts": clock.now(), **columns}


def steps(clock: ManualClock, *between: Any) -> ListSource:
    """Ten minutes without a row of b, while a goes on; then b comes back, too late and in time."""
    first = {"a": [row(clock, k=1)], "b": [row(clock, k=1)]}
    late = {"ts": clock.now(), "k": 2}
    batches = []
    for _ in range(2):
        clock.advance("5 minutes")
        batches.append({"a": [row(clock, k=2)]})
    return ListSource(
        first,
        Wait("5 minutes"),
        batches[0],
        *between,
        Wait("5 minutes"),
        batches[1],
        {"b": [late, row(clock, k=2)]},
    )


def by_key(**streams: Any) -> Any:
    return weir.join(**streams, on="a.k = b.k", within="1 minute", select="a.k", idle="10 minutes")


@pytest.mark.parametrize("crash", ["decide", "sync_batch", "spark_commit"])
def test_a_repeat_decides_by_the_recorded_clock(crash: str, spark: SparkSession, tmp_path: Path) -> None:
    """The repeat of a batch begins an hour later, when b would be idle: it is not, by the clock recorded."""
    clock = ManualClock("2024-01-02 12:00+00:00")
    reads: list[int] = []
    offset = [0]

    def postpone(phase: str, batch: int) -> None:
        if (phase, batch) == (crash, 1):
            offset[0] += 3600 * SECOND

    def read() -> int:
        reads.append(TODAY + len(reads) * SECOND + offset[0])
        return reads[-1]

    source = steps(clock, Crash(crash))
    stop = listen(postpone)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("weir.testing.collect.read_system_clock", read)
            found = run_job(by_key, source, spark, tmp_path)
    finally:
        stop()
    assert len(reads) == len(source.batches), "every batch reads the clock once, whatever happens to it"
    assert [section["idle"] for section in found.progress[:2]] == [[], ["b"] if crash == "decide" else []]


def test_a_silent_stream_becomes_idle_and_comes_back(spark: SparkSession, tmp_path: Path) -> None:
    found = run_job(by_key, steps(ManualClock("2024-01-02 12:00+00:00")), spark, tmp_path)
    assert [section["idle"] for section in found.progress] == [[], [], ["b"], []]
    assert found.late == {"b": 1}
    assert found.rows == [{"k": 1}, {"k": 2}]
    marks = [section["watermark"] for section in found.progress]
    assert [mark - marks[0] for mark in marks] == [0, 0, 600 * SECOND, 600 * SECOND]


def test_ahead_can_be_turned_off_and_has_to_be_a_length(spark: SparkSession, tmp_path: Path) -> None:
    feed = pair_feed(tmp_path / "in", batches=1)
    year_3000 = {name: [_shift(table) for table in tables] for name, tables in feed.batches.items()}
    later = write_feed(tmp_path / "later", year_3000)
    for ahead, results in (("1 hour", 0), (None, expected(feed.tables(), **PAIR).total())):
        join = weir.join(**later.frames(spark), **PAIR, ahead=ahead)
        query = run(join, tmp_path / f"ckpt {ahead}", format="noop")
        assert query.lastProgress["weir"]["numOutputRows"] == results
    with pytest.raises(weir.QueryError, match=r"ahead=60 has no unit; write '60 seconds'$"):
        weir.join(**feed.frames(spark), **PAIR, ahead=60)


def _shift(table: pa.Table) -> pa.Table:
    times = pc.add(table["ts"].cast(pa.int64()), 31_000_000_000 * SECOND)
    return table.set_column(0, table.schema.field("ts"), times.cast(table.schema.field("ts").type))


def test_stop_in_a_long_batch_returns_promptly(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Workers sleep in a condition for a minute; `stop` does not wait for them, and says nothing."""
    lingers = tmp_path / "lingers"
    lingers.touch()

    def is_near(left: pa.Array, right: pa.Array) -> pa.Array:
        if lingers.exists():
            (tmp_path / "begun").touch()
            time.sleep(60)
        return pc.less_equal(left, right)

    feed = pair_feed(tmp_path / "in")
    asked = {**PAIR, "on": "a.k = b.k AND near(a.v, b.v)", "functions": {"near": weir.udf(is_near)}}
    writer = weir.join(**feed.frames(spark), **asked).writeStream.option(
        "checkpointLocation", str(tmp_path / "c")
    )
    query = writer.format("parquet").start(str(tmp_path / "out"))
    deadline = time.monotonic() + 60
    while not (tmp_path / "begun").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    capfd.readouterr()
    with caplog.at_level(logging.INFO):
        started = time.monotonic()
        query.stop()
        seconds = time.monotonic() - started
    assert seconds < 10 and query.exception() is None
    assert not [record for record in caplog.records if record.exc_info]
    assert "Traceback" not in capfd.readouterr().err
    lingers.unlink()
    run(weir.join(**feed.frames(spark), **asked), tmp_path / "c", tmp_path / "out")
    assert read_bag(tmp_path / "out") == expected(feed.tables(), **PAIR)
