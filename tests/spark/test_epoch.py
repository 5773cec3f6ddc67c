"""Epochs fence off older drivers, and no driver deletes what a newer one has written; without Spark."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from weir.errors import QueryError
from weir.runtime.manifest import Manifest
from weir.runtime.partition_batch import PartitionState, SliceEntry
from weir.spark.checkpoint import Checkpoint, ManifestRecord, seal_record
from weir.spark.checkpoint_log import CheckpointLog
from weir.spark.count_files import CountFiles, StageCounts
from weir.spark.epoch import Epoch, take_epoch
from weir.spark.errors import DamagedStateError, TakenOverError
from weir.spark.file_sinks import withdraw_hidden
from weir.spark.filesystem import LocalFolder
from weir.spark.result_names import ResultNames
from weir.spark.state_names import BatchAndEpoch, name_batch_file, name_slice, parse_slice
from weir.spark.vacuum import Vacuum
from weir.stats.batch_counts import BatchCounts

ID = "0123456789ab"


@pytest.fixture
def folder(tmp_path: Path) -> LocalFolder:
    return LocalFolder(f"file:{tmp_path}", str(tmp_path))


def test_the_older_driver_stops_and_says_who_took_over(folder: LocalFolder) -> None:
    first = take_epoch(folder, ID)
    first.check()
    second = take_epoch(folder, ID)
    assert (first.number, second.number) == (1, 2)
    second.check()
    with pytest.raises(TakenOverError) as error:
        first.check()
    holder = f"another driver (process {os.getpid()} on host {socket.gethostname()}, since 20"
    assert str(error.value).startswith(holder)
    assert "checkpointLocation of its own" in str(error.value)
    # An epoch counts by its name: one that is being written, or is damaged, stops older drivers too.
    assert folder.create("epochs/0003.json", b"")
    with pytest.raises(TakenOverError, match=r"another driver \(epoch 3\)"):
        second.check()
    assert take_epoch(folder, ID).number == 4


def test_every_driver_gets_an_epoch_of_its_own(folder: LocalFolder) -> None:
    with ThreadPoolExecutor(8) as threads:
        numbers = [epoch.number for epoch in threads.map(lambda _: take_epoch(folder, ID), range(40))]
    assert sorted(numbers) == list(range(1, 41))


def test_another_query_takes_no_epoch(folder: LocalFolder) -> None:
    take_epoch(folder, ID)
    with pytest.raises(QueryError, match=r"has just started another query from .* start again"):
        take_epoch(folder, "ba9876543210")


def test_a_driver_whose_state_is_deleted_stops(folder: LocalFolder) -> None:
    epoch = take_epoch(folder, ID)
    folder.delete("epochs")
    with pytest.raises(DamagedStateError, match=r"epochs/0001.json is missing"):
        epoch.check()


@pytest.mark.parametrize("left", ["jobs/0003.json", "decisions/7-0003.json", "manifests/7-0003.json"])
def test_an_epoch_is_above_all_that_files_carry_though_its_own_file_is_lost(
    left: str, folder: LocalFolder
) -> None:
    take_epoch(folder, ID)
    folder.write(left, b"")
    assert take_epoch(folder, ID).number == 4


def write_slice(folder: LocalFolder, batch: int, epoch: int) -> str:
    name = name_slice(BatchAndEpoch(batch, epoch), partition=0, number=0)
    folder.write(f"slices/{name}", b"rows")
    return name


def commit(folder: LocalFolder, batch: int, epoch: int, *slices: str) -> Manifest:
    entries = [SliceEntry("a", name, 0, batch, 0, 1, 8, {}, "a@time", None, "None") for name in slices]
    manifest = Manifest(batch=batch, parts={0: PartitionState(tuple(entries))})
    record = seal_record("manifest", ID, batch, epoch, ManifestRecord(manifest, {}))
    folder.write(name_batch_file("manifest", BatchAndEpoch(batch, epoch)), record)
    return manifest


def slices_in(folder: LocalFolder) -> set[str]:
    return set(folder.names("slices"))


def test_vacuum_spares_what_another_driver_may_commit(folder: LocalFolder) -> None:
    checkpoint, epoch = Checkpoint(folder), Epoch(folder, ID, 2)
    kept, left, begun, later = (write_slice(folder, *of) for of in ((0, 1), (0, 1), (1, 1), (1, 3)))
    folder.write("slices/notes.txt", b"not ours")
    folder.write("slices/.probe-0123", b"of a check that was killed")
    before = commit(folder, 0, 1, kept)
    vacuum = Vacuum(checkpoint, epoch, retain=2)
    vacuum.run(before, 1)
    assert slices_in(folder) == {kept, left, begun, later, "notes.txt", ".probe-0123"}
    # The driver has committed batch 1: a late manifest of an older epoch counts no more.
    own = write_slice(folder, 1, 2)
    after = commit(folder, 1, 2, kept, own)
    vacuum.note_commit(after)
    vacuum.run(after, 2)
    assert slices_in(folder) == {kept, own, later, "notes.txt"}


def test_vacuum_of_an_older_driver_that_wakes_up_deletes_nothing_of_the_newer(folder: LocalFolder) -> None:
    old = write_slice(folder, 0, 1)
    before = commit(folder, 0, 1, old)
    vacuum = Vacuum(Checkpoint(folder), Epoch(folder, ID, 1), retain=2)
    # Meanwhile another driver has gone on, and its batches are in need of its own slices.
    new = [write_slice(folder, batch, 2) for batch in (1, 2, 3)]
    for batch in (1, 2, 3):
        commit(folder, batch, 2, *new[:batch])
    files = {*folder.names("manifests"), *folder.names("epochs")}
    vacuum.run(before, 1)
    vacuum.note_commit(before)
    vacuum.run(before, 50)  # when it looks at everything
    assert slices_in(folder) == {old, *new}
    assert {*folder.names("manifests"), *folder.names("epochs")} == files


def test_of_several_epochs_the_highest_counts(folder: LocalFolder) -> None:
    name = write_slice(folder, 1, 2)
    commit(folder, 1, 2, name)
    commit(folder, 1, 1, write_slice(folder, 1, 1))  # late
    commit(folder, 1, 10, name, write_slice(folder, 1, 10))
    assert Checkpoint(folder).read_manifest().files >= {name}
    assert {parse_slice(file).epoch for file in Checkpoint(folder).read_manifest().files} == {2, 10}  # type: ignore[union-attr]


def test_a_batch_below_a_manifest_does_not_begin(folder: LocalFolder) -> None:
    given: Any = None  # what is not reached
    log = CheckpointLog(take_epoch(folder, ID), given, given, given, given, given)
    commit(folder, 3, 1)
    with pytest.raises(DamagedStateError, match=r"Spark begins batch 2, and weir has finished batch 3 in"):
        log.begin(2)
    with pytest.raises(DamagedStateError, match=r"manifests/4-\*.json is missing, and batch 5 starts"):
        log.begin(5)
    folder.create("epochs/0002.json", b"")
    with pytest.raises(TakenOverError):
        log.begin(4)


def test_damaged_lines_of_the_history_are_left_out(folder: LocalFolder) -> None:
    given: Any = None  # what is not reached
    epoch = take_epoch(folder, ID)
    CheckpointLog(epoch, given, given, given, given, given).record_history(3, {"reason": "kept"})
    kept = folder.read("history.jsonl") or b""
    folder.write("history.jsonl", b'{"catch": 1}\n[4]\n{"batch": "2"}\n\xff\n{"ba\n' + kept)
    CheckpointLog(epoch, given, given, given, given, given).record_history(4, {"reason": "new"})
    lines = (folder.read("history.jsonl") or b"").decode().splitlines()
    assert [(line["batch"], line["reason"]) for line in map(json.loads, lines)] == [(3, "kept"), (4, "new")]


def other_kind(folder: LocalFolder) -> None:
    folder.write("manifests/1-0001.json", seal_record("decision", ID, 1, 1, ManifestRecord(Manifest(1), {})))


def other_batch(folder: LocalFolder) -> None:
    commit(folder, 0, 1)
    folder.move("manifests/0-0001.json", "manifests/1-0001.json")


def other_epoch(folder: LocalFolder) -> None:
    commit(folder, 1, 1)
    folder.move("manifests/1-0001.json", "manifests/1-0002.json")


def foreign_slice(folder: LocalFolder) -> None:
    commit(folder, 1, 1, write_slice(folder, 1, 1), "../../../precious")


READ = {
    other_kind: r"manifests/1-0001.json is another kind of file: decision instead of manifest",
    other_batch: r"manifests/1-0001.json belongs to another batch: 0 instead of 1",
    other_epoch: r"manifests/1-0002.json belongs to another epoch: 1 instead of 2",
    foreign_slice: r"manifests/1-0001.json names '../../../precious', which is not the name of a slice file",
}


@pytest.mark.parametrize(("spoil", "says"), READ.items(), ids=lambda given: getattr(given, "__name__", ""))
def test_a_manifest_that_is_not_what_its_name_says_is_refused(
    spoil: Callable[[LocalFolder], None], says: str, folder: LocalFolder
) -> None:
    spoil(folder)
    with pytest.raises(DamagedStateError, match=says):
        Checkpoint(folder).read_manifest()


def test_counts_are_unknown_if_their_file_is_not_theirs(folder: LocalFolder, tmp_path: Path) -> None:
    files = CountFiles(str(tmp_path), ID, BatchAndEpoch(7, 2), 1)
    counts = BatchCounts(rows_in={"a": 3})
    files.write(4, 0, StageCounts(BatchCounts()))
    files.write(4, 0, StageCounts(counts, (1, 2)))
    assert folder.names("stats") == ["7-0002-4-0.json"]
    data = folder.read(files.name(4, 0))
    assert data is not None
    stage = files.parse(data, 4, 0)
    assert stage is not None and (stage.counts, stage.sent_to) == (counts, (1, 2))
    damaged = data.replace(b"rows_in", b"rows_on")
    assert damaged != data
    for wrong in (None, b"", data[:-9], damaged):
        assert files.parse(wrong, 4, 0) is None
    assert files.parse(data, 5, 0) is None
    assert CountFiles(str(tmp_path), ID, BatchAndEpoch(7, 3), 1).parse(data, 4, 0) is None


def test_hidden_results_of_older_drivers_are_withdrawn(folder: LocalFolder) -> None:
    names = ResultNames(ID)
    hidden = {epoch: names.hide(7, 0, epoch) for epoch in (1, 2, 3)}
    foreign = ResultNames("ba9876543210").hide(7, 0, 1)
    for path in (*hidden.values(), foreign):
        folder.write(path, b"rows")
    folder.write(f"{names.name_folder(7, 1)}/part-0", b"rows")
    assert not withdraw_hidden(folder, names, batch=7, epoch=2)
    assert folder.names() == sorted([hidden[3], foreign])
    folder.write(names.reveal(names.hide(7, 0, 1)), b"rows")
    assert withdraw_hidden(folder, names, batch=7, epoch=2)
    assert names.name_folder(7, 1) != names.name_folder(7, 2), "two drivers would write into one"
    assert not withdraw_hidden(folder, names, batch=8, epoch=2)
