"""One driver at a time runs a query on a local checkpoint, and Spark writes its logs there the faster way."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import weir
from weir.spark.checkpoint_lock import CheckpointLock
from weir.spark.errors import ChangedQueryError
from weir.spark.query import SparkQuery

from .driver import TRIPLE
from .processes import driver
from .streams import PAIR, Feed, expected, generate, pair_feed, read_bag, write_feed

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SETTING = "spark.sql.streaming.checkpointFileManagerClass"
DEFAULT = "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"


@pytest.mark.slow
def test_a_second_driver_is_refused_until_the_first_has_died(tmp_path: Path) -> None:
    feed = write_feed(tmp_path / "in", generate(3, 3, 40, 6, seed=13))
    with (
        driver(tmp_path, "local[2]", hang=1) as first,
        driver(tmp_path, "local[2]", insist=True) as second,
    ):
        assert first.stdout is not None and first.stdout.readline() == "hangs\n"
        holder = (tmp_path / "ckpt/weir/lock").read_text()
        assert is_locked(tmp_path / "ckpt") and holder.startswith("process ")
        assert second.stdout is not None
        said = second.stdout.readline()
        assert said == (
            f"the checkpoint file:{tmp_path}/ckpt/weir is in use: another driver ({holder}) runs a query "
            "there; stop it or wait for its end and start again, or start with another checkpointLocation\n"
        )
        assert first.poll() is None
        first.kill()  # its Java ends by itself
        refused, _ = second.communicate(timeout=120)
        assert second.returncode == 0 and set(refused.splitlines(keepends=True)) <= {said}
    answer = expected(feed.tables(), **TRIPLE)
    assert sum(answer.values()) > 100
    assert read_bag(tmp_path / "out") == answer
    assert (tmp_path / "ckpt/weir/lock").read_text() != holder


def test_each_run_of_a_query_in_one_session_holds_the_lock(spark: SparkSession, tmp_path: Path) -> None:
    feed = pair_feed(tmp_path / "in")
    first = start(spark, feed, tmp_path)
    assert managers(first) == {"FileSystemBasedCheckpointFileManager"}
    assert is_locked(tmp_path / "ckpt") and spark.conf.get(SETTING, None) is None
    second = start(spark, feed, tmp_path)  # Spark stops the first
    assert not first.isActive and second.isActive
    assert not until(lambda: not is_locked(tmp_path / "ckpt"), 0.5)
    second.stop()
    third = start(spark, feed, tmp_path)
    third.processAllAvailable()
    assert is_locked(tmp_path / "ckpt")
    third._query.stop()  # Spark's own
    assert until(lambda: not is_locked(tmp_path / "ckpt"))
    assert read_bag(tmp_path / "out") == expected(feed.tables(), **PAIR)


def test_who_is_alone_may_sweep(spark: SparkSession, tmp_path: Path) -> None:
    with CheckpointLock(spark, f"file:{tmp_path}") as first:
        assert first.is_alone
        with CheckpointLock(spark, f"file:{tmp_path}") as second:
            assert not first.is_alone and not second.is_alone
        assert first.is_alone
    (tmp_path / "unlocked/lock").mkdir(parents=True)
    with CheckpointLock(spark, f"file:{tmp_path}/unlocked") as third:
        assert not third.is_alone


def test_a_start_or_query_that_fails_leaves_no_lock(spark: SparkSession, tmp_path: Path) -> None:
    feed = pair_feed(tmp_path / "in")
    one = start(spark, feed, tmp_path / "one", name="same")
    with pytest.raises(Exception, match="same"):
        start(spark, feed, tmp_path / "other", name="same")
    assert spark.conf.get(SETTING, None) is None
    assert is_locked(tmp_path / "one/ckpt") and not is_locked(tmp_path / "other/ckpt")
    one.stop()
    with pytest.raises(ChangedQueryError):
        start(spark, feed, tmp_path / "one", fresh="1 minute")
    assert until(lambda: not is_locked(tmp_path / "one/ckpt"))

    def fail(results: DataFrame, batch: int) -> None:
        raise ConnectionError("the other side hung up")

    writer = weir.join(**feed.frames(spark), **PAIR).writeStream.foreachBatch(fail)
    failing = writer.option("checkpointLocation", str(tmp_path / "other/ckpt")).start()
    with pytest.raises(Exception, match="the other side hung up"):
        failing.awaitTermination(60)
    assert until(lambda: not is_locked(tmp_path / "other/ckpt"))


def test_the_users_own_choice_stays(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set(SETTING, DEFAULT)
    try:
        query = start(spark, pair_feed(tmp_path / "in"), tmp_path)
        assert managers(query) == {"FileContextBasedCheckpointFileManager"}
        assert not (tmp_path / "ckpt/weir/lock").exists()
        assert spark.conf.get(SETTING) == DEFAULT
        query.stop()
    finally:
        spark.conf.unset(SETTING)


def test_a_disk_without_locks_keeps_sparks_default(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "ckpt/weir/lock").mkdir(parents=True)  # no file that could be locked
    query = start(spark, pair_feed(tmp_path / "in"), tmp_path)
    assert managers(query) == {"FileContextBasedCheckpointFileManager"}
    query.stop()


def start(spark: SparkSession, feed: Feed, folder: Path, name: str = "", **changed: Any) -> SparkQuery:
    writer = weir.join(**feed.frames(spark), **{**PAIR, **changed}).writeStream.format("parquet")
    writer = writer.queryName(name) if name else writer
    return writer.option("checkpointLocation", str(folder / "ckpt")).start(str(folder / "out"))


def is_locked(checkpoint: Path) -> bool:
    """Whether a process has locked the checkpoint; Java's locks are those of the operating system."""
    with (checkpoint / "weir/lock").open("r+") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def until(is_so: Callable[[], bool], seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.05)
    return is_so()


def managers(query: SparkQuery) -> set[str]:
    """By which of Spark's classes a query writes its logs, and those of its sources."""
    query.processAllAvailable()
    execution = query._query._jsq.streamingQuery()
    sources = [execution.sources().apply(number) for number in range(execution.sources().length())]
    assert len(sources) == 2
    logs = [
        execution.offsetLog(),
        execution.commitLog(),
        *(field(source, "metadataLog") for source in sources),
    ]
    return {field(log, "fileManager").getClass().getSimpleName() for log in logs}


def field(owner: Any, name: str) -> Any:
    """A private field of a Java object."""
    kind = owner.getClass()
    while name not in [found.getName() for found in kind.getDeclaredFields()]:
        kind = kind.getSuperclass()
    found = kind.getDeclaredField(name)
    found.setAccessible(True)
    return found.get(owner)
