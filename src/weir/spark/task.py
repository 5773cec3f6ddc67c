"""What runs on Spark's workers: split the rows of a task by stream, store them as slices, and probe.

Workers import this module, so it needs neither pyspark nor what decides on the driver.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from time import process_time
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from weir.codec import to_json
from weir.errors import QueryError
from weir.kernel.batch import build, probe
from weir.kernel.decision import Decision
from weir.kernel.ingest import ingest
from weir.kernel.output import result_schema
from weir.kernel.physical_plan import PhysicalPlan
from weir.kernel.quarantine import Quarantine
from weir.kernel.split_table import group_by_bytes
from weir.kernel.state import State
from weir.runtime.partition_batch import (
    Assignment,
    PartitionBatch,
    TaskReport,
    check_null_times,
    probe_partition,
)
from weir.spark.count_files import CountFiles, StageCounts
from weir.spark.quarantine_files import write_quarantine
from weir.spark.result_names import ResultNames
from weir.spark.worker_files import open_output
from weir.spark.worker_socket import acknowledge_at_once
from weir.stats.batch_counts import BatchCounts

# The columns of the union of all streams (`weir.spark.union`) beside its slots.
STREAM, PARTITION, COPY, TIME = "weir_stream", "weir_partition", "weir_copy", "weir_time"
# From these the placement of a batch finds partitions: the hash of a key, or the segments that a row reaches.
KEY_HASH, FIRST_SEGMENT, LAST_SEGMENT = "weir_key_hash", "weir_first_segment", "weir_last_segment"
Tables: TypeAlias = Mapping[str, pa.Table]


@dataclass(frozen=True)
class UnionSlots:
    """Which column of the union holds each column of each stream, and the columns' own types."""

    streams: tuple[str, ...]
    slots: Mapping[str, Mapping[str, str]]
    schemas: Mapping[str, pa.Schema]

    def split(self, batches: Iterator[pa.RecordBatch]) -> dict[int, tuple[Tables, Tables]]:
        """Split the rows of a task by partition and stream; the second are those that others count too."""
        split: dict[int, tuple[dict[str, list[pa.Table]], dict[str, list[pa.Table]]]] = {}
        for run in group_by_bytes(batch for batch in batches if batch.num_rows):
            rows = pa.Table.from_batches(run).combine_chunks()
            for partition in pc.unique(rows[PARTITION]).to_pylist():
                own = _filter(rows, pc.equal(rows[PARTITION], partition))
                parts = split.setdefault(partition, (defaultdict(list), defaultdict(list)))
                for tables, part in zip(self._split_partition(own), parts, strict=True):
                    for name, table in tables.items():
                        part[name].append(table)
        return {
            partition: (_concat(tables), _concat(copies))
            for partition, (tables, copies) in sorted(split.items())
        }

    def _split_partition(self, rows: pa.Table) -> tuple[Tables, Tables]:
        tables, copies = {}, {}
        for number, name in enumerate(self.streams):
            tagged = rows.filter(pc.equal(rows[STREAM], number))
            if not tagged.num_rows:
                continue
            slots = self.slots[name]
            table = tagged.select(list(slots.values())).rename_columns(list(slots))
            tables[name] = table.cast(self.schemas[name])
            copied = _filter(tables[name], pc.greater(tagged[COPY], 0))
            if copied.num_rows:
                copies[name] = copied
        return tables, copies


def _concat(parts: Mapping[str, list[pa.Table]]) -> Tables:
    """Put the rows of each stream together, without a copy."""
    return {name: pa.concat_tables(tables) for name, tables in parts.items()}


def _filter(rows: pa.Table, mask: pa.ChunkedArray) -> pa.Table:
    """Filter rows; copy nothing if all stay."""
    return rows if pc.all(mask).as_py() else rows.filter(mask)


@dataclass(frozen=True)
class ResultFiles:
    """Where tasks write results; with `path` None they count them and keep nothing.

    `id` is the query's and `epoch` the driver's, for the names of the files. `spark_types` is Spark's own
    description of the columns' types, without which it reads an interval back as a number.
    """

    path: str | None = None
    id: str = ""
    epoch: int = 1
    compression: str = "snappy"
    spark_types: str = ""


