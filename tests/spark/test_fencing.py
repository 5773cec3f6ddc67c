"""A driver that was paused while another took over stops in a sentence, and nothing of it counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import weir
from weir.errors import QueryError
from weir.runtime.batch_events import listen
from weir.spark.checkpoint import Checkpoint
from weir.spark.durability import PowerDurability
from weir.spark.epoch import take_epoch
from weir.spark.errors import TakenOverError
from weir.spark.failure import find_own_error
from weir.spark.filesystem import HadoopFolder, LocalFolder, open_folder

from .driver import TRIPLE
from .processes import driver
from .streams import PAIR, expected, generate, pair_feed, read_bag, run, state_file, write_feed
from .test_checkpoint_lock import DEFAULT, SETTING

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SAYS = r"^another driver \(process \d+ on host .*\) has taken over the checkpoint .*, so this one stops; let"
# Where a driver is paused, with sinks that look for a newer epoch after that.
STEPS = [("decide", "parquet"), ("sync_batch", "parquet"), ("publish", "json"), ("commit", "parquet")]


def take_over(spark: SparkSession, checkpoint: Path) -> None:
    """Do what a second driver does first."""
    folder = open_folder(spark, f"{checkpoint}/weir")
    query_id = Checkpoint(folder).id
    assert query_id is not None
    take_epoch(folder, query_id)


@contextmanager
def once(at: str, act: Callable[[], None]) -> Iterator[None]:
    """Do something in the pause before a step of the first batch."""

    def notice(phase: str, batch: int) -> None:
        if (phase, batch) == (at, 0):
            act()

    stop = listen(notice)
    try:
        yield
    finally:
        stop()


@pytest.mark.parametrize(("step", "format"), STEPS)
def test_a_driver_that_was_taken_over_stops_at_its_next_step(
    step: str, format: str, spark: SparkSession, tmp_path: Path
) -> None:
    feed = pair_feed(tmp_path / "in", 1)
    join = weir.join(**feed.frames(spark), **PAIR, partitions=2)
    with once(step, lambda: take_over(spark, tmp_path / "ckpt")):
        writer = join.writeStream.format(format).option("checkpointLocation", str(tmp_path / "ckpt"))
        query = writer.trigger(availableNow=True).start(str(tmp_path / "out"))
        with pytest.raises(TakenOverError, match=SAYS):
            query.awaitTermination(120)
    cause = query.exception()
    assert isinstance(cause, TakenOverError) and "\n" not in str(cause)
    slices = list((tmp_path / "ckpt/weir/slices").glob("000000000-*-0001-*"))
    results = list((tmp_path / "out").glob("part-*"))
    assert (bool(slices), bool(results)) == (step != "decide", step == "commit")
    assert not list((tmp_path / "ckpt/weir/manifests").glob("*.json"))
    run(join, tmp_path / "ckpt", tmp_path / "out", format)
    assert read_bag(tmp_path / "out", format) == expected(feed.tables(), **PAIR)
    assert state_file(tmp_path / "ckpt", "manifest", 0).name == "0-0003.json"


def test_a_pause_between_the_last_check_and_the_manifest(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = pair_feed(tmp_path / "in", 1)
    join = weir.join(**feed.frames(spark), **PAIR, partitions=2)
    move = LocalFolder.move

    def pause(folder: LocalFolder, source: str, target: str) -> None:
        if target == "manifests/0-0001.json":
            take_over(spark, tmp_path / "ckpt")
        move(folder, source, target)

    with monkeypatch.context() as patched:
        patched.setattr(LocalFolder, "move", pause)
        with pytest.raises(TakenOverError, match=SAYS):
            run(join, tmp_path / "ckpt", tmp_path / "out")
    assert state_file(tmp_path / "ckpt", "manifest", 0).name == "0-0001.json"
    assert not (tmp_path / "ckpt/commits/0").exists(), "Spark would find its log ahead of the new driver"
    run(join, tmp_path / "ckpt", tmp_path / "out")
    assert read_bag(tmp_path / "out") == expected(feed.tables(), **PAIR)


def test_a_driver_that_was_taken_over_before_its_first_batch(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other driver has left nothing to do, so Spark calls for no batch that could say why it stops."""
    feed = pair_feed(tmp_path / "in", 1)
    join = weir.join(**feed.frames(spark), **PAIR, partitions=2)
    run(join, tmp_path / "ckpt", tmp_path / "out")
    with monkeypatch.context() as patched:
        patched.setattr(PowerDurability, "sync_start", lambda self: take_over(spark, tmp_path / "ckpt"))
        with pytest.raises(TakenOverError, match=SAYS):
            run(join, tmp_path / "ckpt", tmp_path / "out")
    run(join, tmp_path / "ckpt", tmp_path / "out")
    assert read_bag(tmp_path / "out") == expected(feed.tables(), **PAIR)


