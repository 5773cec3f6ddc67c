"""Oracle: streaming results equal those of the same query over all rows at once."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import weir
from weir.errors import QueryError
from weir.plan.tree import join as tree

from .streams import LATE, SECOND, bag, expected, generate, read_bag, rows, run, write_feed

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@dataclass(frozen=True)
class Case:
    streams: int
    residual: str
    partitions: int
    plan: Any = "mjoin"
    trigger: str = "availableNow"
    format: str = "parquet"
    window: int = 8
    keys: int = 6
    driver_order: Any = "auto"
    batches: int = 4
    rates: dict[str, float] | None = None

    @property
    def names(self) -> str:
        return "abcdef"[: self.streams]

    @property
    def on(self) -> str:
        equal = [f"{x}.k = {y}.k" for x, y in zip(self.names, self.names[1:], strict=False)]
        return " AND ".join([*equal, self.residual])

    def asked(self) -> dict[str, Any]:
        select = ", ".join(f"{x}.v AS {x}v" for x in self.names)
        return {"on": self.on, "within": f"{self.window} seconds", "late": LATE, "select": f"a.k, {select}"}


CASES = {
    "two streams, one partition": Case(2, "a.v < b.v", partitions=1),
    "two streams, eight partitions, json": Case(2, "a.v <> b.v", partitions=8, format="json", batches=2),
    "three streams, any one first": Case(3, "a.v + b.v <> c.v", partitions=3, driver_order=("c", "b", "a")),
    "three streams, bjtree, once": Case(
        3, "a.v >= c.v", partitions=2, plan="bjtree", trigger="once", driver_order="round-robin"
    ),
    "three streams, interleaved, json": Case(
        3, "a.v >= c.v", 2, plan="bjtree", format="json", driver_order="timestamp", batches=2
    ),
    "three streams, chosen by rates": Case(
        3, "a.v >= c.v", 2, plan="auto", rates={"a": 1, "b": 1, "c": 900}, batches=3
    ),
    "four streams, bushy, triggered": Case(
        4, "a.v <= d.v", 4, plan=tree(tree("a", "b"), tree("c", "d")), trigger="processingTime", keys=12
    ),
    "five streams, mixed": Case(
        5, "a.v = e.v", 2, plan=tree(tree("a", "b", "c"), "d", "e"), keys=16, driver_order="least-work"
    ),
    "six streams, json": Case(6, "a.v < f.v", 2, format="json", keys=24, window=12, batches=3),
}  # fmt: skip
PER_BATCH = 60


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_stream_equals_batch(case: Case, spark: SparkSession, tmp_path: Path) -> None:
    feed = write_feed(
        tmp_path / "in", generate(case.streams, case.batches, PER_BATCH, case.keys, seed=case.streams)
    )
    join = weir.join(
        **feed.frames(spark),
        **case.asked(),
        plan=case.plan,
        rates=case.rates,
        partitions=case.partitions,
        driver_order=case.driver_order,
    )
    query = started(join, case, tmp_path)
    progress = query.recentProgress
    assert len(progress) >= (1 if case.trigger == "once" else case.batches)
    assert sum(p["numInputRows"] for p in progress) == case.streams * case.batches * PER_BATCH
    assert all(
        stream["numRowsDroppedByWatermark"] == stream["numRowsNullTime"] == 0
        for p in progress
        for stream in p["weir"]["streams"].values()
    )
    found = read_bag(tmp_path / "out", case.format)
    assert sum(found.values()) > 100
    assert found == expected(feed.tables(), **case.asked()) == by_duckdb(feed.tables(), case)
    assert sum(p["weir"]["numOutputRows"] for p in progress) == sum(found.values())


def started(join: Any, case: Case, folder: Path) -> Any:
    if case.trigger != "processingTime":
        return run(join, folder / "ckpt", folder / "out", case.format, **{case.trigger: True})
    writer = join.writeStream.format(case.format).option("checkpointLocation", str(folder / "ckpt"))
    query = writer.trigger(processingTime="0 seconds").start(str(folder / "out"))
    try:
        assert query.isActive
        query.processAllAvailable()
    finally:
        query.stop()
    assert not query.isActive
    return query


def by_duckdb(tables: dict[str, pa.Table], case: Case) -> Counter[tuple[Any, ...]]:
    """The definition of the join, word by word."""
    latest = f"greatest({', '.join(f'epoch_us({x}.ts)' for x in case.names)})"
    alive = " AND ".join(f"{latest} - epoch_us({x}.ts) < {case.window * SECOND}" for x in case.names)
    columns = ", ".join(f"{x}.v AS {x}v" for x in case.names)
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        text = f"SELECT a.k AS k, {columns} FROM {', '.join(case.names)} WHERE {case.on} AND {alive}"
        return bag(connection.sql(text).to_arrow_table())


def test_a_tree_without_a_common_key_runs_in_one_partition_and_says_so(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    feed = write_feed(tmp_path / "in", generate(3, 2, 30, 8, seed=5))
    asked = {
        "on": "a.k = b.k AND abs(b.v - c.v) <= 1 AND c.id > 10",
        "within": {"a": "3 seconds", "b": "5 seconds", "c": "4 seconds"},
        "late": LATE,
        "select": "a.id AS a, b.id AS b, c.id AS c",
    }
    with caplog.at_level(logging.WARNING, "weir"):
        join = weir.join(**feed.frames(spark), **asked, plan=tree(tree("a", "b"), "c"))
    assert "one partition, because no one key is shared by all streams" in caplog.text
    run(join, tmp_path / "ckpt", tmp_path / "out")
    found = read_bag(tmp_path / "out")
    assert len(found) > 50
    assert found == expected(feed.tables(), **asked)


def test_static_frames_join_like_tables(spark: SparkSession, tmp_path: Path) -> None:
    feed = write_feed(tmp_path / "in", generate(3, 2, 40, 6, seed=9))
    asked = CASES["three streams, any one first"].asked()
    for partitions in (1, 3):
        found = weir.join(**feed.statics(spark), **asked, partitions=partitions).toDF()
        assert found.columns == ["k", "av", "bv", "cv"]
        assert bag(found.toArrow()) == expected(feed.tables(), **asked)


def test_sql_over_frames(spark: SparkSession, tmp_path: Path) -> None:
    feed = write_feed(tmp_path / "in", generate(2, 2, 40, 6, seed=3))
    text = "SELECT x.k, y.v FROM a x, b y, a z WHERE x.k = y.k AND z.k = y.k AND x.id < z.id WINDOW 5 SECONDS"
    run(weir.sql(text, late=LATE, **feed.frames(spark)), tmp_path / "ckpt", tmp_path / "out")
    found = read_bag(tmp_path / "out")
    assert len(found) > 10
    assert found == bag(weir.sql(text, late=LATE, **feed.tables()).to_arrow())


def test_late_and_null_time_rows_are_dropped_and_counted_per_stream(
    spark: SparkSession, tmp_path: Path
) -> None:
    batches = {  # watermarks afterwards: 18, 88; so 5 and 17 are late in the third batch
        "a": [rows([1, 20, 3], [1, 1, 2]), rows([90, None, 19], [1, 1, 1]), rows([5, 95, None], [1, 1, 2])],
        "b": [rows([2, 21], [1, 1]), rows([91, 18.5], [1, 1]), rows([17, 94, None], [1, 1, 1])],
    }
    feed = write_feed(tmp_path / "in", batches)
    asked = {
        "on": "a.k = b.k",
        "within": "30 seconds",
        "late": "2 seconds",
        "select": "a.ts AS at, b.ts AS bt",
    }
    query = run(weir.join(**feed.frames(spark), **asked), tmp_path / "ckpt", tmp_path / "out")
    local = weir.join(**{name: table.schema for name, table in feed.tables().items()}, **asked).start()
    results = []
    for number, progress in enumerate(query.recentProgress):
        results.append(local.process(**{name: found[number] for name, found in batches.items()}))
        assert progress["weir"]["streams"] == local.lastProgress["weir"]["streams"]
        assert progress["weir"]["watermark"] == local.lastProgress["weir"]["watermark"]
    last = query.lastProgress["weir"]["streams"]
    counted = {
        "numInputRows": 3,
        "numRowsDroppedByWatermark": 1,
        "numRowsNullTime": 1,
        "numRowsAhead": 0,
        "numRowsShed": 0,
    }
    assert last == {"a": counted, "b": counted}
    assert read_bag(tmp_path / "out") == bag(pa.concat_tables(results))


def test_lateness_defaults_to_with_watermark(spark: SparkSession, tmp_path: Path) -> None:
    feed = write_feed(tmp_path / "in", {"a": [rows([50], [1])], "b": [rows([60], [1])]})
    frames = feed.frames(spark)
    join = weir.join(
        a=frames["a"].withWatermark("ts", "7 seconds"), b=frames["b"], on="a.k = b.k", within="1 hour"
    )
    assert {stream.name: stream.late for stream in join.query.streams} == {"a": 7 * SECOND, "b": 0}


def test_on_null_time_fail_refuses_a_row_without_time(spark: SparkSession, tmp_path: Path) -> None:
    feed = write_feed(tmp_path / "in", {"a": [rows([1, None], [1, 1])], "b": [rows([2], [1])]})
    asked = {"on": "a.k = b.k", "within": "9 seconds", "on_null_time": "fail"}
    with pytest.raises(Exception, match=r"stream 'a' has 1 row without a time.*pass on_null_time='drop'"):
        run(weir.join(**feed.frames(spark), **asked), tmp_path / "ckpt", tmp_path / "out")
    with pytest.raises(Exception, match=r"stream 'a' has 1 row without a time.*pass on_null_time='drop'"):
        weir.join(**feed.statics(spark), **asked).toDF().collect()
    with pytest.raises(QueryError, match="on_null_time is 'drop' or 'fail'"):
        weir.join(**feed.frames(spark), **{**asked, "on_null_time": "ignore"})
