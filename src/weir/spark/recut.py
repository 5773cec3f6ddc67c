"""Cut stored slices again for another number of partitions: what Spark's workers do.

    slices ─▶ read what each row's partition depends on ─▶ Spark computes partitions, as it does for rows
                                                           that come ─▶ write each slice's rows per partition

Both steps run in the same tasks: no row is shuffled, since slices are files that every worker can read. A
piece of a slice keeps its batch and its order, so that it stands for its rows as before. Workers import this
module, so it needs no pyspark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.codec import to_json
from weir.kernel.key_values import read_key
from weir.kernel.keys import Int64s
from weir.kernel.physical_plan import PhysicalPlan
from weir.kernel.slice import Slice, pick_rows
from weir.kernel.state_schema import time_name
from weir.kernel.time_shift import shift_times
from weir.query.predicate import AttributeClass
from weir.runtime.partition_batch import SliceEntry, SliceStore
from weir.spark.task import FIRST_SEGMENT, LAST_SEGMENT, PARTITION, report_row
from weir.spark.worker_socket import acknowledge_at_once

SLICE, ROW, KEY = "weir_slice", "weir_row", "weir_key"
ROW_IDS = f"{SLICE} int, {ROW} int"
SEGMENTS = f"{ROW_IDS}, {FIRST_SEGMENT} bigint, {LAST_SEGMENT} bigint"
# Pieces are written when they have so many bytes together.
_MAX_BYTES = 1 << 28


@dataclass(frozen=True)
class StoredSlices:
    """The slices to cut, and for which batch; `physical` has the schemas of their states."""

    entries: tuple[SliceEntry, ...]
    physical: PhysicalPlan
    store: SliceStore
    batch: int

    def read(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, Slice]]:
        """Read the slices whose numbers come in."""
        for number in (number for batch in batches for number in batch.column(0).to_pylist()):
            yield number, self.store.read(self.entries[number], self.physical)


@dataclass(frozen=True)
class CutReport:
    """Slices that a task wrote or kept as they were, and the partition of each."""

    partitions: tuple[int, ...]
    entries: tuple[SliceEntry, ...]


@dataclass(frozen=True)
class KeyReader:
    """Read the key of every row of the slices whose numbers come in."""

    stored: StoredSlices
    key: AttributeClass

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the number of the slice, that of the row, and the key."""
        acknowledge_at_once()
        for number, source in self.stored.read(batches):
            yield _with_row_ids(number, np.arange(source.rows), {KEY: read_key(source, self.key)})


@dataclass(frozen=True)
class SegmentReader:
    """Read which master segments every row reaches, for spread `atr`.

    A row lies in the partitions of all segments that it reaches; only the `homes` of the first one read it.
    `reach` says for each stream how far back and ahead (µs) its rows reach.
    """

    stored: StoredSlices
    homes: tuple[int, ...]
    partitions: int
    length: int
    reach: Mapping[str, tuple[int, int]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the number of the slice, that of the row, and its first and last segment."""
        acknowledge_at_once()
        for number, source in self.stored.read(batches):
            first, last = self._find_segments(source)
            # Rows of which no segment is common to all streams join nothing.
            rows = np.flatnonzero((first % self.partitions == self.homes[number]) & (first <= last))
            segments = {FIRST_SEGMENT: pa.array(first[rows]), LAST_SEGMENT: pa.array(last[rows])}
            yield _with_row_ids(number, rows, segments)

    def _find_segments(self, source: Slice) -> tuple[Int64s, Int64s]:
        """Return the first and the last segment that all rows of a combination reach."""
        firsts, lasts = [], []
        for stream in sorted(source.schema.streams):
            (back, ahead), name = self.reach[stream], time_name(stream)
            times, span = source.numbers(name), source.spans[name]
            firsts.append(shift_times(times, -back, span) // self.length)
            lasts.append(shift_times(times, ahead, span) // self.length)
        return np.max(firsts, axis=0), np.min(lasts, axis=0)


@dataclass(frozen=True)
class SliceCutter:
    """Cut slices into one piece for each partition to which their rows go."""

    stored: StoredSlices

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield reports of the pieces."""
        acknowledge_at_once()
        pieces: list[tuple[int, Slice]] = []
        for number, rows_by_partition in _group_rows(batches):
            source = self.stored.store.read(self.stored.entries[number], self.stored.physical)
            for partition, rows in rows_by_partition.items():
                if len(rows) == source.rows:
                    yield _report([partition], [self.stored.entries[number]])
                else:
                    pieces.append((partition, pick_rows(source, rows)))
            if sum(piece.bytes for _, piece in pieces) > _MAX_BYTES:
                yield from self._write(pieces)
                pieces = []
        yield from self._write(pieces)

    def _write(self, pieces: list[tuple[int, Slice]]) -> Iterator[pa.RecordBatch]:
        for partition in sorted({partition for partition, _ in pieces}):
            own = [piece for number, piece in pieces if number == partition]
            entries = self.stored.store.write(self.stored.batch, partition, own)
            yield _report([partition] * len(own), entries)


def _report(partitions: list[int], entries: Iterable[SliceEntry]) -> pa.RecordBatch:
    return report_row(to_json(CutReport(tuple(partitions), tuple(entries))))


def _with_row_ids(number: int, rows: npt.NDArray[np.intp], columns: dict[str, pa.Array]) -> pa.RecordBatch:
    numbers = pa.array(np.full(len(rows), number, np.int32))
    return pa.RecordBatch.from_pydict({SLICE: numbers, ROW: pa.array(rows.astype(np.int32)), **columns})


def _group_rows(
    batches: Iterator[pa.RecordBatch],
) -> Iterator[tuple[int, dict[int, npt.NDArray[np.intp]]]]:
    """Group row numbers by slice and partition, each in ascending order."""
    read = [batch.select([SLICE, PARTITION, ROW]) for batch in batches if batch.num_rows]
    if not read:
        return
    table = pa.Table.from_batches(read)
    slices, partitions, rows = (column.to_numpy() for column in table.columns)
    order = np.lexsort((rows, partitions, slices))
    slices, partitions, rows = slices[order], partitions[order], rows[order]
    edges = np.flatnonzero((np.diff(slices) != 0) | (np.diff(partitions) != 0)) + 1
    groups: dict[int, dict[int, npt.NDArray[np.intp]]] = {}
    for first, own in zip((0, *edges), np.split(rows, edges), strict=True):
        groups.setdefault(int(slices[first]), {})[int(partitions[first])] = own
    yield from groups.items()
