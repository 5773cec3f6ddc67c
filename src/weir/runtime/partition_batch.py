"""One partition's share of a micro-batch: what is kept of it, and how it loads, builds, stores and probes.

The local engine and Spark's workers run this same code; they differ in the store that keeps the slices.
Workers import this module, so it needs the kernel and nothing above it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import QueryError
from weir.kernel.batch import build, probe
from weir.kernel.decision import Decision
from weir.kernel.migration_state import MigrationState
from weir.kernel.physical_plan import PhysicalPlan
from weir.kernel.plan_migration import PhysicalPlans, PreparedPlan, prepare_plan, use_existing_states
from weir.kernel.quarantine import Quarantine
from weir.kernel.slice import Slice
from weir.kernel.spill import are_large
from weir.kernel.state import State, expire, merge_slices
from weir.plan.tree import Join
from weir.query.model import Query
from weir.runtime.parking import find_reach, is_out_of_reach
from weir.stats.batch_counts import BatchCounts

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Thinning:
    """Which rows of a stored slice are left since its eviction: a share, chosen by hash for a batch.

    `rows` are those that it has as it is stored.
    """

    share: float
    batch: int
    rows: int

    def apply(self, stored: Slice) -> Slice:
        """Return what is left of the slice."""
        return stored.thin(self.share, "evict", self.batch)


@dataclass(frozen=True, slots=True)
class SliceEntry:
    """Where one slice is stored, and what can be known of it without opening it.

    `spans` are the least and the greatest of each stored number but keys, `lead` names the time it is cut by;
    from `deadline` on no row of it can join, None if that is never. A `parked` slice is opened only by a
    batch that reaches it (`weir.runtime.parking`). A row stands for `weight` rows of the exact state, on
    average. `is_rest` and `thinning` are there if it was evicted: before it was stored, and since; then
    `rows` and `bytes` are about those that are left.
    """

    node: str
    file: str
    index: int
    batch: int
    rank: int
    rows: int
    bytes: int
    spans: Mapping[str, tuple[int, int]]
    lead: str
    deadline: int | None
    sorted_by: str
    checksum: int = 0
    parked: bool = False
    weight: float = 1.0
    is_rest: bool = False
    thinning: Thinning | None = None

    @staticmethod
    def of(stored: Slice, file: str, index: int, checksum: int = 0) -> SliceEntry:
        """Describe a slice that is stored at a place in a file."""
        return SliceEntry(
            node=stored.schema.node,
            file=file,
            index=index,
            batch=stored.batch,
            rank=stored.rank,
            rows=stored.rows,
            bytes=stored.bytes,
            spans=stored.spans,
            lead=stored.schema.lead,
            deadline=stored.deadline,
            sorted_by=str(stored.sorted_by),
            checksum=checksum,
            weight=stored.mean_weight,
            is_rest=stored.is_rest,
        )

    def thin(self, share: float, batch: int) -> SliceEntry:
        """Return the entry with only a share of the rows left, because of an eviction after a batch."""
        earlier = self.thinning or Thinning(1.0, batch, self.rows)
        return replace(
            self,
            rows=round(share * self.rows),
            bytes=round(share * self.bytes),
            weight=self.weight / share,
            is_rest=True,
            thinning=replace(earlier, share=share * earlier.share),
        )

    @property
    def place(self) -> tuple[str, int]:
        """The file and the index in it, which no other slice has."""
        return self.file, self.index

    @property
    def span(self) -> tuple[int, int]:
        """The least and the greatest of the times it is cut by."""
        return self.spans[self.lead]


@dataclass(frozen=True, slots=True)
class PartitionState:
    """The live slices of a partition, the counters of its row windows, and its active plan.

    Without a `migration`, the decided plan is active: no batch has built here yet.
    """

    slices: tuple[SliceEntry, ...] = ()
    next_sequence: int = 0
    next_row_numbers: Mapping[str, int] = field(default_factory=dict)
    migration: MigrationState | None = None

    def migration_to(self, plan: Join) -> MigrationState:
        """Return the active plan, and what is being built, when a plan is decided."""
        return (self.migration or MigrationState(plan)).aim_at(plan)

    def prepare_for(self, plan: Join, plans: PhysicalPlans) -> PartitionState:
        """Drop the slices that neither the decided nor the active plan needs."""
        migration = self.migration_to(plan)
        physical = plans.of(migration.plan, migration.migration_joins(plan))
        slices = tuple(entry for entry in self.slices if physical.schema_of(entry.node) is not None)
        return replace(self, slices=slices, migration=migration)


class SliceStore(Protocol):
    """Where slices are kept between batches: in this process, or in files of the checkpoint."""

    def read(self, entry: SliceEntry, physical: PhysicalPlan) -> Slice:
        """The slice of an entry."""

    def write(self, batch: int, partition: int, slices: Sequence[Slice]) -> Sequence[SliceEntry]:
        """Keep slices, and describe each."""

    def reopen(self, entry: SliceEntry, written: Slice) -> Slice:
        """A slice that was just written, as it is kept; it need not take memory any more."""

    def retain(self, live: Iterable[SliceEntry]) -> None:
        """Forget what is held in memory of all other slices."""


@dataclass(frozen=True)
class Assignment:
    """All that a partition must know of a batch."""

    physical: PhysicalPlan
    decision: Decision
    batch: int
    watermark: int | None
    parts: Mapping[int, PartitionState]
    store: SliceStore

    @cached_property
    def plans(self) -> PhysicalPlans:
        """The compiled plan, and those of partitions that are still migrating to it."""
        return PhysicalPlans(self.physical.query, (self.physical,))

    def part(self, partition: int) -> PartitionState:
        """What a partition starts from."""
        return self.parts.get(partition, PartitionState())

    def load(
        self, partition: int, physical: PhysicalPlan, arriving: Mapping[str, int] | None = None
    ) -> tuple[State, dict[int, SliceEntry]]:
        """Load a partition's state for a plan, and the entry of each slice by the slice's identity."""
        return self._load(self.part(partition), physical, arriving)

    def load_migrating(
        self, partition: int, arriving: Mapping[str, int] | None = None
    ) -> tuple[MigrationState, State, dict[int, SliceEntry]]:
        """Load a partition's state for its active plan and for the one that is built."""
        decided = self.decision.plan
        migration = self.part(partition).migration_to(decided)
        physical = self.plans.of(migration.plan, migration.migration_joins(decided))
        return migration, *self.load(partition, physical, arriving)

    def load_all(self, partition: int) -> tuple[State, frozenset[int]]:
        """Load the state of all partitions, and tell which slices belong to one of them, by identity."""
        own = {entry.place for entry in self.part(partition).slices}
        state, loaded = self._load(PartitionState(self._every_entry()), self.physical)
        return state, frozenset(number for number, entry in loaded.items() if entry.place in own)

    def _every_entry(self) -> tuple[SliceEntry, ...]:
        return tuple(entry for part in self.parts.values() for entry in part.slices)

    def _load(
        self, part: PartitionState, physical: PhysicalPlan, arriving: Mapping[str, int] | None = None
    ) -> tuple[State, dict[int, SliceEntry]]:
        self.store.retain(self._every_entry())
        slices: dict[str, list[Slice]] = {}
        entries, stay_parked = {}, self._find_parked(part, physical, arriving or {})
        for entry in part.slices:
            if physical.schema_of(entry.node) is None or entry.place in stay_parked:
                continue
            loaded = self.store.read(entry, physical)
            if not loaded.rows:  # of a few rows, an eviction may leave none
                continue
            slices.setdefault(entry.node, []).append(loaded)
            entries[id(loaded)] = entry
        state = State(
            slices={node: tuple(loaded) for node, loaded in slices.items()},
            watermark=self.watermark,
            next_sequence=part.next_sequence,
            next_row_numbers=dict(part.next_row_numbers),
        )
        return state, entries

    def list_parked(self, partition: int, opened: Mapping[int, SliceEntry]) -> tuple[SliceEntry, ...]:
        """List the parked slices of a partition that stay as they are, since the batch opened others only."""
        places = {entry.place for entry in opened.values()}
        slices = self.part(partition).slices
        return tuple(entry for entry in slices if entry.parked and entry.place not in places)

    def _find_parked(
        self, part: PartitionState, physical: PhysicalPlan, arriving: Mapping[str, int]
    ) -> frozenset[tuple[str, int]]:
        """The parked slices that the batch does not reach; a plan that migrates needs all."""
        parked = [entry for entry in part.slices if entry.parked]
        if not parked or physical.plan != self.decision.plan:
            return frozenset()
        reach, newest = find_reach(physical.query, physical.plan), find_newest(self._every_entry())
        for name, time in arriving.items():
            newest[name] = max(time, newest.get(name, time))
        return frozenset(e.place for e in parked if is_out_of_reach(e.node, e.span[0], reach, newest))


