"""Move partials from partition to partition, one shuffle per move, all in one job.

A partial travels as the places of its rows: slices are files that every worker can read, so nothing of a row
has to move. The end of a stage plays the part of PSP's END tuple (Wang and Rundensteiner 2009): by then every
slice has been visited.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from weir.codec import from_json, to_json
from weir.kernel.multi_stage_probe import MultiStageProbe, Parcel
from weir.kernel.partial import Partial
from weir.kernel.physical_plan import PhysicalPlan
from weir.kernel.row_ids import concat_partials, get_row_ids, partial_from_row_ids
from weir.kernel.slice import Slice
from weir.kernel.state import State
from weir.runtime.partition_batch import Assignment
from weir.runtime.partition_state import SliceEntry
from weir.spark.filesystem import Folder
from weir.spark.slots import PARTITION
from weir.spark.task import ResultFiles, put_out
from weir.spark.union import routed
from weir.spark.worker_files import open_output
from weir.stats.batch_counts import BatchCounts

_PARCELS = f"{PARTITION} int, parcel binary"


def ring(
    numbers: DataFrame,
    job: Assignment,
    partitions: int,
    stats: str,
    results: ResultFiles | None,
    schema: StructType | str,
) -> DataFrame:
    """All stages of a batch: its results, or where the workers write them the names of their files."""
    last = moves(job.plan)
    moving = numbers
    for place in range(last):
        moving = moving.mapInArrow(_Stage(job, stats, place, last, None), _PARCELS)
        moving = routed(moving, partitions)
    return moving.mapInArrow(_Stage(job, stats, last, last, results), schema)


def moves(physical: PhysicalPlan) -> int:
    """How often partials move."""
    return len(physical.query.names) - 1


def ring_counts(folder: Folder, batch: int, last: int, touched: list[int]) -> dict[int, BatchCounts] | None:
    """What each partition counted in all stages; None if one was not run to its end. The files go."""
    counts: dict[int, BatchCounts] = {}
    names, complete = [], True
    for stage in range(last + 1):
        wanted: set[int] = set()
        for partition in touched:
            names.append(f"stats/{_stage_file(batch, partition, stage)}")
            data = folder.read(names[-1])
            complete = complete and data is not None
            if data is not None:
                told = json.loads(data)
                added = from_json(BatchCounts, told["counts"])
                counts[partition] = counts.get(partition, BatchCounts()) + added
                wanted.update(told["sent"])
        touched = sorted(wanted)
    for name in names:
        folder.delete(name)
    return counts if complete else None


def _stage_file(batch: int, partition: int, stage: int) -> str:
    return f"{batch}-{partition}-{stage}.json"


@dataclass(frozen=True)
class _Stage:
    """One stage: the batch's rows set out (0), or parcels that come in look into their partition's slices.

    Each partition tells in a file of its own name what it counted, and to whom it sent parcels.
    """

    job: Assignment
    stats: str
    hop_number: int
    last: int
    results: ResultFiles | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Parcels, results, or the names of the files that hold them."""
        for partition, parcels in _by_partition(batches, is_start=not self.hop_number).items():
            post = _Post(self.job, partition)
            found = post.visited(parcels) if self.hop_number else post.started()
            if self.hop_number < self.last:
                yield from post.sent(found)
            else:
                yield from put_out(self.results, self.job, partition, post.results(found))
            told = {"counts": to_json(post.counted), "sent": sorted(post.reached)}
            with open_output(
                f"{self.stats}/{_stage_file(self.job.batch, partition, self.hop_number)}"
            ) as stream:
                stream.write(json.dumps(told).encode())


def _by_partition(batches: Iterator[pa.RecordBatch], is_start: bool) -> dict[int, list[bytes]]:
    found: dict[int, list[bytes]] = {}
    for batch in batches:
        numbers = batch.column(0).to_pylist()
        for i, number in enumerate(numbers):
            found.setdefault(number, [])
            if not is_start:
                found[number].append(batch.column(1)[i].as_py())
    return found


