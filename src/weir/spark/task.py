"""What runs on Spark's workers: build a partition's slices, and probe them for results."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from time import process_time

import pyarrow as pa
import pyarrow.parquet as pq

from weir.codec import from_json, to_json
from weir.kernel.batch import build, probe
from weir.kernel.decision import Decision
from weir.kernel.ingest import ingest
from weir.kernel.output import result_schema
from weir.kernel.physical_plan import PhysicalPlan
from weir.kernel.state import State
from weir.runtime.partition_batch import (
    Assignment,
    PartitionBatch,
    TaskReport,
    check_null_times,
    probe_partition,
)
from weir.spark.slots import Slots
from weir.spark.worker_files import open_output
from weir.stats.batch_counts import BatchCounts

# The schema of what tasks send to the driver: descriptors and counts as JSON, never data.
REPORT = "report binary"


@dataclass(frozen=True)
class ResultFiles:
    """Where a folded task puts its results; `path` None counts them and keeps nothing.

    `spark_types` is Spark's own note of the columns' types, without which it reads an interval back as a
    number.
    """

    path: str | None = None
    compression: str = "snappy"
    spark_types: str = ""


@dataclass(frozen=True)
class BuildTask:
    """Build the slices of every partition that a task holds rows of; with `results`, probe them as well."""

    assignment: Assignment
    slots: Slots
    results: ResultFiles | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One report per partition."""
        for partition, (tables, copies) in self.slots.tables(batches).items():
            yield write_report(self._count_once(self._run(partition, tables), copies))

    def _run(self, partition: int, tables: Mapping[str, pa.Table]) -> TaskReport:
        running = PartitionBatch(self.assignment, partition, tables, process_time)
        if self.results is None:
            return running.report()
        return running.report(write_results(self.results, self.assignment, partition, running.probe()))

    def _count_once(self, report: TaskReport, copies: Mapping[str, pa.Table]) -> TaskReport:
        """The report without what was counted of rows that other partitions count."""
        if not copies:
            return report
        job, counts = self.assignment, report.counts
        # Of streams that are here as copies only, nothing counts, so there is nothing to find out.
        mixed = {name: rows for name, rows in copies.items() if rows.num_rows < counts.rows_in[name]}
        theirs = BatchCounts()
        ingest(job.plan, job.decision, State(watermark=job.watermark), mixed, job.batch, theirs)
        own = {
            name: read - (copies[name].num_rows if name in copies else 0)
            for name, read in counts.rows_in.items()
        }

        def without(ours: Mapping[str, int], copied: Mapping[str, int]) -> dict[str, int]:
            return {name: count - copied.get(name, 0) for name, count in ours.items() if own[name]}

        counts = replace(
            counts,
            rows_in=own,
            late=without(counts.late, theirs.late),
            null_time=without(counts.null_time, theirs.null_time),
            dropped=without(counts.dropped, theirs.dropped),
        )
        return replace(report, counts=counts)


@dataclass(frozen=True)
class ProbeTask:
    """The results of a batch whose slices are built: a pure function of files, however often it is run.

    Each partition's counts go into a file of their own name, so that a second reading replaces the first.
    """

    assignment: Assignment
    counts: str
    results: ResultFiles | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The results of the partitions whose numbers come in, or the names of their files."""
        job = self.assignment
        for partition in [number for batch in batches for number in batch.column(0).to_pylist()]:
            counts = BatchCounts()
            yield from put_out(self.results, job, partition, probe_partition(job, partition, counts))
            write_counts(f"{self.counts}/{job.batch}-{partition}.json", counts)


def put_out(
    results: ResultFiles | None, job: Assignment, partition: int, chunks: Iterator[pa.Table]
) -> Iterator[pa.RecordBatch]:
    """The results themselves, or where the workers write them the names of their files, as JSON."""
    if results is None:
        for chunk in chunks:
            yield from chunk.combine_chunks().to_batches()
        return
    files = write_results(results, job, partition, chunks)
    yield pa.RecordBatch.from_pydict({"report": [json.dumps(files).encode()]})


@dataclass(frozen=True)
class WholeTask:
    """The join of everything a partition holds, for static DataFrames."""

    plan: PhysicalPlan
    decision: Decision
    slots: Slots
    on_null_time: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Every result."""
        for tables, _ in self.slots.tables(batches).values():
            counts = BatchCounts()
            state = build(self.plan, self.decision, State(), tables, 0, counts)
            check_null_times(self.plan.query, [counts], self.on_null_time)
            for chunk in probe(self.plan, self.decision, state, 0, counts):
                yield from chunk.combine_chunks().to_batches()


def write_results(
    target: ResultFiles, job: Assignment, partition: int, chunks: Iterator[pa.Table]
) -> tuple[str, ...]:
    """Write results under a hidden name; the driver gives it the real one. No results, no file."""
    if target.path is None:
        for _ in chunks:
            pass
        return ()
    name = f"_part-{job.batch:09d}-{partition:04d}-{uuid.uuid4().hex[:12]}.parquet"
    writer = None
    for chunk in chunks:
        if writer is None:
            stream = open_output(f"{target.path}/{name}")
            note = {"org.apache.spark.sql.parquet.row.metadata": target.spark_types}
            schema = result_schema(job.plan.query).with_metadata(note)
            writer = pq.ParquetWriter(
                stream, schema, compression=target.compression, use_dictionary=_repeating(schema)
            )
        writer.write_table(chunk)
    if writer is None:
        return ()
    writer.close()
    stream.close()
    return (name,)


def _repeating(schema: pa.Schema) -> list[str]:
    """The columns worth a dictionary: hashing every number of a wide result costs more than it saves."""
    kinds = pa.types
    return [f.name for f in schema if kinds.is_string(f.type) or kinds.is_binary(f.type)]


def write_report(report: TaskReport) -> pa.RecordBatch:
    """A report as a row that the driver collects."""
    return pa.RecordBatch.from_pydict({"report": [json.dumps(to_json(report)).encode()]})


def read_report(data: bytes) -> TaskReport:
    """The report of `write_report`."""
    return from_json(TaskReport, json.loads(data))


def write_counts(uri: str, counts: BatchCounts) -> None:
    """Replace a partition's counts."""
    with open_output(uri) as stream:
        stream.write(json.dumps(to_json(counts)).encode())


def read_counts(data: bytes) -> BatchCounts:
    """The counts of `write_counts`."""
    return from_json(BatchCounts, json.loads(data))
