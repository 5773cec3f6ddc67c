"""Repair a damaged checkpoint: go back to the newest batch that is whole.

A batch is whole if all that a start after it needs is there and is what it was: its manifest and the slices
that it names, its decision, Spark's commit, and the entries of Spark's logs that it was built on. A repair
deletes what came later, ours, Spark's and the result files, so that the batches after it are read and joined
again.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from weir.spark.checkpoint import Checkpoint
from weir.spark.checkpoint_check import check_logs
from weir.spark.durability import sync_folders
from weir.spark.epoch import take_epoch
from weir.spark.errors import DamagedStateError
from weir.spark.file_sinks import list_files
from weir.spark.filesystem import Folder
from weir.spark.power_cut import describe_published, divide_decisions, find_torn_batch
from weir.spark.result_log import forget_results
from weir.spark.result_names import ResultNames
from weir.spark.sealed_json import unseal
from weir.spark.spark_logs import SparkLogs
from weir.spark.state_names import BatchFileKind, name_batch_file
from weir.spark.torn_logs import LogEntries

_KINDS: tuple[BatchFileKind, ...] = ("decision", "manifest")


@dataclass(frozen=True)
class Repair:
    """What a repair deletes to go back from batch `newest` to batch `batch`, and why."""

    damage: str
    batch: int
    newest: int
    logs: tuple[str, ...]
    state: tuple[str, ...]
    results: tuple[str, ...]

    @property
    def repeated(self) -> str:
        """The batches that are read and joined again, in words."""
        first = self.batch + 1
        return f"batch {first}" if first >= self.newest else f"batches {first} to {self.newest}"


@dataclass(frozen=True)
class StoredState:
    """A checkpoint and its output folder, where files are deleted; `output` is None if it is not known."""

    location: Folder
    checkpoint: Checkpoint
    output: Folder | None

    @property
    def logs(self) -> LogEntries:
        """Spark's logs."""
        return LogEntries(self.location)

    def find_damage(self) -> str | None:
        """Say in words what keeps the next start from going on; None if nothing does."""
        newest = max(self.checkpoint.batches("manifest"), default=-1)
        return next(self._list_damage_of_start(newest), None)

    def plan_repair(self) -> Repair | None:
        """Find the newest batch that is whole, and what came after it; None if nothing is damaged.

        Before batch 0 is finished, there is nothing yet that could be lost: all goes, as from batch -1 on.
        """
        damage = self.find_damage()
        if damage is None:
            return None
        batches = self.checkpoint.batches("manifest")
        whole = next((batch for batch in reversed(batches) if not any(self._list_damage(batch))), None)
        if whole is None and self._is_first_unfinished(batches):
            whole = -1
        if whole is None:
            raise DamagedStateError(
                damage,
                "and no earlier batch is whole; start with a new checkpointLocation, which reads the streams "
                "again from where their sources start",
            )
        return self._plan(whole, damage)

    def describe_repair(self, repair: Repair) -> list[str]:
        """Say what a repair will do, and what it cannot take back."""
        batches, job = repair.repeated, self.checkpoint.read_job()
        deleted = f"{len(repair.state)} decisions and manifests, {len(repair.logs)} entries of Spark's logs"
        if self.output is not None:
            deleted += f", {len(repair.results)} result files in {self.output.uri}"
            kept = f"whoever has read these files has results of {batches} that will come again"
        else:
            table = None if job is None or job.target is None else job.target.table
            sink = "the sink" if table is None else f"the table {table}"
            kept = f"{sink} keeps what it got of {batches}, which will come again; delete it there"
        whole = f"batch {repair.batch}, the newest that is whole"
        return [
            f"damaged: {repair.damage}",
            f"going back to {whole if repair.batch >= 0 else 'the beginning'}; {batches} will be read and "
            "joined again, as far as the sources still have the rows",
            f"to delete: {deleted}",
            kept,
        ]

    def apply(self, repair: Repair) -> None:
        """Delete what a repair deletes; if it is interrupted, another one goes on.

        The damage goes last, so that it is found again until all else is done.
        """
        folder, synced = self.checkpoint.folder, [self.location, *([self.output] if self.output else [])]
        take_epoch(folder, self.checkpoint.id or "")  # a driver that still runs somewhere stops
        if self.output is not None:
            forget_results(self.output, repair.results)
            for name in repair.results:
                self.output.delete(name)
        for name in repair.logs:
            self.logs.remove(name)
        sync_folders(synced)
        for name in repair.state:
            folder.delete(name)
        sync_folders(synced)

    def _is_first_unfinished(self, manifests: list[int]) -> bool:
        """True if no batch was finished but perhaps batch 0, and that not by Spark."""
        newest = max([*manifests, *self.logs.numbers("commits")], default=-1)
        return newest <= 0 and not self.logs.is_intact("commits/0")

    def _plan(self, batch: int, damage: str) -> Repair:
        record = self.checkpoint.manifest_record(before=batch + 1)
        needed = {} if record is None else record.spark_logs
        logs = [
            *(f"commits/{number}" for number in self.logs.numbers("commits") if number > batch),
            *self.logs.list_new(batch, needed),
            # Spark would refuse entries that are whole because of these.
            *self.logs.list_wrong_checksums([*self.logs.list_same(needed), f"commits/{batch}"]),
        ]
        state = [
            name_batch_file(kind, file)
            for kind in _KINDS
            for file in self.checkpoint.files(kind)
            if file.batch > batch
        ]
        # Of a repeat of the batch gone back to, which has a whole decision.
        state += [name_batch_file("decision", file) for file in divide_decisions(self.checkpoint, batch)[1]]
        # The entry that says which batch was the last may be the one that is lost.
        logged = (number for log in ("offsets", "commits") for number in self.logs.numbers(log))
        stored = (number for kind in _KINDS for number in self.checkpoint.batches(kind))
        newest = max([batch + 1, *logged, *stored])
        results = tuple(self._list_results(batch, newest))
        return Repair(damage, batch, newest, tuple(reversed(logs)), tuple(state), results)

    def _list_results(self, batch: int, newest: int) -> Iterator[str]:
        names = ResultNames(self.checkpoint.id or "")
        for path in list_files(self.output) if self.output is not None else ():
            if any(names.is_published(path, number) for number in range(batch + 1, newest + 1)):
                yield path

    def _list_damage_of_start(self, newest: int) -> Iterator[str]:
        if newest >= 0 and newest in self.logs.numbers("commits"):
            yield from self._list_damage(newest)
        elif newest >= 0:
            # Spark has not committed the batch, so it is repeated from the state before it.
            yield from self._list_damaged_files(newest)
            yield from self._list_damage(newest - 1) if newest else ()
        try:
            torn, decisions = find_torn_batch(self.logs, self.checkpoint)
        except DamagedStateError as error:  # a decision that is whole, but of another batch or query
            yield error.damage
            return
        # What goes with them may be whole, and is no damage unless its batch has published.
        weir = self.checkpoint.folder
        names = [name for name in torn.names if not self.logs.is_intact(name)]
        yield from (f"{self.location.uri}/{name} is damaged" for name in names)
        names = [name for name in decisions if unseal(weir.read(name) or b"") is None]
        yield from (f"{weir.uri}/{name} is damaged" for name in names)
        if torn.is_begun and self.output and (damage := describe_published(self.checkpoint, self.output)):
            yield damage
        try:
            check_logs(self.checkpoint, SparkLogs(self.location))
        except DamagedStateError as error:
            yield error.damage

    def _list_damage(self, batch: int) -> Iterator[str]:
        """Say what is wrong with the state after a batch, for a start with the batch after it."""
        yield from self._list_damaged_files(batch)
        if not self.logs.is_intact(f"commits/{batch}"):
            yield f"{self.location.uri}/commits/{batch} is missing or damaged"
        try:
            whole, torn = divide_decisions(self.checkpoint, batch)
        except DamagedStateError as error:  # a decision that is whole, but of another batch or query
            yield error.damage
            return
        if torn and not whole:
            yield f"{self.checkpoint.folder.uri}/{name_batch_file('decision', torn[-1])} is damaged"

    def _list_damaged_files(self, batch: int) -> Iterator[str]:
        try:
            record = self.checkpoint.manifest_record(before=batch + 1)
        except DamagedStateError as error:
            yield error.damage
            return
        if record is None or record.manifest.batch != batch:
            yield f"the manifest of batch {batch} is missing"
            return
        slices = {f"slices/{entry.file}": entry.checksum for entry in record.manifest.entries}
        yield from _compare(self.checkpoint.folder, slices)
        yield from _compare(self.location, record.spark_logs)


def _compare(folder: Folder, checksums: Mapping[str, int]) -> Iterator[str]:
    for name, checksum in checksums.items():
        data = folder.read(name)
        if data is None or zlib.crc32(data) != checksum:
            yield f"{folder.uri}/{name} is {'missing' if data is None else 'damaged'}"