@dataclass(frozen=True)
class BuildTask:
    """Store the rows of every partition that a task holds rows of; with `results`, probe as well."""

    assignment: Assignment
    slots: UnionSlots
    results: ResultFiles | None
    quarantine: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one report per partition."""
        acknowledge_at_once()
        for partition, (tables, copies) in self.slots.split(batches).items():
            running = PartitionBatch(self.assignment, partition, tables, process_time)
            files: tuple[str, ...] = ()
            if self.results is not None:
                files = _write_results(self.results, self.assignment, partition, running.probe())
            left_out = write_quarantine(self.quarantine, running.quarantine, partition, 0)
            report = replace(running.report(self.results is not None), files=files, quarantine=left_out)
            yield report_row(to_json(self._subtract_copies(report, copies)))

    def _subtract_copies(self, report: TaskReport, copies: Tables) -> TaskReport:
        """Subtract the counts of rows that `atr` copied here: other partitions count them."""
        if not copies:
            return report
        assignment, counts = self.assignment, report.counts
        own = {name: read - len(copies.get(name, ())) for name, read in counts.rows_in.items()}
        # Nothing counts of a stream that has only copies here, so only the others are ingested again.
        mixed = {name: rows for name, rows in copies.items() if own[name]}
        copied = BatchCounts()
        before = State(watermark=assignment.watermark)
        ingest(assignment.physical, assignment.decision, before, mixed, assignment.batch, copied)

        def subtract(all_rows: Mapping[str, int], copied_rows: Mapping[str, int]) -> dict[str, int]:
            return {name: count - copied_rows.get(name, 0) for name, count in all_rows.items() if own[name]}

        counts = replace(
            counts,
            rows_in=own,
            late=subtract(counts.late, copied.late),
            null_time=subtract(counts.null_time, copied.null_time),
            ahead=subtract(counts.ahead, copied.ahead),
            dropped=subtract(counts.dropped, copied.dropped),
        )
        return replace(report, counts=counts)


@dataclass(frozen=True)
class ProbeTask:
    """Find the results of a batch whose slices are written: a pure function of files.

    Each partition writes its counts to a file of a fixed name, so that a second reading replaces the first.
    """

    assignment: Assignment
    counts: CountFiles
    results: ResultFiles | None
    quarantine: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the results of the partitions whose numbers come in, or the names of their files."""
        acknowledge_at_once()
        assignment = self.assignment
        for partition in [number for batch in batches for number in batch.column(0).to_pylist()]:
            counts, quarantine = BatchCounts(), Quarantine(assignment.batch)
            chunks = probe_partition(assignment, partition, counts, quarantine)
            yield from deliver_results(self.results, assignment, partition, chunks)
            left_out = write_quarantine(self.quarantine, quarantine, partition, 1)
            counts.quarantined = quarantine.count
            self.counts.write(partition, 0, StageCounts(counts, quarantine=left_out))


@dataclass(frozen=True)
class StaticJoinTask:
    """Join all rows of a partition at once, for static DataFrames.

    An error of ours is a sentence; only with `shows_frames`, the calls that led to it follow.
    """

    physical: PhysicalPlan
    decision: Decision
    slots: UnionSlots
    on_null_time: str
    shows_frames: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield every result."""
        acknowledge_at_once()
        try:
            yield from self._join(batches)
        except QueryError:
            if not self.shows_frames:  # the worker reports the error and then exits
                os.environ["SPARK_HIDE_TRACEBACK"] = "1"
            raise

    def _join(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for tables, _ in self.slots.split(batches).values():
            counts = BatchCounts()
            state = build(self.physical, self.decision, State(), tables, 0, counts)
            check_null_times(self.physical.query, [counts], self.on_null_time)
            for chunk in probe(self.physical, self.decision, state, 0, counts):
                yield from chunk.combine_chunks().to_batches()


def deliver_results(
    results: ResultFiles | None, assignment: Assignment, partition: int, chunks: Iterator[pa.Table]
) -> Iterator[pa.RecordBatch]:
    """Yield the results, or write them to files and yield the files' names."""
    if results is None:
        for chunk in chunks:
            yield from chunk.combine_chunks().to_batches()
        return
    yield report_row(_write_results(results, assignment, partition, chunks))


def _write_results(
    target: ResultFiles, assignment: Assignment, partition: int, chunks: Iterator[pa.Table]
) -> tuple[str, ...]:
    """Write results under a hidden name, which the driver replaces; without results write no file."""
    if target.path is None:
        deque(chunks, maxlen=0)
        return ()
    first = next(chunks, None)
    if first is None:
        return ()
    name = ResultNames(target.id).hide(assignment.batch, partition, target.epoch)
    metadata = {"org.apache.spark.sql.parquet.row.metadata": target.spark_types}
    schema = result_schema(assignment.physical.query).with_metadata(metadata)
    # Text and bytes only: hashing every number of a wide result costs more than a dictionary saves.
    texts = [f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_binary(f.type)]
    with (
        open_output(f"{target.path}/{name}") as stream,
        pq.ParquetWriter(stream, schema, compression=target.compression, use_dictionary=texts) as writer,
    ):
        for chunk in chain((first,), chunks):
            writer.write_table(chunk)
    return (name,)


def report_row(report: object) -> pa.RecordBatch:
    """Return a row that carries a report to the driver."""
    return pa.RecordBatch.from_pydict({"report": [json.dumps(report).encode()]})
