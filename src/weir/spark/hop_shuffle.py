"""Probe across partitions: shuffle partials to the partitions whose slices they may match, hop by hop.

    stage 0          stage 1                 stage n - 1
    rows of   ─▶ shuffle ─▶ probe hop 1 ─▶ shuffle ─▶ ... probe the last hop ─▶ results
    the batch

All stages are one Spark job (`weir.spark.engine`). A partial travels as row ids: slices are files that
every worker can read, so no row has to move. The end of a stage plays the part of PSP's END tuple (Wang and
Rundensteiner 2009): by then every slice has been probed. Workers import this module, so it needs no pyspark.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.kernel.multi_stage_probe import MultiStageProbe, Parcel
from weir.kernel.partial import Partial
from weir.kernel.quarantine import Quarantine
from weir.kernel.row_ids import concat_partials, get_row_ids, partial_from_row_ids
from weir.kernel.slice import Slice
from weir.kernel.state import State
from weir.runtime.partition_batch import Assignment
from weir.spark.count_files import CountFiles, StageCounts
from weir.spark.quarantine_files import write_quarantine
from weir.spark.task import PARTITION, ResultFiles, deliver_results
from weir.spark.worker_socket import acknowledge_at_once
from weir.stats.batch_counts import BatchCounts

_SHUFFLED = pa.schema([(PARTITION, pa.int32()), ("partials", pa.binary())])
SHUFFLED_COLUMNS = f"{PARTITION} int, partials binary"


@dataclass(frozen=True)
class HopStage:
    """One stage: number 0 admits the batch's rows, each later one probes with the partials that came."""

    assignment: Assignment
    counts: CountFiles
    number: int
    last: int
    results: ResultFiles | None
    quarantine: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield partials for the next stage, results, or the names of the files that hold them."""
        acknowledge_at_once()
        for partition, packed in _group_by_partition(batches).items():
            probe = _PartitionProbe(self.assignment, partition)
            partials = probe.run(packed) if self.number else probe.start()
            if self.number < self.last:
                yield from probe.send(partials)
            else:
                chunks = (table for parcel in partials for table in probe.make_results(parcel))
                yield from deliver_results(self.results, self.assignment, partition, chunks)
            left_out = write_quarantine(self.quarantine, probe.quarantine, partition, 1 + self.number)
            counts = StageCounts(probe.counts, tuple(sorted(probe.sent_to)), left_out)
            self.counts.write(partition, self.number, counts)


def _group_by_partition(batches: Iterator[pa.RecordBatch]) -> dict[int, list[bytes]]:
    """Group packed partials by partition; at the start, only partition numbers come."""
    groups: dict[int, list[bytes]] = {}
    for batch in batches:
        for number, *partials in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            groups.setdefault(number, []).extend(partials)
    return groups


class _PartitionProbe:
    """Unpacks, probes and packs the partials of one partition in one stage."""

    def __init__(self, assignment: Assignment, partition: int) -> None:
        self._assignment, self._partition = assignment, partition
        self.quarantine = Quarantine(assignment.batch)
        physical, decision = assignment.physical, assignment.decision
        self._probe = MultiStageProbe(physical, decision, assignment.batch, self.quarantine)
        self._entries = {entry.place: entry for part in assignment.parts.values() for entry in part.slices}
        self._places: dict[int, tuple[str, int]] = {}  # of slices by identity
        self._stored: dict[str, npt.NDArray[np.int64]] = {}  # where the slices of each state lie
        self._counts = BatchCounts()
        self.sent_to: set[int] = set()

    @property
    def counts(self) -> BatchCounts:
        probe = self._probe
        quarantined = self.quarantine.count
        return replace(self._counts, weights=probe.weights, lags=probe.lags, quarantined=quarantined)

    def start(self) -> Iterator[Parcel]:
        return self._probe.start(self._load_state(), self._counts)

    def run(self, packed: list[bytes]) -> Iterator[Parcel]:
        """Probe the partition's slices; those of one driver and rank together."""
        state = self._load_state()
        groups: dict[tuple[str, int, int], list[Partial]] = {}
        for parcel in map(self._unpack, packed):
            groups.setdefault((parcel.driver, parcel.rank, parcel.hop_number), []).append(parcel.partial)
        for (driver, rank, hop_number), partials in groups.items():
            parcel = Parcel(driver, rank, hop_number, concat_partials(partials))
            yield from self._probe.visit(parcel, state, self._counts)

    def make_results(self, parcel: Parcel) -> Iterator[pa.Table]:
        return self._probe.results(parcel, self._counts)

    def send(self, parcels: Iterator[Parcel]) -> Iterator[pa.RecordBatch]:
        """Yield each parcel once for every partition with slices that it may match."""
        for parcel in parcels:
            partitions = self._matching_partitions(parcel)
            self.sent_to.update(partitions)
            if partitions:
                packed = [self._pack(parcel)] * len(partitions)
                columns = [pa.array(partitions, pa.int32()), pa.array(packed, pa.binary())]
                yield pa.RecordBatch.from_arrays(columns, schema=_SHUFFLED)

    def _matching_partitions(self, parcel: Parcel) -> list[int]:
        node, first, last = self._probe.get_target(parcel)
        if node not in self._stored:
            self._stored[node] = self._list_slices(node)
        partitions, ranks, begin, end = self._stored[node]
        may_match = (begin <= last) & (end >= first) & (ranks < parcel.rank)
        return [int(number) for number in np.unique(partitions[may_match])]

    def _list_slices(self, node: str) -> npt.NDArray[np.int64]:
        """List the partition, the rank (-1: of an earlier batch) and the span of all slices of a state."""
        lead, batch = self._assignment.physical.schemas[node].lead, self._assignment.batch
        slices = [
            (number, entry.rank if entry.batch == batch else -1, *entry.spans[lead])
            for number, part in self._assignment.parts.items()
            for entry in part.slices
            if entry.node == node
        ]
        return np.array(slices, np.int64).reshape(-1, 4).T

    def _load_state(self) -> State:
        state, entries = self._assignment.load(self._partition, self._assignment.physical)
        self._places |= {identity: entry.place for identity, entry in entries.items()}
        return state

    def _load_slice(self, place: tuple[str, int]) -> Slice:
        loaded = self._assignment.store.read(self._entries[place], self._assignment.physical)
        self._places[id(loaded)] = place
        return loaded

    def _pack(self, parcel: Parcel) -> bytes:
        groups = [
            ([self._places[id(stored)] for stored in slices], numbers, rows)
            for slices, numbers, rows in get_row_ids(parcel.partial)
        ]
        return pickle.dumps((parcel.driver, parcel.rank, parcel.hop_number, groups), protocol=5)

    def _unpack(self, packed: bytes) -> Parcel:
        driver, rank, hop_number, groups = pickle.loads(packed)  # made by `_pack`, in this query
        row_ids: list[Any] = [
            ([self._load_slice(place) for place in places], numbers, rows) for places, numbers, rows in groups
        ]
        return Parcel(driver, rank, hop_number, partial_from_row_ids(row_ids))