def find_newest(entries: Iterable[SliceEntry]) -> dict[str, int]:
    """The newest lead time of each state."""
    newest: dict[str, int] = {}
    for entry in entries:
        newest[entry.node] = max(entry.span[1], newest.get(entry.node, entry.span[1]))
    return newest


@dataclass(frozen=True, slots=True)
class TaskReport:
    """What a partition reports of a batch: its state afterwards, what it counted, CPU seconds per phase.

    `newest` are the newest event times of the rows that came, `files` are result files that the task wrote,
    and `quarantine` are those of rows that were left out.
    """

    partition: int
    part: PartitionState
    counts: BatchCounts
    newest: Mapping[str, int]
    seconds: Mapping[str, float]
    files: tuple[str, ...] = ()
    quarantine: tuple[str, ...] = ()


class PhaseTimer:
    """Seconds per phase, by a given clock: CPU or wall."""

    def __init__(self, clock: Clock) -> None:
        self.seconds: dict[str, float] = {}
        self._clock, self._last = clock, clock()

    def end(self, phase: str) -> None:
        """Count the time since the last phase ended."""
        now = self._clock()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + max(0.0, now - self._last)
        self._last = now


class PartitionBatch:
    """A partition while it runs a batch: made by building its slices, then probed for results."""

    def __init__(
        self, assignment: Assignment, partition: int, tables: Mapping[str, pa.Table], clock: Clock
    ) -> None:
        self._assignment, self._partition = assignment, partition
        self._counts, self._timer = BatchCounts(), PhaseTimer(clock)
        self.quarantine = Quarantine(assignment.batch)
        plans, decision, batch = assignment.plans, assignment.decision, assignment.batch
        arriving = _find_newest_arriving(assignment.physical.query, tables, decision.latest)
        migration, before, entries = assignment.load_migrating(partition, arriving)
        writer = _SliceWriter(assignment, partition, before, entries)
        self._timer.end("read")
        prepared = prepare_plan(
            plans, migration, before, decision, batch, self._counts, writer.spill, self.quarantine
        )
        self._timer.end("migrate")
        physical, since = prepared.physical, prepared.migration.since
        live = expire(physical, prepared.state)
        state = merge_slices(physical, live, since, decision.slice_bytes, writer.spill)
        self._timer.end("merge")
        steps_before = self._counts.steps
        self._state = build(
            physical, prepared.decision, state, tables, batch, self._counts, writer.spill, self.quarantine
        )
        self._steps_of_lower_joins = self._counts.steps - steps_before
        self._timer.end("build")
        self._prepared: PreparedPlan = prepared
        self._part = PartitionState(
            slices=(*assignment.list_parked(partition, entries), *writer.write_all(self._state)),
            next_sequence=self._state.next_sequence,
            next_row_numbers=dict(self._state.next_row_numbers),
            migration=prepared.migration,
        )
        self._timer.end("write")

    def probe(self) -> Iterator[pa.Table]:
        """Find the results of the batch's rows; the seconds of whoever takes them do not count."""
        prepared, counts, batch = self._prepared, self._counts, self._assignment.batch
        physical, decision = prepared.physical, prepared.decision
        state, quarantine, spent = self._state, self.quarantine, self._steps_of_lower_joins
        for chunk in probe(physical, decision, state, batch, counts, None, quarantine, spent):
            self._timer.end("probe")
            yield chunk
            self._timer.end("consumer")
        self._timer.end("probe")

    def report(self, writes_results: bool = False) -> TaskReport:
        """Report what was done so far; who takes the results counts if that is the task itself."""
        seconds = dict(self._timer.seconds)
        consumer = seconds.pop("consumer", 0.0)
        seconds["results"] = consumer if writes_results else 0.0
        counts = replace(self._counts, quarantined=self.quarantine.count)
        return TaskReport(self._partition, self._part, counts, dict(self._state.newest), seconds)


