"""Budgets on Spark: decisions are followed, recorded and resumed, and no wrong row is emitted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import weir
from weir.runtime.manifest import Manifest
from weir.spark.checkpoint import Checkpoint
from weir.spark.filesystem import open_folder
from weir.spark.query import SparkQuery

from .streams import (
    SCHEMA,
    SECOND,
    START,
    Feed,
    add_batch,
    expected,
    finish,
    read_bag,
    repeat_last_batch,
    run,
    write_feed,
)

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

ASKED: dict[str, Any] = {
    "on": "a.k = b.k AND b.k = c.k AND (a.v + b.v + c.v) % 7 = 0",
    "within": "8 seconds",
    "select": "a.id AS aid, b.id AS bid, c.id AS cid",
}
# Without one key for all, so that partitions share their slices.
SPREAD = {**ASKED, "on": "a.k = b.k AND b.v = c.v AND (a.v + b.k + c.k) % 7 = 0"}
# With few results of many probes, so that these are most of the work.
PROBING = {**ASKED, "on": "a.k = b.k AND b.k = c.k AND a.v + b.v + c.v = 0"}
SOON = weir.Adapt(calibrate=2)


def growing(batches: int, times: int = 1) -> dict[str, list[pa.Table]]:
    """Three streams, ten seconds a batch; from the third batch on with four times the rows."""
    rng = np.random.default_rng(7)

    def table(number: int) -> pa.Table:
        count = times * (120 if number > 1 else 30)
        moments = START + number * 10 * SECOND + np.sort(rng.integers(0, 10 * SECOND, count))
        columns = {
            "ts": pa.array(moments, SCHEMA.field("ts").type),
            "k": pa.array(rng.integers(0, 6 * times, count)),
            "v": pa.array(rng.integers(0, 5, count)),
            "id": pa.array(number * 10_000 + np.arange(count)),
        }
        return pa.table(columns, SCHEMA)

    return {name: [table(number) for number in range(batches)] for name in "abc"}


def fed(root: Path, batches: dict[str, list[pa.Table]], count: int) -> Feed:
    """A feed of the first batches."""
    return write_feed(root, {name: found[:count] for name, found in batches.items()})


def sections(query: SparkQuery) -> dict[int, Any]:
    return {one["batchId"]: one["weir"] for one in query.recentProgress if one["weir"]}


def history(folder: Path) -> list[dict[str, Any]]:
    file = folder / "ckpt" / "weir" / "history.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def manifests(spark: SparkSession, folder: Path, count: int) -> list[Manifest]:
    checkpoint = Checkpoint(open_folder(spark, f"{folder / 'ckpt'}/weir"))
    return [checkpoint.read_manifest(before=batch + 1) for batch in range(count)]


def held_bytes(manifest: Manifest) -> int:
    return sum(entry.bytes for entry in manifest.entries)


def test_results_are_complete_within_the_budget(spark: SparkSession, tmp_path: Path) -> None:
    feed = fed(tmp_path / "in", growing(4), 4)
    budget = weir.Budget(cpu=1.0, memory="1g")
    query = run(
        weir.join(**feed.frames(spark), **ASKED, budget=budget, adapt=SOON),
        tmp_path / "ckpt",
        tmp_path / "out",
    )
    assert read_bag(tmp_path / "out") == expected(feed.tables(), **ASKED)
    told = sections(query)
    assert list(told) == [0, 1, 2, 3] and query.budget == budget
    assert all(one["estimatedRecall"] == 1.0 and not one["numRowsShed"] for one in told.values())
    known = told[3]["statistics"]
    assert known["batches"] == 4 and set(known["rates"]) == {"a", "b", "c"}
    assert all(rate > 0 for rate in known["rates"].values()) and known["span"] == pytest.approx(10, rel=0.1)
    assert {"decide", "observe"} <= told[3]["seconds"].keys()


def test_overload_is_shed_and_a_restart_resumes_the_decision(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    batches = growing(7, times=40)
    feed = fed(tmp_path / "in", batches, 6)
    unlimited = weir.join(**feed.frames(spark), **PROBING, budget=weir.Budget(cpu=1.0), adapt=SOON)
    known = sections(run(unlimited, tmp_path / "exact", tmp_path / "exact-out"))[5]["statistics"]
    budget = weir.Budget(cpu=0.4 * known["work"] / known["span"])

    def ran() -> dict[int, Any]:
        join = weir.join(**feed.frames(spark), **PROBING, budget=budget, adapt=SOON)
        return sections(run(join, tmp_path / "ckpt", tmp_path / "out"))

    with caplog.at_level("INFO", "weir"):
        first = ran()
    decided = history(tmp_path)
    assert decided and decided[0]["batch"] >= 2 and decided[0]["predicted"]["recall"] < 1
    assert any(decided[0]["reason"] in line for line in caplog.messages)
    last = decided[-1]
    assert {k: first[last["batch"]]["decision"][k] for k in ("plan", "allowance", "reason")} == {
        k: last[k] for k in ("plan", "allowance", "reason")
    }
    assert first[5]["numRowsShed"] > 0 and first[5]["estimatedRecall"] < 1
    before = read_bag(tmp_path / "out")

    # The last batch is repeated as it was decided; what was known and decided before is known and goes on.
    repeat_last_batch(tmp_path / "ckpt")
    feed = add_batch(feed, {name: found[6] for name, found in batches.items()})
    second = ran()
    assert list(second) == [5, 6]
    assert [second[5][k] for k in ("numRowsShed", "decision")] == [
        first[5][k] for k in ("numRowsShed", "decision")
    ]
    assert [second[batch]["statistics"]["batches"] for batch in (5, 6)] == [6, 7]
    # By rows or by ages, as the last analysis found best.
    assert second[6]["decision"]["allowance"] and history(tmp_path)[: len(decided)] == decided
    found, wanted = read_bag(tmp_path / "out"), expected(feed.tables(), **PROBING)
    assert before <= found < wanted and max(found.values()) == 1


def test_state_fits_the_memory_budget_also_after_it_changes(spark: SparkSession, tmp_path: Path) -> None:
    batches = growing(6)
    feed = fed(tmp_path / "in", batches, 4)
    join = weir.join(**feed.frames(spark), **SPREAD, budget=weir.Budget(memory=6000), adapt=SOON)
    writer = join.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "ckpt"))
    query = writer.option("path", str(tmp_path / "out")).trigger(processingTime="100 milliseconds").start()
    try:
        query.processAllAvailable()
        query.budget = weir.Budget(memory=2500)
        with pytest.raises(weir.QueryError, match=r"weir\.Budget"):
            query.budget = "2500 bytes"  # type: ignore[assignment]
        with pytest.raises(weir.QueryError, match="memory of 900t is more than this machine has"):
            query.budget = weir.Budget(memory="900t")
        for number in (4, 5):
            feed = add_batch(feed, {name: found[number] for name, found in batches.items()})
            query.processAllAvailable()
    finally:
        query.stop()
    told = sections(query)
    sizes = [held_bytes(found) for found in manifests(spark, tmp_path, 1 + max(told))]
    assert 2500 < max(sizes) <= 6000 and max(sizes[4:]) <= 2500
    gone = [sum(state["numRowsShed"] for state in one["state"].values()) for one in told.values()]
    assert not gone[0] and gone[-1] > 0 and told[max(told)]["numRowsShed"] == gone[-1]
    assert told[max(told)]["estimatedRecall"] < 1
    found, wanted = read_bag(tmp_path / "out"), expected(feed.tables(), **SPREAD)
    assert found < wanted and max(found.values()) == 1


def test_batches_not_read_to_the_end_are_not_learned_from(spark: SparkSession, tmp_path: Path) -> None:
    feed = fed(tmp_path / "in", growing(3), 3)
    join = weir.join(**feed.frames(spark), **ASKED, budget=weir.Budget(cpu=0.001, memory=3000), adapt=SOON)
    writer = join.writeStream.option("checkpointLocation", str(tmp_path / "ckpt"))

    def ignore(results: DataFrame, batch: int) -> None:
        pass

    told = sections(finish(writer.foreachBatch(ignore).trigger(availableNow=True).start()))
    assert len(told) == 3 and all(one["statistics"] is None for one in told.values())
    assert all(held_bytes(found) <= 3000 for found in manifests(spark, tmp_path, 3))
    assert not history(tmp_path)


def test_more_memory_than_this_machine_has_is_refused_at_the_start(
    spark: SparkSession, tmp_path: Path
) -> None:
    join = weir.join(
        **fed(tmp_path / "in", growing(1), 1).frames(spark), **ASKED, budget=weir.Budget(memory="900t")
    )
    join.explain()  # a job for a cluster may be looked at here
    with pytest.raises(
        weir.QueryError, match=r"memory of 900t is more than this machine has, .*; give it less"
    ):
        run(join, tmp_path / "ckpt", tmp_path / "out")


def test_a_budget_is_fixed_unless_the_query_adapts(spark: SparkSession, tmp_path: Path) -> None:
    feed = fed(tmp_path / "in", growing(1), 1)
    budget = weir.Budget(cpu=0.001)
    query = run(
        weir.join(**feed.frames(spark), **ASKED, budget=budget, adapt=False), tmp_path / "ckpt", format="noop"
    )
    assert query.budget == budget
    with pytest.raises(weir.QueryError, match="does not adapt is fixed"):
        query.budget = weir.Budget(cpu=0.5)
