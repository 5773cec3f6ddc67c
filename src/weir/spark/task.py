"""What runs on the workers: build a partition's slices, and probe them for results."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import from_arrow_schema

from weir.errors import QueryError
from weir.kernel.batch import Work, build, probe
from weir.kernel.decision import Decision
from weir.kernel.ingest import ingest
from weir.kernel.migration_state import MigrationState
from weir.kernel.output import result_schema
from weir.kernel.physical_plan import PhysicalPlan
from weir.kernel.plan_migration import PhysicalPlans, as_it_stands, ready
from weir.kernel.slice import Slice
from weir.kernel.state import State, expire, tidy
from weir.spark.report import PartitionState, ProbeCounts, TaskReport
from weir.spark.slice_files import SliceEntry, close_others, open_output, read_slice, write_slices
from weir.spark.union import Slots

REPORT = "report binary"


@dataclass(frozen=True)
class Assignment:
    """All that a worker must know of a batch."""

    program: PhysicalPlan
    decision: Decision
    batch: int
    watermark: int | None
    parts: Mapping[int, PartitionState]
    root: str

    def load(
        self, partition: int, program: PhysicalPlan | None = None
    ) -> tuple[State, dict[int, SliceEntry]]:
        """A partition's state, its slices mapped from their files, and the entry of each by its identity.

        Slices that the program has no use for, which is the plan's unless it is given, are left out.
        """
        close_others(self.root, self._every())
        return self._state(self.parts.get(partition, PartitionState()), program or self.program)

    def standing(self, partition: int) -> MigrationState:
        """Which plan answers in a partition, and what is being made there for the one that is decided."""
        found = self.parts.get(partition, PartitionState()).standing or MigrationState(self.program.plan)
        return found.towards(self.decision.plan)

    @cached_property
    def programs(self) -> PhysicalPlans:
        """The plan's program, and those of partitions that are on their way to it."""
        return PhysicalPlans(self.program.query, (self.program,))

    def load_shared(self, partition: int) -> tuple[State, frozenset[int]]:
        """The state of all partitions, and the identities of the slices of one of them."""
        mine = frozenset(
            (entry.file, entry.index) for entry in self.parts.get(partition, PartitionState()).slices
        )
        every = self._every()
        close_others(self.root, every)
        state, entries = self._state(PartitionState(every), self.program)
        return state, frozenset(one for one, entry in entries.items() if (entry.file, entry.index) in mine)

    def _every(self) -> tuple[SliceEntry, ...]:
        return tuple(entry for part in self.parts.values() for entry in part.slices)

    def _state(self, part: PartitionState, program: PhysicalPlan) -> tuple[State, dict[int, SliceEntry]]:
        slices: dict[str, list[Slice]] = {}
        entries = {}
        for entry in part.slices:
            if program.layout_of(entry.node) is None:
                continue
            one = read_slice(self.root, entry, program)
            slices.setdefault(entry.node, []).append(one)
            entries[id(one)] = entry
        state = State(
            slices={node: tuple(found) for node, found in slices.items()},
            watermark=self.watermark,
            next_place=part.next_place,
            next_numbers=dict(part.next_numbers),
        )
        return state, entries


@dataclass(frozen=True)
class ResultFiles:
    """Where a folded task puts its results; `path` None counts them and keeps nothing."""

    path: str | None = None
    compression: str = "snappy"