class _SliceWriter:
    """Writes the slices of a partition, and knows which are written: those from before the batch, too."""

    def __init__(
        self, assignment: Assignment, partition: int, before: State, entries: Mapping[int, SliceEntry]
    ) -> None:
        self._store, self._batch, self._partition = assignment.store, assignment.batch, partition
        self._entries = dict(entries)
        # An entry is found by the identity of its slice, which is unique as long as the slice is there.
        self._alive = [loaded for slices in before.slices.values() for loaded in slices]

    def spill(self, slices: Sequence[Slice]) -> Sequence[Slice]:
        """Write slices that are large together, and return all of them as they are kept then."""
        new = self._find_new(slices)
        if not are_large(new):
            return slices
        reopened = {}
        for written, entry in zip(new, self._write(new), strict=True):
            kept = self._store.reopen(entry, written)
            reopened[id(written)] = kept
            self._remember(kept, entry)
        return [reopened.get(id(given), given) for given in slices]

    def write_all(self, state: State) -> tuple[SliceEntry, ...]:
        """Write the slices of a state that are not stored yet, and describe all of them."""
        live = [kept for slices in state.slices.values() for kept in slices]
        new = self._find_new(live)
        for written, entry in zip(new, self._write(new), strict=True):
            self._remember(written, entry)
        return tuple(self._entries[id(kept)] for kept in live)

    def _find_new(self, slices: Iterable[Slice]) -> list[Slice]:
        return [given for given in slices if id(given) not in self._entries]

    def _write(self, slices: Sequence[Slice]) -> Sequence[SliceEntry]:
        return self._store.write(self._batch, self._partition, slices)

    def _remember(self, kept: Slice, entry: SliceEntry) -> None:
        self._alive.append(kept)
        self._entries[id(kept)] = entry