class _Post:
    """Parcels in and out of one partition."""

    def __init__(self, job: Assignment, partition: int) -> None:
        self._job, self._partition = job, partition
        self._relay = MultiStageProbe(job.plan, job.decision, job.batch)
        self._entries = {
            (entry.file, entry.index): entry for part in job.parts.values() for entry in part.slices
        }
        self._names: dict[int, tuple[str, int]] = {}
        self._counts = BatchCounts()
        self.reached: set[int] = set()

    @property
    def counted(self) -> BatchCounts:
        """What was counted so far."""
        return replace(self._counts, lags=self._relay.lags)

    def started(self) -> Iterator[Parcel]:
        """The batch's own rows."""
        return self._relay.start(self._state(), self._counts)

    def visited(self, parcels: list[bytes]) -> Iterator[Parcel]:
        """What comes of parcels that visit the partition's slices."""
        state = self._state()
        for parcel in self._arrived(parcels):
            yield from self._relay.visit(parcel, state, self._counts)

    def results(self, parcels: Iterator[Parcel]) -> Iterator[pa.Table]:
        """The results of finished parcels."""
        for parcel in parcels:
            yield from self._relay.results(parcel, self._counts)

    def sent(self, parcels: Iterator[Parcel]) -> Iterator[pa.RecordBatch]:
        """Each parcel once for every partition with slices that it may match."""
        schema = pa.schema([(PARTITION, pa.int32()), ("parcel", pa.binary())])
        for parcel in parcels:
            targets = self._targets(parcel)
            self.reached.update(targets)
            if targets:
                data = self._packed(parcel)
                yield pa.RecordBatch.from_arrays(
                    [pa.array(targets, pa.int32()), pa.array([data] * len(targets), pa.binary())],
                    schema=schema,
                )

    def _arrived(self, parcels: list[bytes]) -> Iterator[Parcel]:
        """The parcels that came in, those of one driver and rank as one."""
        found: dict[tuple[str, int, int], list[Partial]] = {}
        for parcel in map(self._opened, parcels):
            found.setdefault((parcel.driver, parcel.rank, parcel.hop_number), []).append(parcel.partial)
        for (driver, rank, place), partials in found.items():
            yield Parcel(driver, rank, place, concat_partials(partials))

    def _targets(self, parcel: Parcel) -> list[int]:
        node, first, last = self._relay.wanted(parcel)
        lead = self._job.plan.schemas[node].lead

        def may_match(entry: SliceEntry) -> bool:
            if entry.node != node or (entry.batch == self._job.batch and entry.rank >= parcel.rank):
                return False
            begin, end = entry.spans[lead]
            return begin <= last and end >= first

        return [number for number, part in self._job.parts.items() if any(map(may_match, part.slices))]

    def _state(self) -> State:
        state, entries = self._job.load(self._partition)
        self._names |= {one: (entry.file, entry.index) for one, entry in entries.items()}
        return state

    def _slice(self, entry: SliceEntry) -> Slice:
        one = self._job.store.read(entry, self._job.plan)
        self._names[id(one)] = entry.file, entry.index
        return one

    def _packed(self, parcel: Parcel) -> bytes:
        groups = [
            ([self._names[id(one)] for one in slices], numbers, rows)
            for slices, numbers, rows in get_row_ids(parcel.partial)
        ]
        return pickle.dumps((parcel.driver, parcel.rank, parcel.hop_number, groups), protocol=5)

    def _opened(self, data: bytes) -> Parcel:
        driver, rank, place, groups = pickle.loads(data)  # made by `_packed`, in this query
        found: list[Any] = [
            ([self._slice(self._entries[name]) for name in named], numbers, rows)
            for named, numbers, rows in groups
        ]
        return Parcel(driver, rank, place, partial_from_row_ids(found))