@dataclass(frozen=True)
class BuildTask:
    """Build the slices of every partition that a task holds rows of; with `results`, probe them as well."""

    assignment: Assignment
    slots: Slots
    results: ResultFiles | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One report per partition."""
        for partition, (tables, copies) in self.slots.tables(batches).items():
            report = self._counted_once(self._run(partition, tables), copies)
            yield pa.RecordBatch.from_pydict({"report": [report.to_bytes()]})

    def _run(self, partition: int, tables: Mapping[str, pa.Table]) -> TaskReport:
        job, work = self.assignment, Work()
        clock = _Laps()
        standing = job.standing(partition)
        held = job.programs.of(standing.plan, standing.beside(job.decision.plan))
        before, entries = job.load(partition, held)
        clock.lap("read")
        found = ready(job.programs, standing, before, job.decision, job.batch, work)
        program, decision = found.program, found.decision
        clock.lap("migrate")
        state = tidy(program, expire(program, found.state, decision.allowance), found.standing.since)
        clock.lap("merge")
        built = build(program, decision, state, tables, job.batch, work)
        clock.lap("build")
        part = self._keep(partition, entries, built.state, found.standing)
        clock.lap("write")
        files: tuple[str, ...] = ()
        if self.results is not None:
            chunks = probe(program, decision, built.state, job.batch, work)
            files = write_results(self.results, job.program, job.batch, partition, chunks)
        clock.lap("probe")
        return TaskReport.of(partition, part, built, ProbeCounts.of(work), files, clock.seconds)

    def _counted_once(self, report: TaskReport, copies: Mapping[str, pa.Table]) -> TaskReport:
        """The report without what was counted of rows that other partitions count."""
        if not copies:
            return report
        job = self.assignment
        number = {name: rows.num_rows for name, rows in copies.items()}
        # Of streams that are here as copies only, nothing counts, so there is nothing to find out.
        mixed = {name: rows for name, rows in copies.items() if number[name] < report.rows_in[name]}
        state = State(watermark=job.watermark)
        return report.without(number, ingest(job.program, job.decision, state, mixed, job.batch))

    def _keep(
        self, partition: int, entries: Mapping[int, SliceEntry], after: State, standing: MigrationState
    ) -> PartitionState:
        """Write the slices that were not there before: new ones and merged ones."""
        job = self.assignment
        live = [one for found in after.slices.values() for one in found]
        fresh = [one for one in live if id(one) not in entries]
        written = {id(one): entry for entry, one in write_slices(job.root, job.batch, partition, fresh)}
        known = {**entries, **written}
        slices = tuple(known[id(one)] for one in live)
        return PartitionState(slices, after.next_place, dict(after.next_numbers), standing)


@dataclass(frozen=True)
class ProbeTask:
    """The results of a batch whose slices are built: a pure function of files, however often it is run.

    Each partition's counts go into a file of their own name, so that a second reading replaces the first.
    """

    assignment: Assignment
    stats: str
    shared: bool
    results: ResultFiles | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The results of the partitions whose numbers come in, or the names of their files."""
        job = self.assignment
        for partition in [number for batch in batches for number in batch.column(0).to_pylist()]:
            work = Work()
            yield from put_out(self.results, job, partition, _found(job, partition, self.shared, work))
            write_counts(f"{self.stats}/{job.batch}-{partition}.json", ProbeCounts.of(work))


def put_out(
    results: ResultFiles | None, job: Assignment, partition: int, chunks: Iterator[pa.Table]
) -> Iterator[pa.RecordBatch]:
    """The results themselves, or where the workers write them the names of their files, as JSON."""
    if results is None:
        for chunk in chunks:
            yield from chunk.combine_chunks().to_batches()
        return
    files = write_results(results, job.program, job.batch, partition, chunks)
    yield pa.RecordBatch.from_pydict({"report": [json.dumps(files).encode()]})


def _found(job: Assignment, partition: int, shared: bool, work: Work) -> Iterator[pa.Table]:
    """The results that a partition's rows find, in its own slices or in all."""
    if not shared:
        standing = job.standing(partition)
        program = job.programs.of(standing.plan, standing.beside(job.decision.plan))
        state = job.load(partition, program)[0]
        found = as_it_stands(job.programs, standing, state, job.decision)
        return probe(found.program, found.decision, found.state, job.batch, work)
    state, drivers = job.load_shared(partition)
    return probe(job.program, job.decision, state, job.batch, work, drivers)


@dataclass(frozen=True)
class WholeTask:
    """The join of everything a partition holds, for static DataFrames."""

    program: PhysicalPlan
    decision: Decision
    slots: Slots
    on_null_time: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Every result."""
        for tables, _ in self.slots.tables(batches).values():
            work = Work()
            built = build(self.program, self.decision, State(), tables, 0, work)
            timeless = next((name for name, count in built.null_time.items() if count), None)
            if timeless is not None and self.on_null_time == "fail":
                raise QueryError(f"rows of stream '{timeless}' have no time, and on_null_time is 'fail'")
            for chunk in probe(self.program, self.decision, built.state, 0, work):
                yield from chunk.combine_chunks().to_batches()


def write_results(
    target: ResultFiles, program: PhysicalPlan, batch: int, partition: int, chunks: Iterator[pa.Table]
) -> tuple[str, ...]:
    """Write results under a hidden name; the driver gives it the real one. No results, no file."""
    if target.path is None:
        for _ in chunks:
            pass
        return ()
    name = f"_part-{batch:09d}-{partition:04d}-{uuid.uuid4().hex[:12]}.parquet"
    writer = None
    for chunk in chunks:
        if writer is None:
            stream = open_output(f"{target.path}/{name}")
            schema = _as_spark_writes(result_schema(program.query))
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


def _as_spark_writes(schema: pa.Schema) -> pa.Schema:
    """With Spark's own note of the types, without which it reads an interval back as a number."""
    note = from_arrow_schema(schema, prefer_timestamp_ntz=True).json()
    return schema.with_metadata({"org.apache.spark.sql.parquet.row.metadata": note})


def write_counts(uri: str, counts: ProbeCounts) -> None:
    """Replace a partition's counts."""
    with open_output(uri) as stream:
        stream.write(json.dumps(counts.to_json()).encode())


class _Laps:
    """Seconds per phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = perf_counter()

    def lap(self, phase: str) -> None:
        """The phase that ends now."""
        now = perf_counter()
        self.seconds[phase], self._last = now - self._last, now
