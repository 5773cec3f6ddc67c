"""A batch syncs what it wrote before it publishes, and a start mends what a power cut has left."""

from __future__ import annotations

import ctypes
import errno
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import weir
from weir.runtime.batch_events import listen
from weir.spark import durability, power_cut
from weir.spark.checkpoint import Checkpoint
from weir.spark.durability import PowerDurability
from weir.spark.epoch import take_epoch
from weir.spark.errors import DamagedStateError
from weir.spark.filesystem import HadoopFolder, LocalFolder
from weir.spark.power_cut import mend_checkpoint
from weir.spark.state_access import open_for_repair

from .streams import PAIR, Feed, bag, finish, generate, pair_feed, read_bag, run, write_feed
from .torn import answer, failing, go_on, interrupted, tear

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

Begun = tuple[Feed, Path]


@pytest.fixture(scope="module")
def interrupted_once(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Begun:
    """Batches 0 and 1 are done; batch 2 has begun and published nothing; batch 3 is to come."""
    folder = tmp_path_factory.mktemp("begun")
    feed = interrupted(spark, folder / "query", 2, "publish")
    assert not list((folder / "query/out").glob("part-*-000000002-*"))
    assert list((folder / "query/out").glob("_part-*-000000002-*")), "nothing is hidden that could be torn"
    shutil.copytree(folder / "query", folder / "kept")
    return feed, folder


@pytest.fixture
def begun(interrupted_once: Begun) -> Begun:
    """The same again, in the same place: a checkpoint knows where its results are."""
    feed, folder = interrupted_once
    shutil.rmtree(folder / "query")
    shutil.copytree(folder / "kept", folder / "query")
    return feed, folder / "query"


# What a cut may leave together; each file is gone, or torn in its own way.
CUTS: dict[str, dict[str, str]] = {
    "the commit before it": {"commits/1": "empty", "commits/.1.crc": "half", "weir/decisions/2-*": "half"},
    "its offsets": {"offsets/2": "half", "sources/0/2": "empty", "sources/1/.2.crc": "gone"},
    "an entry of a source": {"sources/0/2": "gone", "weir/decisions/2-*": "gone", "weir/epochs/*": "empty"},
    "its checksums": {"offsets/.2.crc": "half", "sources/1/.2.crc": "empty", "commits/.1.crc": "empty"},
}


@pytest.mark.parametrize("cut", CUTS)
def test_a_start_goes_on_after_a_cut_before_a_batch_is_synced(
    cut: str, begun: Begun, spark: SparkSession
) -> None:
    feed, folder = begun
    of_tasks = [*(folder / "ckpt/weir/slices").glob("000000002-*"), *(folder / "out").glob("_part-*")]
    for path in of_tasks:
        tear(path, "empty")
    (folder / "ckpt/weir/manifests/.2-0001.json.0123abcd").write_bytes(b"")
    for name, how in CUTS[cut].items():
        paths = list((folder / "ckpt").glob(name))
        assert paths, f"{name} is not there"
        for path in paths:
            tear(path, how)
    go_on(spark, feed, folder)
    assert read_bag(folder / "out") == answer(feed)


def test_a_second_cut_while_a_batch_is_repeated(spark: SparkSession, tmp_path: Path) -> None:
    """The first cut loses Spark's commit of a batch; the second tears the decision for its repeat."""
    feed = interrupted(spark, tmp_path, 2, "spark_commit")
    with failing("build", 2), pytest.raises(Exception, match="here it ends"):
        go_on(spark, feed, tmp_path)
    again = max((tmp_path / "ckpt/weir/decisions").glob("2-*.json"))
    assert again.name == "2-0002.json"
    tear(again, "empty")
    go_on(spark, feed, tmp_path)
    assert read_bag(tmp_path / "out") == answer(feed)


def test_a_first_batch_that_is_torn_begins_anew(spark: SparkSession, tmp_path: Path) -> None:
    feed = interrupted(spark, tmp_path, 0, "build", batches=2)
    for name in ("metadata", "offsets/0", "sources/0/0", "weir/decisions/0-0001.json"):
        tear(tmp_path / "ckpt" / name, "empty")
    go_on(spark, feed, tmp_path)
    assert read_bag(tmp_path / "out") == answer(feed)


def test_a_torn_batch_with_published_results_is_repaired(spark: SparkSession, tmp_path: Path) -> None:
    feed = interrupted(spark, tmp_path, 0, "sync_results", batches=1)
    assert list((tmp_path / "out").glob("part-*-000000000-*"))
    tear(tmp_path / "ckpt/offsets/0", "empty")
    with pytest.raises(weir.QueryError, match=r"missing or damaged in .* its results are published"):
        go_on(spark, feed, tmp_path)
    with open_for_repair(str(tmp_path / "ckpt"), {}) as stored:
        repair = stored.plan_repair()
        assert repair is not None and repair.batch == -1 and repair.results
        stored.apply(repair)
    go_on(spark, feed, tmp_path)
    assert read_bag(tmp_path / "out") == answer(feed)


def test_a_torn_log_of_results_is_written_again(spark: SparkSession, tmp_path: Path) -> None:
    feed, out = write_feed(tmp_path / "in", generate(2, 3, 40, 5, seed=31)), str(tmp_path / "out")

    def read_back() -> None:
        join = weir.join(**feed.frames(spark), **{**PAIR, "select": f"{PAIR['select']}, a.ts"})
        query = join.readBack(path=out, checkpointLocation=str(tmp_path / "ckpt"), availableNow=True).query
        finish(query)

    # Batch 1 is logged and not committed, then committed; its entry is torn either time.
    for step, batch in (("sync_results", 1), ("vacuum", 2)):
        with failing(step, batch), pytest.raises(Exception, match="here it ends"):
            read_back()
        tear(tmp_path / "out/_spark_metadata/1", "half")
    read_back()
    assert bag(spark.read.parquet(out).drop("ts").toArrow()) == answer(feed)


def test_an_output_out_of_reach_does_not_keep_a_start_from_mending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location, folder = (LocalFolder(f"file:{path}", str(path)) for path in (tmp_path, tmp_path / "weir"))
    take_epoch(folder, "0123456789ab")
    errors: list[Exception] = [DamagedStateError("a job is damaged"), OSError("no route to host")]

    def fail(*_: Any) -> None:
        raise errors.pop(0)

    monkeypatch.setattr(power_cut, "open_output", fail)
    location.write("offsets/0", b"")
    with pytest.raises(DamagedStateError, match="a job is damaged"):
        mend_checkpoint(location, Checkpoint(folder), fail)
    mend_checkpoint(location, Checkpoint(folder), fail)
    assert not location.names("offsets") and not errors


def test_disks_are_synced_before_results_and_before_the_manifest(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events, batches = list[str](), list[int]()
    move, sync = LocalFolder.move, durability._Disk.sync

    def record_move(folder: LocalFolder, source: str, target: str) -> None:
        events.append({"part": "results", "manifests": "manifest"}.get(re.split("[-/]", target)[0], ""))
        move(folder, source, target)

    def record_sync(disk: Any) -> None:
        events.append("sync")
        sync(disk)

    def start(sink: str, how: Any = "power") -> None:
        join = weir.join(**feed.frames(spark), **PAIR, partitions=1, durability=how)
        if sink == "files":
            run(join, tmp_path / f"{sink}-{how}", tmp_path / f"{sink}-{how}-out")
            return
        writer = join.writeStream.foreachBatch(lambda results, batch: events.append("results"))
        writer = writer.option("checkpointLocation", str(tmp_path / f"{sink}-{how}"))
        finish(writer.trigger(availableNow=True).start())

    monkeypatch.setattr(LocalFolder, "move", record_move)
    monkeypatch.setattr(durability._Disk, "sync", record_sync)
    monkeypatch.setattr(durability, "_sync_folder", lambda path: events.append(f"sync {Path(path).name}"))
    feed = pair_feed(tmp_path / "in", 2)
    stop = listen(lambda step, batch: batches.append(len(events)) if step == "vacuum" else None)
    try:
        for sink in ("files", "a function"):
            start(sink)
            last = [event for event in events[batches[-1] :] if event]
            assert last == ["sync", "results", "sync", "manifest", "sync manifests"]
        events.clear()
        start("files", "process")
    finally:
        stop()
    assert "sync" not in events and "manifest" in events


def test_a_failed_sync_ends_the_batch_in_a_sentence(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed, batches = pair_feed(tmp_path / "in"), list[int]()

    def fail_in_batch_1(disk: Any) -> None:
        if batches and batches[-1] == 1:
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(durability._Disk, "sync", fail_in_batch_1)
    stop = listen(lambda step, batch: batches.append(batch))
    try:
        with pytest.raises(weir.QueryError, match=r"cannot be synced \(Input/output error\), so what was"):
            go_on(spark, feed, tmp_path)
    finally:
        stop()
    assert not list((tmp_path / "out").glob("part-*-000000001-*"))
    monkeypatch.undo()
    go_on(spark, feed, tmp_path)
    assert read_bag(tmp_path / "out") == answer(feed)


def test_a_disk_is_never_synced_again_after_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, calls = LocalFolder(f"file:{tmp_path}", str(tmp_path)), list[int]()
    syncing = PowerDurability(folder)
    syncing.sync_batch(0, [])  # for real

    class Libc:
        @staticmethod
        def syncfs(number: int) -> int:
            calls.append(number)
            ctypes.set_errno(errno.ENOSPC)
            return -1

    monkeypatch.setattr(durability, "_LIBC", Libc)
    for _ in range(2):
        with pytest.raises(
            weir.QueryError, match=rf"the disk of {tmp_path} cannot be synced \(No space left"
        ):
            syncing.sync_results(0, "")
    assert len(calls) == 1


def test_what_the_driver_writes_to_hadoop_is_synced_before_it_is_closed() -> None:
    calls: list[str] = []

    class Stream:
        def write(self, data: bytearray) -> None:
            calls.append("write")

        def hasCapability(self, name: str) -> bool:  # noqa: N802 - Hadoop's name
            return name == "hsync"

        def hsync(self) -> None:
            calls.append("hsync")

        def close(self) -> None:
            calls.append("close")

    folder = object.__new__(HadoopFolder)  # without a file system, of which there is none here
    for is_synced in (True, False):
        folder._is_synced = is_synced
        folder._fill(Stream(), b"decision")
    assert calls == ["write", "hsync", "close", "write", "close"]
