"""A restart continues from the checkpoint, or names the file or argument that prevents it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import weir
from weir.plan.tree import join as tree
from weir.runtime.batch_events import PHASES, listen
from weir.spark.errors import ChangedQueryError
from weir.spark.sealed_json import seal

from .streams import (
    PAIR,
    Feed,
    add_batch,
    bag,
    copy_query,
    expected,
    finish,
    generate,
    pair_feed,
    read_bag,
    read_state,
    repeat_last_batch,
    rows,
    run,
    state_file,
    write_feed,
)

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.fixture
def few_batches_kept(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.streaming.minBatchesToRetain", "2")
    yield
    spark.conf.unset("spark.sql.streaming.minBatchesToRetain")


def test_a_restart_continues_with_the_next_batch(spark: SparkSession, tmp_path: Path) -> None:
    batches = generate(2, 3, 40, 5, seed=1)
    feed = write_feed(tmp_path / "in", {name: found[:2] for name, found in batches.items()})
    run(weir.join(**feed.frames(spark), **PAIR), tmp_path / "ckpt", tmp_path / "out")
    assert read_bag(tmp_path / "out") == expected(feed.tables(), **PAIR)
    feed = add_batch(feed, {name: found[2] for name, found in batches.items()})
    query = run(weir.join(**feed.frames(spark), **PAIR), tmp_path / "ckpt", tmp_path / "out")
    assert [progress["batchId"] for progress in query.recentProgress] == [2]
    answer = expected(feed.tables(), **PAIR)
    apart = sum((expected({n: t[i] for n, t in batches.items()}, **PAIR) for i in range(3)), Counter())
    assert sum(answer.values()) > sum(apart.values()), "no result needs the state of earlier batches"
    assert read_bag(tmp_path / "out") == answer


def test_a_restart_keeps_the_plan_though_rates_differ(spark: SparkSession, tmp_path: Path) -> None:
    asked = {"on": "a.k = b.k AND b.v <= c.v AND a.v <> c.v", "within": "8 seconds", "late": "6 seconds"}
    batches = generate(3, 2, 30, 6, seed=21)
    feed = write_feed(tmp_path / "in", {name: found[:1] for name, found in batches.items()})
    pairs_first = {"a": 1.0, "b": 1.0, "c": 900.0}

    def started(rates: dict[str, float]) -> Any:
        join = weir.join(**feed.frames(spark), **asked, select="a.id, b.id AS bid, c.id AS cid", rates=rates)
        query = run(join, tmp_path / "ckpt", tmp_path / "out")
        return str(join.planned.plan), query.lastProgress["weir"]["plan"]

    chosen, ran = started(pairs_first)
    feed = add_batch(feed, {name: found[1] for name, found in batches.items()})
    other, still = started({"a": 900.0, "b": 1.0, "c": 1.0})
    assert chosen == ran == still != other
    assert read_bag(tmp_path / "out") == expected(
        feed.tables(), **asked, select="a.id, b.id AS bid, c.id AS cid"
    )


def test_a_restart_without_partitions_keeps_those_of_the_checkpoint(
    spark: SparkSession, tmp_path: Path
) -> None:
    batches = generate(2, 2, 40, 5, seed=6)
    feed = write_feed(tmp_path / "in", {name: tables[:1] for name, tables in batches.items()})
    run(weir.join(**feed.frames(spark), **PAIR, partitions=3), tmp_path / "ckpt", tmp_path / "out")
    feed = add_batch(feed, {name: tables[1] for name, tables in batches.items()})
    query = run(weir.join(**feed.frames(spark), **PAIR), tmp_path / "ckpt", tmp_path / "out")
    assert query.lastProgress["weir"]["placement"]["partitions"] == 3
    assert read_bag(tmp_path / "out") == expected(feed.tables(), **PAIR)


@pytest.fixture(scope="module")
def stopped(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Feed, Path]:
    """Two batches done and a third there to come; tests take copies of its checkpoint."""
    folder = tmp_path_factory.mktemp("stopped")
    batches = generate(2, 3, 40, 5, seed=2)
    feed = write_feed(folder / "in", {name: found[:2] for name, found in batches.items()})
    run(weir.join(**feed.frames(spark), **PAIR, partitions=2), folder / "ckpt", folder / "out")
    return add_batch(feed, {name: found[2] for name, found in batches.items()}), folder


def test_a_changed_schema_or_plan_is_refused(
    stopped: tuple[Feed, Path], spark: SparkSession, tmp_path: Path
) -> None:
    feed, folder = stopped
    frames = feed.frames(spark)
    other = frames["b"].withColumn("v", frames["b"].v.cast("int"))
    says = "column b.v was bigint and now it is int, into which stored values may not fit; cast it to bigint"
    with pytest.raises(ChangedQueryError, match=says):
        run(weir.join(a=frames["a"], b=other, **PAIR, partitions=2), folder / "ckpt", folder / "out")
    three = write_feed(tmp_path / "in", {name: [rows([1], [1])] for name in "abc"})
    asked = {"on": "a.k = b.k AND b.k = c.k", "within": "9 seconds", "partitions": 1}
    run(weir.join(**three.frames(spark), **asked), tmp_path / "ckpt", format="noop")
    changed = weir.join(**three.frames(spark), **asked, plan=tree(tree("a", "b"), "c"))
    says = r"the plan \(a b c\) and the query asks for \(\(a b\) c\); drop plan= to keep \(a b c\)"
    with pytest.raises(ChangedQueryError, match=says):
        run(changed, tmp_path / "ckpt", format="noop")


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x10
    path.write_bytes(data)


def going_on(stopped: tuple[Feed, Path], spark: SparkSession, checkpoint: Path, out: Path) -> str:
    """How a copy of the stopped query fails to go on."""
    with pytest.raises(Exception) as error:
        run(weir.join(**stopped[0].frames(spark), **PAIR, partitions=2), checkpoint, out)
    return str(error.value)


@pytest.fixture
def copy(stopped: tuple[Feed, Path], tmp_path: Path) -> Path:
    copy_query(stopped[1], tmp_path)
    return tmp_path


@pytest.mark.parametrize("how", ["damaged", "missing"])
def test_a_lost_slice_is_named(how: str, copy: Path, stopped: tuple[Feed, Path], spark: SparkSession) -> None:
    parts = read_state(copy / "ckpt", "manifest", 1)["manifest"]["parts"]
    names = {entry["file"] for _, part in parts for entry in part["slices"]}
    assert names
    before = read_bag(copy / "out")
    for name in names:
        path = copy / "ckpt/weir/slices" / name
        damage(path) if how == "damaged" else path.unlink()
    said = going_on(stopped, spark, copy / "ckpt", copy / "out")
    assert any(f"{name} is {how}" in said for name in names)
    assert read_bag(copy / "out") == before


def test_a_lost_manifest_is_named(copy: Path, stopped: tuple[Feed, Path], spark: SparkSession) -> None:
    manifest = state_file(copy / "ckpt", "manifest", 1)
    before = read_bag(copy / "out")
    kept = manifest.read_bytes()
    damage(manifest)
    assert f"{manifest} is damaged" in going_on(stopped, spark, copy / "ckpt", copy / "out")
    manifest.write_bytes(b"")
    assert f"{manifest} is damaged" in going_on(stopped, spark, copy / "ckpt", copy / "out")
    body = json.loads(json.loads(kept)["body"])
    del body["content"]["manifest"]["skew"]
    manifest.write_bytes(seal(body))
    message = f"{manifest} was written by another version of weir: Manifest lacks skew"
    assert message in going_on(stopped, spark, copy / "ckpt", copy / "out")
    manifest.unlink()
    assert "manifests/1-*.json is missing" in going_on(stopped, spark, copy / "ckpt", copy / "out")
    assert read_bag(copy / "out") == before
    manifest.write_bytes(kept)
    run(weir.join(**stopped[0].frames(spark), **PAIR, partitions=2), copy / "ckpt", copy / "out")
    assert read_bag(copy / "out") == expected(stopped[0].tables(), **PAIR)


def test_a_failed_batch_is_repeated_for_the_sink(spark: SparkSession, tmp_path: Path) -> None:
    feed = pair_feed(tmp_path / "in")
    taken: dict[int, Counter[tuple[Any, ...]]] = {}
    broken = True

    def sink(results: DataFrame, batch: int) -> None:
        if broken and batch == 1:
            results.limit(1).collect()
            raise ConnectionError("the other side hung up")
        assert batch not in taken
        taken[batch] = bag(results.toArrow())

    def start() -> Any:
        writer = weir.join(**feed.frames(spark), **PAIR).writeStream.foreachBatch(sink)
        writer = writer.option("checkpointLocation", str(tmp_path / "ckpt"))
        return finish(writer.trigger(availableNow=True).start())

    for attempt in (1, 2):
        with pytest.raises(Exception, match="the other side hung up") as error:
            start()
        assert "weir: batch 1 failed" in str(error.value)
        assert list(taken) == [0]
        assert read_state(tmp_path / "ckpt", "decision", 1)["attempt"] == attempt
        assert not list((tmp_path / "ckpt/weir/manifests").glob("1-*"))
    broken = False
    query = start()
    assert list(taken) == [0, 1, 2]
    assert sum(taken.values(), Counter()) == expected(feed.tables(), **PAIR)
    reasons = [progress["weir"]["decision"]["reason"] for progress in query.recentProgress]
    assert reasons == ["smaller after 2 failed attempts", "as requested"]


def test_a_repeated_batch_follows_the_decision_written_before_it(spark: SparkSession, tmp_path: Path) -> None:
    feed = pair_feed(tmp_path / "in", 2)
    decisions = tmp_path / "ckpt/weir/decisions"
    known: list[tuple[str, int, bool]] = []

    def note(phase: str, batch: int) -> None:
        known.append((phase, batch, (decisions / f"{batch}-0001.json").exists()))
        jobs = spark.sparkContext.statusTracker().getActiveJobsIds()
        assert phase not in ("decide", "build") or not jobs

    stop = listen(note)
    try:
        join = weir.join(**feed.frames(spark), **PAIR, driver_order=["b", "a"])
        run(join, tmp_path / "ckpt", tmp_path / "out")
    finally:
        stop()
    undecided = ("vacuum", "decide")
    assert known == [(phase, batch, phase not in undecided) for batch in (0, 1) for phase in PHASES]
    repeat_last_batch(tmp_path / "ckpt")
    again = weir.join(**feed.frames(spark), **PAIR, driver_order=["a", "b"])
    query = run(again, tmp_path / "ckpt", tmp_path / "out")
    assert [progress["batchId"] for progress in query.recentProgress] == [1]
    assert query.lastProgress["weir"]["decision"]["driverOrder"] == ["b", "a"]
    assert read_bag(tmp_path / "out") == expected(feed.tables(), **PAIR)


@pytest.mark.usefixtures("few_batches_kept")
def test_old_slices_manifests_and_decisions_are_deleted(spark: SparkSession, tmp_path: Path) -> None:
    batches = 15
    feed = write_feed(tmp_path / "in", generate(2, batches, 12, 3, seed=4))
    weir_folder = tmp_path / "ckpt/weir"
    counts: list[tuple[int, ...]] = []

    def count(phase: str, batch: int) -> None:
        if phase == "spark_commit":
            kinds = ("slices", "manifests", "decisions")
            counts.append(tuple(len(list((weir_folder / kind).iterdir())) for kind in kinds))

    stop = listen(count)
    try:
        run(weir.join(**feed.frames(spark), **PAIR, partitions=1), tmp_path / "ckpt", tmp_path / "out")
    finally:
        stop()
    assert len(counts) == batches
    slices, manifests, decisions = zip(*counts, strict=True)
    assert max(slices[8:]) <= max(slices[:8]) <= 20
    assert max(manifests) <= 4 and max(decisions) <= 4
    assert read_bag(tmp_path / "out") == expected(feed.tables(), **PAIR)
    parts = dict(read_state(tmp_path / "ckpt", "manifest", batches - 1)["manifest"]["parts"])
    live = {entry["file"] for entry in parts[0]["slices"]}
    assert live <= {path.name for path in (weir_folder / "slices").iterdir()}


def test_a_start_deletes_slices_that_no_manifest_names(
    copy: Path, stopped: tuple[Feed, Path], spark: SparkSession
) -> None:
    orphan = copy / "ckpt/weir/slices/000000002-0000-00-0001-0badc0ffee12.arrow"
    orphan.write_bytes(b"what a killed task left")
    run(weir.join(**stopped[0].frames(spark), **PAIR, partitions=2), copy / "ckpt", copy / "out")
    assert not orphan.exists()
    found = read_bag(copy / "out")
    assert found == expected(stopped[0].tables(), **PAIR)
