"""What may change at a restart: `test_restart_table` says which test is of which row of docs/spark.md.

Two batches run with one query, the third with another. DuckDB says what each has to give: results whose last
row came with the first two batches are those of the first query, all others those of the second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

import weir
from weir.plan.tree import join as tree
from weir.runtime.batch_events import listen
from weir.spark.errors import ChangedQueryError
from weir.spark.join import SparkJoin
from weir.spark.result_names import is_result
from weir.spark.state_access import open_for_repair

from .streams import (
    START,
    Feed,
    add_batch,
    bag,
    copy_query,
    finish,
    read_bag,
    repeat_last_batch,
    run,
    write_feed,
)
from .torn import tear

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SECOND = 1_000_000
SCHEMA = pa.schema(
    {
        "ts": pa.timestamp("us", "UTC"), "k": pa.int32(), "v": pa.int32(), "name": pa.string(),
        "price": pa.float64(), "cost": pa.decimal128(8, 2), "id": pa.int64(), "weight": pa.float32(),
    }
)  # fmt: skip
FIRST: dict[str, Any] = {
    "on": "a.k = b.k AND a.v <= b.v",
    "within": "8 seconds",
    "late": "6 seconds",
    "select": "a.k, a.v AS av, b.v AS bv, b.name, b.cost, a.id AS aid, b.id AS bid",
    "partitions": 2,
}
IDS = "a.id AS aid, b.id AS bid"
MORE = f"{FIRST['on']} AND a.id % 3 <> b.id % 2"
# Another query to start from, with a filter and a freshness.
FILTERED: dict[str, Any] = {
    **FIRST, "on": f"{FIRST['on']} AND a.price > 2", "select": f"b.weight, {IDS}", "fresh": "1 minute",
}  # fmt: skip


def make(streams: str, seed: int, rows: int = 60) -> dict[str, list[pa.Table]]:
    """Three batches of ten seconds each, rows up to five seconds behind."""
    rng = np.random.default_rng(seed)

    def table(number: int) -> pa.Table:
        columns = {
            "ts": START + number * 10 * SECOND + rng.integers(-5 * SECOND, 10 * SECOND, rows),
            "k": pa.array(rng.integers(0, 5, rows), mask=rng.random(rows) < 0.05),
            "v": pa.array(rng.integers(0, 5, rows).astype(np.int32), mask=rng.random(rows) < 0.1),
            "name": pa.array([f"a longer name {n}" for n in rng.integers(0, 4, rows)]),
            "price": rng.integers(0, 10, rows) / 2,
            "cost": pa.array(rng.integers(0, 3000, rows) / 100).cast(pa.decimal128(8, 2)),
            "id": number * rows + np.arange(rows),
            "weight": np.arange(rows) / 4,
        }
        return pa.table({n: pa.array(c).cast(SCHEMA.field(n).type) for n, c in columns.items()}, SCHEMA)

    return {name: [table(number) for number in range(3)] for name in streams}


@dataclass(frozen=True)
class Stopped:
    """A query that was stopped after two batches; the third is there to come."""

    feed: Feed
    folder: Path

    def copy(self, to: Path) -> Path:
        copy_query(self.folder, to)
        return to


def stop_after_two(spark: SparkSession, folder: Path, streams: str, seed: int, **asked: Any) -> Stopped:
    batches = make(streams, seed)
    feed = write_feed(folder / "in", {name: tables[:2] for name, tables in batches.items()})
    run(weir.join(**feed.frames(spark), **asked), folder / "ckpt", folder / "out")
    return Stopped(add_batch(feed, {name: tables[2] for name, tables in batches.items()}), folder)


@pytest.fixture(scope="module")
def stopped(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Stopped:
    return stop_after_two(spark, tmp_path_factory.mktemp("pair"), "ab", 3, **FIRST)


@pytest.fixture(scope="module")
def filtered(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Stopped:
    return stop_after_two(spark, tmp_path_factory.mktemp("filtered"), "ab", 3, **FILTERED)


def ask_duckdb(
    feed: Feed, select: str, where: str, seconds: int = 8, since: int = 2, until: int = 2
) -> Counter[tuple[Any, ...]]:
    """The results in a window whose last row came with the batches from `since` to `until`."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name, tables in feed.batches.items():
        numbered = [t.append_column("batch", pa.array([i] * len(t))) for i, t in enumerate(tables)]
        connection.register(name, pa.concat_tables(numbered, promote_options="default"))
    names = list(feed.batches)
    times = [
        f"abs(epoch_us({x}.ts) - epoch_us({y}.ts)) < {seconds * SECOND}"
        for x in names
        for y in names
        if x < y
    ]
    last = f"greatest({', '.join(f'{name}.batch' for name in names)})"
    conditions = " AND ".join([*times, f"{last} BETWEEN {since} AND {until}", f"({where})"])
    return bag(connection.sql(f"SELECT {select} FROM {', '.join(names)} WHERE {conditions}").to_arrow_table())