def _find_newest_arriving(
    query: Query, tables: Mapping[str, pa.Table], latest: Mapping[str, int]
) -> dict[str, int]:
    """The newest time that a batch may bring of each stream, rows that are ahead left out."""
    newest = {}
    for name, rows in tables.items():
        time = pc.max(rows.column(query.stream(name).time)).cast(pa.int64()).as_py()
        if time is not None:
            newest[name] = min(time, latest.get(name, time))
    return newest


def probe_partition(
    assignment: Assignment, partition: int, counts: BatchCounts, quarantine: Quarantine | None = None
) -> Iterator[pa.Table]:
    """Find the results of a partition's rows, in its own slices or, where these are shared, in all."""
    decision, batch = assignment.decision, assignment.batch
    if decision.placement is not None and decision.placement.is_shared:
        state, drivers = assignment.load_all(partition)
        return probe(assignment.physical, decision, state, batch, counts, drivers, quarantine)
    migration, state, _ = assignment.load_migrating(partition)
    prepared = use_existing_states(assignment.plans, migration, state, decision)
    physical, decision = prepared.physical, prepared.decision
    return probe(physical, decision, prepared.state, batch, counts, quarantine=quarantine)


def check_null_times(query: Query, counts: Sequence[BatchCounts], on_null_time: str) -> None:
    """Refuse rows without an event time, if that is asked for."""
    for name in query.names if on_null_time != "drop" else ():
        if missing := sum(part.null_time.get(name, 0) for part in counts):
            raise QueryError(
                f"stream '{name}' has {missing} row{'s' * (missing != 1)} without a time "
                f"('{query.stream(name).time}' is NULL); fill it in, or pass on_null_time='drop' to leave "
                "such rows out"
            )