def test_two_drivers_that_start_at_once_in_a_new_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    feed = pair_feed(tmp_path / "in", 1)
    join = weir.join(**feed.frames(spark), **PAIR, partitions=2)
    (tmp_path / "ckpt").mkdir()
    # As if the other driver wrote the metadata after Spark has looked for it here.
    (tmp_path / "ckpt/.metadata.crc").touch()
    spark.conf.set(SETTING, DEFAULT)
    try:
        with pytest.raises(TakenOverError, match="let one driver at a time run") as error:
            run(join, tmp_path / "ckpt", tmp_path / "out")
    finally:
        spark.conf.unset(SETTING)
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_a_driver_that_wakes_up_after_another_has_gone_on(spark: SparkSession, tmp_path: Path) -> None:
    """Two processes without a lock: the first is paused right before it renames the manifest of batch 1."""
    feed = write_feed(tmp_path / "in", generate(3, 4, 40, 6, seed=13))
    frames = {name: feed.frame(spark, name) for name in "abc"}

    def go_on() -> None:
        run(weir.join(**frames, **TRIPLE, partitions=2), tmp_path / "ckpt", tmp_path / "out")

    conf = {SETTING: DEFAULT, "spark.sql.ansi.enabled": "false"}
    spark.conf.set(SETTING, DEFAULT)
    spark.conf.set("spark.sql.streaming.minBatchesToRetain", "2")
    try:
        with driver(tmp_path, "local[2]", conf=conf, pause=1) as first:
            assert first.stdout is not None and first.stdout.readline() == "pauses\n"
            go_on()
            (tmp_path / "go").touch()
            said, _ = first.communicate(timeout=60)
        assert TakenOverError.__name__ in said and "has taken over the checkpoint" in said
        answer = expected(feed.tables(), **TRIPLE)
        assert sum(answer.values()) > 200 and read_bag(tmp_path / "out") == answer
        assert {path.name for path in (tmp_path / "ckpt/weir/manifests").glob("*.json")} >= {"3-0002.json"}
        go_on()
        assert read_bag(tmp_path / "out") == answer
    finally:
        spark.conf.unset(SETTING)
        spark.conf.unset("spark.sql.streaming.minBatchesToRetain")


@pytest.mark.parametrize(
    "said",
    [
        "terminated with exception: Multiple streaming queries are concurrently using file:/c/sources/0. SQ",
        "terminated with exception: Concurrent update to the log. Multiple streaming jobs detected for 0 SQ",
    ],
)
def test_what_spark_says_of_two_drivers_is_told_in_a_sentence(said: str) -> None:
    told = find_own_error(RuntimeError(f"[STREAM_FAILED] Query {said}\n\tat org.apache.spark"))
    assert isinstance(told, TakenOverError) and "let one driver at a time run" in str(told)


def test_files_before_the_first_batch_may_be_anyones() -> None:
    said = (
        "[STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY] The checkpoint location file:/c/offsets should be empty"
    )
    told = find_own_error(RuntimeError(f"[STREAM_FAILED] Query terminated: {said}\n\tat org.apache.spark"))
    assert type(told) is QueryError and str(told).startswith("file:/c/offsets has files already")


def test_folders_off_the_local_disk_create_once_and_replace_in_one_step(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = HadoopFolder(spark, f"file:{tmp_path}")

    def refuse(*given: Any) -> None:
        raise AssertionError("nothing may be deleted before it is replaced")

    monkeypatch.setattr(folder, "_files", Refusing(folder._files, refuse))
    assert folder.create("epochs/0001.json", b"one")
    assert not folder.create("epochs/0001.json", b"two")
    folder.write("job", b"first")
    folder.write("job", b"second")
    assert folder.read("epochs/0001.json") == b"one" and folder.read("job") == b"second"
    with pytest.raises(OSError, match="nothing"):
        folder.move("nothing", "job")
    assert folder.read("job") == b"second"
    folder.write("odd, file", b"")
    assert [name for name in folder.names() if not name.endswith(".crc")] == ["epochs", "job", "odd, file"]
    (tmp_path / "empty").mkdir()
    assert folder.names("empty") == folder.names("nowhere") == []


class Refusing:
    """Hadoop's FileSystem, but it deletes nothing."""

    def __init__(self, files: Any, delete: Callable[..., None]) -> None:
        self._files, self.delete = files, delete

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)