FIRST_WHERE, FIRST_SELECT = FIRST["on"], FIRST["select"]


def cast(**kinds: str) -> Any:
    return lambda frames: {
        name: frame.withColumns({column: F.col(column).cast(kind) for column, kind in kinds.items()})
        for name, frame in frames.items()
    }


@dataclass(frozen=True)
class Row:
    """One change: what is asked for from the third batch on, and what DuckDB is asked for it."""

    asked: Mapping[str, Any]
    where: str = FIRST_WHERE
    select: str = ""
    seconds: int = 8
    frames: Any = field(default=lambda frames: frames)
    first: Mapping[str, Any] = field(default_factory=lambda: FIRST)


ALLOWED: dict[str, Row] = {
    "renamed and new output columns over kept ones": Row(
        {"select": f"a.k AS key, a.v + b.v AS total, upper(b.name) AS name, a.ts AS at, {IDS}"}
    ),
    "fewer output columns": Row({"select": IDS}),
    "a key as output column": Row({"select": f"b.k + 1 AS next, {IDS}"}),
    "a filter on one stream": Row(
        {"on": f"{FIRST_WHERE} AND a.price > 2"}, f"{FIRST_WHERE} AND (a.price > 2 OR a.batch < 2)"
    ),
    "one more condition": Row({"on": MORE}, MORE),
    "one more equality, before the key": Row({"on": "a.v = b.v AND a.k = b.k"}, "a.k = b.k AND a.v = b.v"),
    "an equality within a stream, by way of the other": Row(
        {"on": f"{FIRST_WHERE} AND a.v = b.k"}, f"{FIRST_WHERE} AND a.v = b.k"
    ),
    "one condition less": Row({"on": "a.k = b.k"}, "a.k = b.k"),
    "sides and order of conditions": Row({"on": "b.v >= a.v AND b.k = a.k"}),
    "streams in another order": Row({}, frames=lambda frames: dict(reversed(frames.items()))),
    "as a statement": Row({"on": None, "within": None, "select": None, "statement": True}),
    "lateness": Row({"late": "20 seconds"}),
    "idle and ahead": Row({"idle": "1 hour", "ahead": "2 days"}),
    "a shorter window": Row({"within": "4 seconds"}, seconds=4),
    "a window for each stream": Row(
        {"within": {"a": "8 seconds", "b": "6 seconds"}},
        f"{FIRST_WHERE} AND epoch_us(a.ts) - epoch_us(b.ts) < {6 * SECOND}",
    ),
    "settings": Row(
        {
            "budget": weir.Budget(cpu=0.9, memory="200m"), "basic": "1 second", "shed": "harvest",
            "driver_order": "consumption-rate", "adapt": weir.Adapt(calibrate=2), "on_null_time": "fail",
            "durability": "process",
        }
    ),
    "a source that grew a column": Row(
        {"select": f"b.grown, {IDS}"},
        select=f"CASE WHEN b.batch = 2 THEN b.id * 2 END AS grown, {IDS}",
        frames=lambda frames: {**frames, "b": frames["b"].withColumn("grown", F.col("id") * 2)},
    ),
    "one partition, where no key divides rows": Row(  # rows without the earlier key are not stored
        {"on": "a.v < b.v", "partitions": 1},
        "a.v < b.v AND (a.k IS NOT NULL OR a.batch = 2) AND (b.k IS NOT NULL OR b.batch = 2)",
    ),
    "int to bigint": Row({}, frames=cast(v="bigint")),
    "int to double and a wider decimal": Row({}, frames=cast(v="double", cost="decimal(12,4)")),
    "a filter less and no freshness": Row(
        {"on": FIRST_WHERE, "fresh": None}, f"{FIRST_WHERE} AND (a.price > 2 OR a.batch = 2)", first=FILTERED
    ),
    "another freshness": Row(  # rows of b that came before are older by now, those of a are not
        {"fresh": {"a": "2 minutes", "b": "9 seconds"}}, f"{FILTERED['on']} AND b.batch = 2", first=FILTERED
    ),
    "float to double and a lost column": Row(
        {},
        FILTERED["on"],
        frames=lambda frames: {n: f.drop("name") for n, f in cast(weight="double")(frames).items()},
        first=FILTERED,
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", ALLOWED.values(), ids=ALLOWED)
def test_a_change_holds_from_the_next_batch_on(
    row: Row, stopped: Stopped, filtered: Stopped, spark: SparkSession, tmp_path: Path
) -> None:
    stopped = filtered if row.first is FILTERED else stopped
    folder, asked = stopped.copy(tmp_path), {**row.first, **row.asked}
    frames = row.frames(stopped.feed.frames(spark))
    join = as_statement(frames) if asked.pop("statement", False) else weir.join(**frames, **asked)
    run(join, folder / "ckpt", folder / "new")
    answer = ask_duckdb(stopped.feed, row.select or asked["select"] or FIRST_SELECT, row.where, row.seconds)
    own = stopped.feed.batches["a"][2]["id"].to_pylist(), stopped.feed.batches["b"][2]["id"].to_pylist()
    names = sorted(join.columns)
    a, b = names.index("aid"), names.index("bid")
    assert any(found[a] not in own[0] or found[b] not in own[1] for found in answer), (
        "no result needs the state"
    )
    assert read_bag(folder / "new") == answer
    before = ask_duckdb(stopped.feed, row.first["select"], row.first["on"], since=0, until=1)
    assert read_bag(folder / "out") == before


def test_a_grown_column_may_become_a_key(stopped: Stopped, spark: SparkSession, tmp_path: Path) -> None:
    """Stored rows have NULL there and join nothing any more: all their slices become empty."""
    frames = {
        name: frame.withColumn("grown", F.col("id") % 2) for name, frame in stopped.feed.frames(spark).items()
    }
    folder, on = stopped.copy(tmp_path), f"{FIRST_WHERE} AND a.grown = b.grown"
    run(weir.join(**frames, **{**FIRST, "on": on}), folder / "ckpt", folder / "new")
    where = f"{FIRST_WHERE} AND a.batch = 2 AND b.batch = 2 AND a.id % 2 = b.id % 2"
    answer = ask_duckdb(stopped.feed, FIRST_SELECT, where)
    assert answer and read_bag(folder / "new") == answer


def test_errors_fail_again_and_computed_times_stay(spark: SparkSession, tmp_path: Path) -> None:
    share = "100 / (a.id + 1) AS share"
    asked = {**FIRST, "time": "timestamp_micros(unix_micros(ts))", "on_error": "null"}
    stopped = stop_after_two(spark, tmp_path, "ab", 5, **{**asked, "select": f"{share}, b.name, {IDS}"})
    select = f"{share}, upper(b.name) AS name, {IDS}"
    changed = {**asked, "select": select, "on_error": "fail"}
    for time in ("timestamp_millis(unix_millis(ts))", "ts"):
        other = weir.join(**stopped.feed.frames(spark), **{**changed, "time": time})
        with pytest.raises(ChangedQueryError, match=r"pass time='timestamp_micros\(unix_micros\(ts\)\)'"):
            run(other, tmp_path / "ckpt", tmp_path / "new")
    join = weir.join(**stopped.feed.frames(spark), **changed)
    run(join, tmp_path / "ckpt", tmp_path / "new", once=True)  # another trigger
    answer = ask_duckdb(stopped.feed, select, FIRST_WHERE)
    assert answer and read_bag(tmp_path / "new") == answer


def test_spark_computes_new_columns_that_the_kernel_does_not_know(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Stored rows lack them, so they are computed from the results, also where workers write the files."""
    select = f"date_format(b.ts, 'ss') AS second, a.k, {IDS}"
    asked = {**FIRST, "select": f"{FIRST_SELECT}, b.ts AS at"}
    stopped = stop_after_two(spark, tmp_path, "ab", 3, **asked)
    join = weir.join(**stopped.feed.frames(spark), **{**FIRST, "select": select})
    run(join, tmp_path / "ckpt", tmp_path / "new")
    answer = ask_duckdb(stopped.feed, f"strftime(b.ts, '%S') AS second, a.k, {IDS}", FIRST_WHERE)
    assert answer and read_bag(tmp_path / "new") == answer


def as_statement(frames: Mapping[str, DataFrame]) -> SparkJoin:
    text = f"SELECT {FIRST_SELECT} FROM a JOIN b ON {FIRST_WHERE} WINDOW 8 SECONDS"
    return weir.sql(text, late="6 seconds", partitions=2, **frames)


def test_a_longer_window_keeps_what_is_still_stored(spark: SparkSession, tmp_path: Path) -> None:
    """All rows of the first batch lie in slices that live on, and would be gone before the third."""
    batches = make("ab", 4)
    feed = write_feed(tmp_path / "in", {name: tables[:1] for name, tables in batches.items()})
    run(
        weir.join(**feed.frames(spark), **{**FIRST, "within": "2 seconds"}),
        tmp_path / "ckpt",
        tmp_path / "out",
    )
    for number in (1, 2):
        feed = add_batch(feed, {name: tables[number] for name, tables in batches.items()})
    changed = weir.join(**feed.frames(spark), **{**FIRST, "within": "24 seconds"})
    run(changed, tmp_path / "ckpt", tmp_path / "new")
    answer = ask_duckdb(feed, FIRST_SELECT, FIRST_WHERE, 24, since=1)
    apart = ask_duckdb(feed, FIRST_SELECT, f"{FIRST_WHERE} AND abs(a.batch - b.batch) = 2", 24)
    assert apart.total() > 50, "no result needs the longer window after the second batch"
    assert read_bag(tmp_path / "new") == answer


def test_stored_joins_are_built_again_for_a_changed_query(spark: SparkSession, tmp_path: Path) -> None:
    on, select = "a.k = b.k AND b.k = c.k AND a.v <= c.v", f"{IDS}, c.id AS cid, b.name"
    asked = {**FIRST, "on": on, "select": select, "plan": tree(tree("a", "b"), "c"), "partitions": 1}
    stopped = stop_after_two(spark, tmp_path, "abc", 7, **asked)
    changed = {
        **asked,
        "on": f"{on} AND a.id % 2 <> b.id % 3",
        "select": f"a.v AS av, {select}",
        "within": "7 seconds",
    }
    query = run(weir.join(**stopped.feed.frames(spark), **changed), tmp_path / "ckpt", tmp_path / "new")
    assert query.lastProgress["weir"]["plan"] == "((a b) c)"
    answer = ask_duckdb(stopped.feed, changed["select"], changed["on"], 7)
    assert answer.total() > 50 and read_bag(tmp_path / "new") == answer


REFUSED: dict[str, tuple[Row, str]] = {
    "a column that the state lacks": (
        Row({"select": f"b.price, {IDS}"}),
        "without b.price, which the SELECT list needs now: the state of 'b' keeps only b.ts, b.k, b.v, "
        "b.name, b.cost, b.id; leave it out of the SELECT list, or start with a new checkpointLocation, "
        "which reads the streams again from where their sources start",
    ),
    "an expression over such a column": (
        Row({"select": f"upper(a.name) AS upper, {IDS}"}),
        "a.name.*, which the SELECT list needs now: the state of 'a' keeps only",
    ),
    "a condition on such a column": (
        Row({"on": f"{FIRST_WHERE} AND a.price <> b.price"}),
        "without a.price, which the condition needs now",
    ),
    "another key": (
        Row({"on": "a.v = b.v"}),
        "with rows divided by a.k = b.k as bigint, by which it joins no more; keep that condition",
    ),
    "a key compared as another type": (
        Row({}, frames=cast(k="double")),
        "with key a.k as bigint and the query reads double; cast it back before the join, or start with",
    ),
    "other streams": (
        Row({"on": "a.k = c.k", "select": "a.k"}, frames=lambda each: {"a": each["a"], "c": each["b"]}),
        "with the streams a, b and the query joins a, c; join the same streams",
    ),
    "another time column": (
        Row({"time": {"a": "seen", "b": "ts"}}),
        "with the time column 'ts' of stream 'a' and the query takes 'seen'; pass time='ts'",
    ),
    "another time expression": (
        Row({"time": {"a": "ts - INTERVAL 1 HOUR", "b": "ts"}}),
        "with the time column 'ts' of stream 'a' and the query takes 'ts - INTERVAL 1 HOUR'; pass time='ts'",
    ),
    "another type of the time": (
        Row({}, frames=cast(ts="timestamp_ntz")),
        "when column a.ts was timestamp and now it is timestamp_ntz, into which stored values may not fit",
    ),
    "a narrower type": (
        Row({}, frames=cast(v="smallint")),
        "column a.v was int and now it is smallint, into which stored values may not fit; cast it to int",
    ),
    "a window of rows": (
        Row({"within": "9 rows", "partitions": 1}),
        "with the window 8 seconds of stream 'a' and the query asks for 9 rows, by which stored rows ",
    ),
    "freshness": (
        Row({"fresh": "1 minute"}),
        "without a freshness of stream 'a', so that stored rows lack",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("row", "says"), REFUSED.values(), ids=REFUSED)
def test_what_the_state_cannot_give_is_refused_in_a_sentence(
    row: Row, says: str, stopped: Stopped, spark: SparkSession
) -> None:
    frames = {n: f.withColumn("seen", F.col("ts")) for n, f in stopped.feed.frames(spark).items()}
    with pytest.raises(ChangedQueryError, match=says) as error:
        weir.join(**row.frames(frames), **{**FIRST, **row.asked}).writeStream.start(
            str(stopped.folder / "none"), checkpointLocation=str(stopped.folder / "ckpt")
        )
    assert f"the checkpoint file:{stopped.folder}/ckpt/weir was written w" in str(error.value)


def test_another_clock_of_freshness_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    asked = {**FIRST, "fresh": "1 hour", "clock": "wall"}
    stopped = stop_after_two(spark, tmp_path, "ab", 3, **asked)
    frames = stopped.feed.frames(spark)
    says = "with clock='wall' and the query asks for 'event', by which .* no arrival; pass clock='wall'"
    with pytest.raises(ChangedQueryError, match=says):
        run(weir.join(**frames, **{**asked, "clock": "event"}), tmp_path / "ckpt", tmp_path / "new")
    # Without a freshness nothing is judged by any clock.
    run(weir.join(**frames, **FIRST), tmp_path / "ckpt", tmp_path / "new")
    assert read_bag(tmp_path / "new").total() > 0


def test_segments_of_time_take_another_query_but_no_other_window(spark: SparkSession, tmp_path: Path) -> None:
    asked = {**FIRST, "spread": "atr"}
    stopped = stop_after_two(spark, tmp_path, "ab", 3, **asked)
    frames = stopped.feed.frames(spark)
    for change, says in (
        (
            {"within": "9 seconds"},
            "spread='atr' for the window 8 seconds of stream 'a' and .* 9 seconds; ask",
        ),
        ({"on": f"{FIRST_WHERE} AND a.ts <= b.ts"}, "spread='atr' for other time bounds; change them back"),
    ):
        with pytest.raises(ChangedQueryError, match=says):
            run(weir.join(**frames, **{**asked, **change}), tmp_path / "ckpt", tmp_path / "new")
    changed = {**asked, "on": MORE, "select": f"a.v + b.v AS total, {IDS}"}
    run(weir.join(**frames, **changed), tmp_path / "ckpt", tmp_path / "new")
    answer = ask_duckdb(stopped.feed, changed["select"], MORE)
    assert answer and read_bag(tmp_path / "new") == answer


class Crash:
    """Ends a query in one phase of its second batch, as if the driver had died there."""

    def __init__(self, phase: str) -> None:
        self.phase = phase

    def __call__(self, phase: str, batch: int) -> None:
        if (phase, batch) == (self.phase, 1):
            raise ConnectionError("the plug was pulled")


def crash(join: SparkJoin, folder: Path, phase: str, sink: Any = run) -> None:
    """Run a join into files, or another sink, until it crashes in its second batch."""
    stop = listen(Crash(phase))
    try:
        with pytest.raises(Exception, match="the plug was pulled"):
            sink(join, folder / "ckpt", folder / "out")
    finally:
        stop()


def run_into_table(join: SparkJoin, checkpoint: Path, name: str | Path) -> None:
    """Run a join over all that is there into a table."""
    writer = join.writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    finish(writer.toTable(f"weir_{Path(name).name}"))


SECOND_SELECT = f"a.v + b.v AS total, {IDS}"
CHANGED: dict[str, Any] = {**FIRST, "on": f"{FIRST_WHERE} AND a.price > 2", "select": SECOND_SELECT}
CHANGED_WHERE = f"{FIRST_WHERE} AND (a.price > 2 OR a.batch < 2)"


@pytest.mark.parametrize("phase", ["build", "sync_results", "spark_commit"])
def test_a_batch_that_had_begun_is_repeated_with_its_query_and_files(
    phase: str, spark: SparkSession, tmp_path: Path
) -> None:
    feed = write_feed(tmp_path / "in", make("ab", 5))
    crash(weir.join(**feed.frames(spark), **FIRST), tmp_path, phase)
    query = run(weir.join(**feed.frames(spark), **CHANGED), tmp_path / "ckpt", tmp_path / "new")
    assert [progress["batchId"] for progress in query.recentProgress] == [2]
    first = ask_duckdb(feed, FIRST_SELECT, FIRST_WHERE, since=0, until=1)
    second = ask_duckdb(feed, SECOND_SELECT, CHANGED_WHERE)
    assert first and read_bag(tmp_path / "out") == first
    assert second and read_bag(tmp_path / "new") == second


@pytest.mark.parametrize(("phase", "since"), [("sync_batch", 1), ("sync_results", 2)])
def test_a_new_sink_takes_a_begun_batch_of_the_same_query_if_nothing_is_published(
    phase: str, since: int, spark: SparkSession, tmp_path: Path
) -> None:
    feed = write_feed(tmp_path / "in", make("ab", 5))
    join = weir.join(**feed.frames(spark), **FIRST)
    crash(join, tmp_path, phase)
    query = run(join, tmp_path / "ckpt", tmp_path / "new")
    assert [progress["batchId"] for progress in query.recentProgress] == list(range(since, 3))
    answers = (ask_duckdb(feed, FIRST_SELECT, FIRST_WHERE, since=i, until=i) for i in range(3))
    first, second, third = answers
    assert read_bag(tmp_path / "out") == first + (second if since == 2 else Counter())
    assert read_bag(tmp_path / "new") == third + (second if since == 1 else Counter())


def test_a_batch_that_had_begun_for_a_table_is_repeated_there(spark: SparkSession, tmp_path: Path) -> None:
    feed = write_feed(tmp_path / "in", make("ab", 5))
    try:
        crash(weir.join(**feed.frames(spark), **FIRST), tmp_path, "sync_results", run_into_table)
        run_into_table(weir.join(**feed.frames(spark), **CHANGED), tmp_path / "ckpt", "new")
        tables = [bag(spark.table(name).toArrow()) for name in ("weir_out", "weir_new")]
        # A repair takes back what is in the table, as with other files.
        tear(max((tmp_path / "ckpt/weir/manifests").glob("2-*")), "half")
        with open_for_repair(str(tmp_path / "ckpt"), {}) as state:
            repair = state.plan_repair()
        files = [Path(file).name for file in spark.table("weir_new").inputFiles()]
        published = [name for name in files if is_result(name)]  # Spark creates a table with an empty file
        assert repair is not None and published and sorted(repair.results) == sorted(published)
    finally:
        for name in ("weir_out", "weir_new"):
            spark.sql(f"DROP TABLE IF EXISTS {name}")
    first = ask_duckdb(feed, FIRST_SELECT, FIRST_WHERE, since=0, until=1)
    assert tables == [first, ask_duckdb(feed, SECOND_SELECT, CHANGED_WHERE)]


def test_a_function_takes_a_batch_that_had_begun_only_with_the_columns_it_expects(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    feed, taken = write_feed(tmp_path / "in", make("ab", 6)), dict[int, Counter[tuple[Any, ...]]]()

    def fail(results: DataFrame, batch: int) -> None:
        if batch == 1:
            raise ConnectionError("the other side hung up")

    def take(results: DataFrame, batch: int) -> None:
        taken[batch] = bag(results.toArrow())

    def start(sink: Any, asked: Mapping[str, Any]) -> None:
        writer = weir.join(**feed.frames(spark), **asked).writeStream.foreachBatch(sink)
        writer = writer.option("checkpointLocation", str(tmp_path / "ckpt"))
        finish(writer.trigger(availableNow=True).start())

    with pytest.raises(Exception, match="the other side hung up"):
        start(fail, FIRST)
    says = (
        r"batch 1 of the checkpoint .* was begun by the earlier query, whose results \(k int, .*\) the "
        r"sink of this query \(total int, aid bigint, bid bigint\) does not expect; run the earlier program "
        "once to finish batch 1, then change it"
    )
    with pytest.raises(ChangedQueryError, match=says):
        start(take, CHANGED)
    weir.join(**feed.frames(spark), **CHANGED).explain(checkpoint=str(tmp_path / "ckpt"))
    assert "the sink of this query (total int, aid bigint" in capsys.readouterr().out
    assert not taken
    start(take, {**CHANGED, "select": FIRST_SELECT})
    assert taken == {
        1: ask_duckdb(feed, FIRST_SELECT, FIRST_WHERE, since=1, until=1),
        2: ask_duckdb(feed, FIRST_SELECT, CHANGED_WHERE),
    }


def test_a_begun_batch_whose_query_is_lost_is_finished_by_its_own_program(
    spark: SparkSession, tmp_path: Path
) -> None:
    feed = write_feed(tmp_path / "in", make("ab", 5))
    functions = {"near": weir.udf(lambda x, y: pc.less_equal(pc.abs(pc.subtract(x, y)), 2))}
    asked = {**FIRST, "on": "a.k = b.k AND near(a.v, b.v)"}
    crash(weir.join(**feed.frames(spark), **asked, functions=functions), tmp_path, "sync_results")
    says = (
        "batch 1 of the checkpoint .* was begun by the earlier query, which cannot be built again: its "
        "function 'near' is not given any more; run the earlier program once to finish batch 1, then"
    )
    changed = weir.join(**feed.frames(spark), **FIRST)
    with pytest.raises(ChangedQueryError, match=says):
        run(changed, tmp_path / "ckpt", tmp_path / "new")
    with_steps = weir.join(**feed.frames(spark), **asked, functions=functions).filter("av > 0")
    query = run(with_steps, tmp_path / "ckpt", tmp_path / "out")  # the same query: steps may differ
    assert [progress["batchId"] for progress in query.recentProgress] == [1, 2]


@contextmanager
def session_with(spark: SparkSession, setting: str, value: str) -> Iterator[str]:
    """Set a setting for a while, and give its value before."""
    before = str(spark.conf.get(setting))
    spark.conf.set(setting, value)
    try:
        yield before
    finally:
        spark.conf.set(setting, before)


@pytest.mark.parametrize(
    ("setting", "value"), [("spark.sql.session.timeZone", "Asia/Tokyo"), ("spark.sql.ansi.enabled", "true")]
)
def test_another_session_is_refused(setting: str, value: str, stopped: Stopped, spark: SparkSession) -> None:
    with session_with(spark, setting, value) as before:
        join = weir.join(**stopped.feed.frames(spark), **FIRST)
        says = f"with {setting} = {before} and this session has {value}; set it to {before}, or start"
        with pytest.raises(ChangedQueryError, match=says):
            run(join, stopped.folder / "ckpt", stopped.folder / "out")


def test_a_batch_that_failed_on_data_goes_on_with_null(spark: SparkSession, tmp_path: Path) -> None:
    feed, select = write_feed(tmp_path / "in", make("ab", 5)), f"100 / (a.id - 75) AS share, {IDS}"
    asked = {**FIRST, "select": select}
    with session_with(spark, "spark.sql.ansi.enabled", "true"):
        with pytest.raises(weir.EvaluationError, match=r"100 / \(a.id - 75\) fails: Spark cannot compute it"):
            run(weir.join(**feed.frames(spark), **asked), tmp_path / "ckpt", tmp_path / "out")
        join = weir.join(**feed.frames(spark), **asked, on_error="null")
        query = run(join, tmp_path / "ckpt", tmp_path / "out")
    assert [progress["batchId"] for progress in query.recentProgress] == [1, 2]
    answer = ask_duckdb(feed, f"100 / nullif(a.id - 75, 0) AS share, {IDS}", FIRST_WHERE, since=0)
    assert any(row[-1] is None for row in answer) and read_bag(tmp_path / "out") == answer


def test_explain_tells_beforehand(
    stopped: Stopped, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, frames = stopped.copy(tmp_path), stopped.feed.frames(spark)

    def explain(checkpoint: Path, **change: Any) -> str:
        weir.join(**frames, **{**FIRST, **change}).explain(checkpoint=str(checkpoint))
        return capsys.readouterr().out.replace(f"file:{checkpoint}/weir", "HERE").strip()

    assert explain(tmp_path / "none") == "the checkpoint HERE holds no state: the query starts with it"
    assert explain(folder / "ckpt") == "the checkpoint HERE was written by this query: it goes on"
    assert explain(folder / "ckpt", select=f"a.v AS w, {IDS}", within="9 seconds").splitlines() == [
        "the checkpoint HERE takes these changes:",
        *(
            f"  window 9 seconds of stream '{name}' after 8 seconds: for stored rows too, but those dropped "
            "by now stay dropped"
            for name in "ab"
        ),
        "  output column w: a.v is new: from the next batch on",
        *(
            f"  output column {name} is gone: from the next batch on"
            for name in ("k: a.k", "av: a.v", "bv: b.v", "name: b.name", "cost: b.cost")
        ),
        "they hold from batch 2 on",
    ]
    repeat_last_batch(folder / "ckpt")
    told = explain(folder / "ckpt", select="a.price")
    assert told.startswith("the checkpoint HERE refuses these changes:\n")
    assert "column a.price: refused, without a.price, which the SELECT list needs now" in told
    assert told.endswith("batch 1 had begun, and is repeated with the earlier query first")


@pytest.mark.parametrize("spread", ["hash", "psp"])
def test_a_query_may_change_again_and_again(spread: str, spark: SparkSession, tmp_path: Path) -> None:
    """Slices of the first query live on under the third, which needs a column that the second filled."""
    batches = make("ab", 8)
    feed = write_feed(tmp_path / "in", {name: tables[:1] for name, tables in batches.items()})
    asked: dict[str, Any] = {"late": "6 seconds", "within": "15 seconds", "spread": spread, "partitions": 2}
    grown = "CASE WHEN b.batch >= 1 THEN b.id * 2 END"
    queries = [
        ({"on": FIRST_WHERE, "select": FIRST_SELECT, "fresh": "1 minute"}, FIRST_SELECT, FIRST_WHERE),
        (
            {"on": "b.k = a.k AND a.v = b.v", "select": f"b.name, b.grown AS grown, a.v, {IDS}"},
            f"b.name, {grown} AS grown, a.v, {IDS}",
            "a.k = b.k AND a.v = b.v",
        ),
        (
            {"on": "a.k <=> b.k", "select": f"b.grown + a.v AS w, {IDS}"},
            f"{grown} + a.v AS w, {IDS}",
            "a.k IS NOT DISTINCT FROM b.k AND (a.batch = 2 OR a.k IS NOT NULL AND (a.v IS NOT NULL OR "
            "a.batch = 0)) AND (b.batch = 2 OR b.k IS NOT NULL AND (b.v IS NOT NULL OR b.batch = 0))",
        ),
    ]
    for number, (query, select, where) in enumerate(queries):
        if number:
            feed = add_batch(feed, {name: tables[number] for name, tables in batches.items()})
        frames = feed.frames(spark)
        if number:
            frames["b"] = frames["b"].withColumn("grown", F.col("id") * 2)
        run(weir.join(**frames, **asked, **query), tmp_path / "ckpt", tmp_path / f"out{number}")
        answer = ask_duckdb(feed, select, where, seconds=15, since=number, until=number)
        assert answer.total() > 50 and read_bag(tmp_path / f"out{number}") == answer


def test_another_number_of_rows_in_a_window(spark: SparkSession, tmp_path: Path) -> None:
    """The oracle is the engine in one process, which has the smaller windows from the start."""
    asked = {**FIRST, "partitions": 1, "late": "1 minute"}
    stopped = stop_after_two(spark, tmp_path, "ab", 9, **{**asked, "within": "50 rows"})
    changed = {**asked, "within": "30 rows", "select": IDS}
    run(weir.join(**stopped.feed.frames(spark), **changed), tmp_path / "ckpt", tmp_path / "new")
    del changed["partitions"]
    batches = stopped.feed.batches
    local = weir.join(**dict.fromkeys(batches, SCHEMA), **changed).start()
    answers = [bag(local.process({n: tables[i] for n, tables in batches.items()})) for i in range(3)]
    assert answers[2].total() > 50 and read_bag(tmp_path / "new") == answers[2]


def test_a_plan_that_cannot_be_built_again_refuses_other_conditions(
    spark: SparkSession, tmp_path: Path
) -> None:
    on = "a.k = b.k AND b.k = c.k"
    asked = {**FIRST, "on": on, "select": f"{IDS}, c.id AS cid", "partitions": 1, "within": "50 rows"}
    stopped = stop_after_two(spark, tmp_path, "abc", 7, **asked, plan=tree(tree("a", "b"), "c"))
    changed = {**asked, "on": f"{on} AND a.id <> c.id", "plan": tree(tree("a", "b"), "c")}
    says = (
        r"stored joins of the plan \(\(a b\) c\), which cannot be built again under a window of rows; change"
    )
    with pytest.raises(ChangedQueryError, match=says):
        run(weir.join(**stopped.feed.frames(spark), **changed), tmp_path / "ckpt", tmp_path / "out")
