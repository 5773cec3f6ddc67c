"""A repair removes what it reports, and a start after it finds nothing to refuse; without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from weir.spark.checkpoint import Checkpoint
from weir.spark.checkpoint_check import check_logs
from weir.spark.checkpoint_lock import in_use
from weir.spark.errors import DamagedStateError
from weir.spark.power_cut import mend_checkpoint
from weir.spark.result_log import LOG_FOLDER
from weir.spark.spark_logs import SparkLogs
from weir.spark.torn_logs import name_checksums

from .stored import Stored, make_job, open_local


@pytest.fixture
def stored(tmp_path: Path) -> Stored:
    """Batches 0 and 1 are done; batch 2 has published its results and is not committed."""
    stored = Stored(tmp_path)
    stored.run(2)
    stored.plan(2)
    stored.decide(2)
    stored.publish(2)
    return stored


def repair(stored: Stored) -> int:
    """Repair what is damaged; return the batch that it goes back to."""
    repair = stored.state.plan_repair()
    assert repair is not None, "there is nothing to repair"
    stored.state.apply(repair)
    assert stored.state.find_damage() is None
    return repair.batch


def has_results(stored: Stored, batch: int) -> bool:
    """True if results of a batch are there, for whoever lists the folder or reads by its log."""
    entry = stored.output.read(f"{LOG_FOLDER}/{batch}") or b""
    return bool(list((stored.root / "out").glob(f"part-*-{batch:09d}-*"))) or b"part-" in entry


def test_nothing_is_damaged_while_all_is_there(stored: Stored) -> None:
    assert stored.state.find_damage() is None


def test_results_go_also_if_what_says_which_batch_was_the_last_is_lost(stored: Stored) -> None:
    stored.location.delete("offsets/2")
    stored.location.delete("offsets/.2.crc")
    assert "batch 2, or an entry of Spark's logs that it was made on, is" in (
        stored.state.find_damage() or ""
    )
    assert repair(stored) == 1
    assert has_results(stored, 1) and not has_results(stored, 2)


def mend(stored: Stored) -> None:
    """Do what a start does before it reads a checkpoint that it has locked."""
    mend_checkpoint(
        stored.location,
        Checkpoint(stored.weir),
        lambda uri: open_local(Path(uri.removeprefix("file:"))),
    )


def test_a_lost_decision_of_published_results_is_refused_and_repaired(stored: Stored) -> None:
    stored.weir.delete("decisions/2-0001.json")
    with pytest.raises(DamagedStateError, match=r"the decision of batch 2, or .* is missing or damaged in"):
        mend(stored)
    assert repair(stored) == 1
    assert has_results(stored, 1) and not has_results(stored, 2)
    mend(stored)


def test_a_batch_that_has_only_been_planned_is_no_damage(stored: Stored) -> None:
    stored.weir.delete("decisions/2-0001.json")
    for name in list((stored.root / "out").glob("part-*-000000002-*")):
        name.unlink()
    assert stored.state.find_damage() is None


@pytest.mark.parametrize("has_manifest", [False, True], ids=["published", "with a manifest"])
@pytest.mark.parametrize("lost", ["metadata", "offsets/0", "sources/0/0", "weir/decisions/0-0001.json"])
def test_before_the_first_batch_is_finished_all_of_it_may_go(
    lost: str, has_manifest: bool, tmp_path: Path
) -> None:
    stored = Stored(tmp_path)
    stored.start()
    for step in (stored.plan, stored.decide, stored.publish, *([stored.commit] if has_manifest else [])):
        step(0)
    (tmp_path / "ckpt" / lost).write_bytes(b"")
    repair = stored.state.plan_repair()
    assert repair is not None
    assert "going back to the beginning; batch 0 will be read" in stored.state.describe_repair(repair)[1]
    stored.state.apply(repair)
    assert stored.state.find_damage() is None and not has_results(stored, 0)
    assert not stored.state.logs.list_inputs()


@pytest.mark.parametrize("lost", ["metadata", "weir/jobs/0001.json", "weir/jobs", "weir", "commits"])
def test_a_repair_is_not_advised_where_it_cannot_help(lost: str, stored: Stored) -> None:
    stored.location.delete(lost)
    if lost.endswith(".json"):
        stored.location.write(lost, b"{")
    with pytest.raises(
        DamagedStateError, match="; restore it, or start with a new checkpointLocation, which"
    ):
        check_logs(Checkpoint(stored.weir), SparkLogs(stored.location))


@pytest.mark.parametrize("flipped", [".metadata.crc", "offsets/.1.crc", "sources/0/.0.crc"])
def test_wrong_checksums_of_a_whole_entry_are_removed(flipped: str, stored: Stored) -> None:
    data = bytearray(stored.location.read(flipped) or b"")
    data[-1] ^= 1
    stored.location.write(flipped, bytes(data))
    assert repair(stored) == 1


def test_torn_checksums_of_the_last_commit_are_removed(stored: Stored) -> None:
    stored.location.write("commits/.1.crc", b"crc")
    assert repair(stored) == 1


def test_a_torn_decision_of_a_repeat_is_removed(stored: Stored) -> None:
    stored.weir.write("decisions/1-0002.json", b"{")
    assert repair(stored) == 1
    assert Checkpoint(stored.weir).decision(1) is not None


def test_a_batch_that_was_begun_without_state_of_ours_is_refused(tmp_path: Path) -> None:
    stored = Stored(tmp_path)
    stored.start()
    check_logs(Checkpoint(stored.weir), SparkLogs(stored.location))
    stored.plan(0)
    check_logs(Checkpoint(stored.weir), SparkLogs(stored.location))
    stored.location.delete("weir")
    with pytest.raises(DamagedStateError, match=r"weir is missing, and Spark has begun a batch in .*/ckpt; "):
        check_logs(Checkpoint(stored.weir), SparkLogs(stored.location))


@pytest.mark.parametrize("changes", [1, 2, 3], ids=lambda changes: f"{changes} changes later")
def test_a_repair_across_changes_of_the_query_gives_up_the_joins_of_the_first(changes: int) -> None:
    """The condition changes with batch 3, then only the lateness; a repair goes back to batch 2."""
    job, since = make_job("a.k <= b.k").follow(make_job("a.k = b.k"), 3), 3
    assert job.drops_joins
    for change in range(1, changes + 1):
        since += 2
        job = make_job("a.k <= b.k", late=f"{1 + change} seconds").follow(job, since)
        assert not job.drops_joins, "the joins of the job before it are its own"
    assert job.earlier is not None
    again = make_job("a.k <= b.k", late=f"{1 + changes} seconds").follow(job.earlier, 3)
    assert again.drops_joins and again.since == 3
    after = make_job("a.k <= b.k", late=f"{1 + changes} seconds").follow(job.earlier, since)
    assert not after.drops_joins, "nothing lies behind the job before it"


@pytest.mark.parametrize("how", ["empty", "half"])
@pytest.mark.parametrize("name", ["commits/1", "offsets/2", "sources/0/2"])
def test_an_entry_that_spark_cannot_read_is_refused_in_a_sentence(
    name: str, how: str, stored: Stored
) -> None:
    """Nobody else tells of the last commit, and of what a batch reads for which nothing was decided."""
    stored.weir.delete("decisions/2-0001.json")
    data = stored.location.read(name) or b""
    stored.location.write(name, b"" if how == "empty" else data[: len(data) // 2])
    with pytest.raises(DamagedStateError, match=rf"{name} is damaged, .*; .* weir state repair"):
        check_logs(Checkpoint(stored.weir), SparkLogs(stored.location))
    repair(stored)
    check_logs(Checkpoint(stored.weir), SparkLogs(stored.location))


@pytest.mark.parametrize("name", ["metadata", "commits/1", "offsets/2", "sources/0/0"])
def test_checksums_that_end_too_early_are_refused_and_repaired(name: str, stored: Stored) -> None:
    """A start under durability="process" mends nothing, and Spark would answer with a page of Java."""
    file = name_checksums(name)
    stored.location.write(file, (stored.location.read(file) or b"")[:10])
    with pytest.raises(DamagedStateError, match=rf"{name} is damaged, or Hadoop's checksums beside it are; "):
        check_logs(Checkpoint(stored.weir), SparkLogs(stored.location))
    repair(stored)
    check_logs(Checkpoint(stored.weir), SparkLogs(stored.location))


def test_a_damaged_lock_names_no_holder_but_is_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "lock").write_bytes(b"process \xff")
    assert "another driver (process \ufffd) runs a query there" in str(in_use("ckpt", f"{tmp_path}/lock"))
