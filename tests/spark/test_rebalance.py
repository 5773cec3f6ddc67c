"""Partitions and spreads change between batches, results do not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import weir
from weir.errors import QueryError
from weir.plan.tree import Leaf
from weir.runtime.manifest import Manifest
from weir.spark.checkpoint import Checkpoint
from weir.spark.errors import ChangedQueryError
from weir.spark.filesystem import open_folder
from weir.spark.query import SparkQuery
from weir.spark.routing import choose_shared_spread

from .streams import (
    LATE,
    SCHEMA,
    SECOND,
    START,
    Feed,
    add_batch,
    bag,
    generate,
    read_bag,
    repeat_last_batch,
    run,
    write_feed,
)

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

BAND: dict[str, Any] = {
    "on": "abs(a.v - b.v) <= 1",
    "within": "8 seconds",
    "late": LATE,
    "select": "a.id AS aid, b.id AS bid",
}
KEYED: dict[str, Any] = {**BAND, "on": "a.k = b.k AND abs(a.id - b.id) < 40"}


def oracle(feed: Feed, condition: str) -> Counter[tuple[Any, ...]]:
    """The same join by DuckDB: all rows of a result less than 8 seconds apart."""
    found = duckdb.connect()
    for name, table in feed.tables().items():
        found.register(name, table)
    near = "abs(epoch_us(a.ts) - epoch_us(b.ts)) < 8000000"
    return bag(
        found.sql(f"SELECT a.id AS aid, b.id AS bid FROM a, b WHERE {condition} AND {near}").to_arrow_table()
    )


def to_json(join: Any, folder: Path) -> SparkQuery:
    return run(join, folder / "ckpt", folder / "out", "json")


def started(join: Any, folder: Path) -> SparkQuery:
    writer = join.writeStream.format("parquet").option("checkpointLocation", str(folder / "ckpt"))
    query: SparkQuery = writer.option("path", str(folder / "out")).start()
    return query


def sections(query: SparkQuery) -> list[Any]:
    """What each batch since the start told; the files of two streams may come in two batches."""
    found = {one["batchId"]: one["weir"] for one in query.recentProgress if one["weir"]}
    return [found[batch] for batch in sorted(found)]


def manifest(spark: SparkSession, folder: Path, batch: int = 99) -> Manifest:
    return Checkpoint(open_folder(spark, f"{folder / 'ckpt'}/weir")).read_manifest(before=batch)


@pytest.mark.parametrize(
    ("spread", "first", "second"),
    [("psp", "passive", "aggressive"), ("share", "aggressive", "passive")],
)
def test_repartition_keeps_results_while_the_query_runs(
    spread: str, first: Any, second: Any, spark: SparkSession, tmp_path: Path
) -> None:
    batches = generate(2, 5, 60, 9, seed=5)
    feed = write_feed(tmp_path / "in", {name: found[:1] for name, found in batches.items()})

    def more(number: int) -> Feed:
        return add_batch(feed, {name: found[number] for name, found in batches.items()})

    def asked() -> Any:
        return weir.join(**feed.frames(spark), **BAND, partitions=2, spread=spread)

    query = started(asked(), tmp_path)
    try:
        query.processAllAvailable()
        query.repartition(4, first)
        feed = more(1)
        query.processAllAvailable()
        told = sections(query)[1:]
        assert told[0]["placement"] == {"spread": spread, "partitions": 4, "relocated": first == "aggressive"}
        assert told[0]["decision"]["reason"] == f"4 partitions after 2, {first} adjustment; as requested"
        assert told[-1]["placement"]["partitions"] == 4 and {"2", "3"} <= set(told[-1]["partitions"])
    finally:
        query.stop()
    # The batch is repeated as it was decided; the next one goes by what the join says.
    repeat_last_batch(tmp_path / "ckpt")
    feed = more(2)
    query = started(asked(), tmp_path)
    try:
        query.processAllAvailable()
        counts = [one["placement"]["partitions"] for one in sections(query)]
        assert counts[0] == 4 and counts[-1] == 2
        query.repartition(4, "aggressive")
        feed = more(3)
        query.processAllAvailable()
        query.repartition(3, second)
        feed = more(4)
        query.processAllAvailable()
        told = [one for one in sections(query) if one["placement"]["partitions"] == 3]
    finally:
        query.stop()
    # Passively, what is in a partition that is given up stays there and is still found.
    assert ("3" in told[0]["partitions"]) == (second == "passive")
    assert not any(one["partitions"].get("3", {"numInputRows": 0})["numInputRows"] for one in told)
    assert sum(found["numInputRows"] for one in told for found in one["partitions"].values()) == 120
    wanted = oracle(feed, "abs(a.v - b.v) <= 1")
    assert read_bag(tmp_path / "out") == wanted and wanted.total() > 500


def skewed(batches: int, per_batch: int) -> dict[str, list[pa.Table]]:
    """As `generate`, in the order of time; one key has half of the rows."""
    rng = np.random.default_rng(3)

    def table(number: int) -> pa.Table:
        times = np.sort(START + number * 4 * SECOND + rng.integers(0, 4 * SECOND, per_batch))
        keys = np.where(rng.random(per_batch) < 0.5, 0, rng.integers(1, 500, per_batch))
        count = number * per_batch + np.arange(per_batch)
        return pa.table([pa.array(times, SCHEMA.field("ts").type), keys, count % 5, count], SCHEMA)

    return {name: [table(number) for number in range(batches)] for name in "ab"}


def loads(section: Any) -> list[int]:
    return [one["numRowsTotal"] for one in section["partitions"].values()]


def test_skewed_keys_change_to_psp_on_several_hosts(spark: SparkSession, tmp_path: Path) -> None:
    feed = write_feed(tmp_path / "in", skewed(5, 400))
    join = weir.join(**feed.frames(spark), **{**KEYED, "late": "0 seconds"}, partitions=3)
    elsewhere = replace(join.routing, fallback=choose_shared_spread("yarn"))
    join.route = lambda plan, was_shared: elsewhere
    query = to_json(join, tmp_path)
    told = [one["weir"] for one in query.recentProgress]
    assert [one["placement"]["spread"] for one in told] == ["hash"] * 3 + ["psp"] * 2
    assert [one["placement"]["relocated"] for one in told] == [False] * 3 + [True, False]
    assert max(loads(told[2])) > 1.2 * min(loads(told[2])), "one partition has the key of half of the rows"
    # Dead rows are counted until their slices are rewritten.
    assert max(loads(told[3])) <= 2 * min(loads(told[3])) and max(loads(told[4])) <= 1.2 * min(loads(told[4]))
    wanted = oracle(feed, "a.k = b.k AND abs(a.id - b.id) < 40")
    assert read_bag(tmp_path / "out", "json") == wanted and wanted.total() > 1000


def test_skewed_keys_change_to_share_on_one_host(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="weir")
    batches = skewed(5, 400)
    feed = write_feed(tmp_path / "in", {name: found[:4] for name, found in batches.items()})
    asked = {**KEYED, "late": "0 seconds"}
    query = to_json(weir.join(**feed.frames(spark), **asked, partitions=3), tmp_path)
    told = [one["weir"] for one in query.recentProgress]
    assert [one["placement"]["spread"] for one in told] == ["hash"] * 3 + ["share"]
    assert "so spread='share' from here on" in told[3]["decision"]["reason"]
    assert sum("from here on" in message for message in caplog.messages) == 1

    # The state is shared from now on: also after a start, with any number of partitions, but not by key.
    repeat_last_batch(tmp_path / "ckpt")
    feed = add_batch(feed, {name: found[4] for name, found in batches.items()})
    with pytest.raises(
        ChangedQueryError, match="spread='share' and the query asks for 'hash'; pass spread='share'"
    ):
        to_json(weir.join(**feed.frames(spark), **asked, partitions=3, spread="hash"), tmp_path)
    query = to_json(weir.join(**feed.frames(spark), **asked, partitions=2), tmp_path)
    assert query.lastProgress["weir"]["placement"] == {"spread": "share", "partitions": 2, "relocated": False}
    wanted = oracle(feed, "a.k = b.k AND abs(a.id - b.id) < 40")
    assert read_bag(tmp_path / "out", "json") == wanted and wanted.total() > 1000


def test_psp_partitions_are_balanced_and_store_rows_once(spark: SparkSession, tmp_path: Path) -> None:
    """The state over all partitions is the rows inside the windows, and what lies in a slice with them."""
    feed = write_feed(tmp_path / "in", skewed(5, 400))
    asked = {**KEYED, "late": "0 seconds", "partitions": 3, "spread": "psp"}
    query = run(weir.join(**feed.frames(spark), **asked), tmp_path / "ckpt", format="count")
    section, after = query.lastProgress["weir"], manifest(spark, tmp_path)
    rows = Counter(row for entry in after.entries for row in stored(tmp_path, entry))
    assert after.watermark is not None and sum(loads(section)) == rows.total()
    inside = {
        (name, time)
        for name, table in feed.tables().items()
        for time in table["ts"].cast(pa.int64()).to_pylist()
        if time + 8 * SECOND > after.watermark
    }
    assert inside <= set(rows), "no row inside a window is missing"
    assert rows.total() <= 1.5 * len(inside), "slices with many dead rows are rewritten"
    assert rows.total() - len(rows) < 5, "each is there once; two may have one time"
    live = [
        sum(row in inside for entry in part.slices for row in stored(tmp_path, entry))
        for part in after.parts.values()
    ]
    assert max(live) <= 1.2 * min(live)


def stored(folder: Path, entry: Any) -> list[tuple[str, int]]:
    """Stream and time of each row of a slice."""
    data = pa.ipc.open_file(folder / "ckpt" / "weir" / "slices" / entry.file).get_batch(entry.index)
    (time,) = [name for name in data.schema.names if name in entry.spans]
    return [(entry.node, moment) for moment in data.column(time).to_pylist()]


def test_impossible_repartitioning_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    feed = write_feed(tmp_path / "in", generate(2, 1, 5, 3, seed=1))
    query = started(weir.join(**feed.frames(spark), **BAND, partitions=2, spread="psp"), tmp_path)
    try:
        for partitions in (0, -1, 2.5, True, None):
            with pytest.raises(QueryError, match="whole number of at least 1"):
                query.repartition(partitions)  # type: ignore[arg-type]
        with pytest.raises(QueryError, match="'passive' or 'aggressive'; got 'eager'"):
            query.repartition(3, "eager")  # type: ignore[arg-type]
    finally:
        query.stop()
    with pytest.raises(QueryError, match="has ended; start it with partitions="):
        query.repartition(3)
    query = started(weir.join(**feed.frames(spark), **KEYED, partitions=2), tmp_path / "keyed")
    try:
        with pytest.raises(
            QueryError, match=r"while spread='hash' says .*; stop it and start it with partitions=3"
        ):
            query.repartition(3)
    finally:
        query.stop()


def test_the_planner_knows_which_spreads_need_an_mjoin(spark: SparkSession, tmp_path: Path) -> None:
    feed = write_feed(tmp_path / "in", generate(3, 1, 5, 3, seed=1))
    asked: dict[str, Any] = {
        "on": "a.k = b.k AND b.v = c.v",
        "within": "1 hour",
        "rates": {"a": 10, "b": 10, "c": 1000},
        "selectivities": {("a", "b"): 1e-6, ("b", "c"): 0.1},
        "partitions": 2,
    }
    frames = feed.frames(spark)
    free = weir.join(**frames, **asked, spread="auto").planned.plan
    assert not all(isinstance(child, Leaf) for child in free.inputs)
    for spread in ("psp", "share"):
        join = weir.join(**frames, **asked, spread=spread)
        assert all(isinstance(child, Leaf) for child in join.planned.plan.inputs)
        assert join.routing.name == spread


def test_auto_shares_on_one_host_and_uses_psp_on_several() -> None:
    assert [choose_shared_spread(master) for master in ("local", "local[*]", "local[4, 2]")] == ["share"] * 3
    masters = ("local-cluster[2,1,1024]", "spark://one:7077", "yarn", "k8s://https://one:443", "")
    assert {choose_shared_spread(master) for master in masters} == {"psp"}
