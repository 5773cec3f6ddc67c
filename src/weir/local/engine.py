"""The engine in one process: one partition, whose slices stay in memory."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from time import thread_time

import pyarrow as pa
import pyarrow.compute as pc

from weir.kernel.physical_plan import PhysicalPlan
from weir.kernel.quarantine import QUARANTINE_SCHEMA
from weir.kernel.slice import Slice
from weir.kernel.state import State
from weir.partition.placement import Placement
from weir.plan.tree import Join
from weir.query.model import Query
from weir.runtime.decide import BatchLog
from weir.runtime.manifest import Manifest
from weir.runtime.micro_batch import Batch, Engine
from weir.runtime.partition_batch import PartitionBatch, PartitionState, SliceEntry, TaskReport

_PARTITION = 0
_PLACEMENT = Placement("hash", 1)


class Memory(BatchLog):
    """Keeps the last manifest and its slices; a batch that failed is decided anew, and no history is kept."""

    def __init__(self) -> None:
        self.manifest = Manifest()
        self._slices: dict[tuple[str, int], Slice] = {}
        self._next = 0

    def read(self, entry: SliceEntry, physical: PhysicalPlan) -> Slice:
        """The slice of an entry."""
        return self._slices[entry.place]

    def write(self, batch: int, partition: int, slices: Sequence[Slice]) -> list[SliceEntry]:
        """Keep slices, as later batches need them: this one probes those that it was given."""
        entries = [SliceEntry.of(kept, "", self._next + i) for i, kept in enumerate(slices)]
        self._slices |= {
            entry.place: kept.without_ranks() for entry, kept in zip(entries, slices, strict=True)
        }
        self._next += len(slices)
        return entries

    def reopen(self, entry: SliceEntry, written: Slice) -> Slice:
        """The slice itself: what is kept takes memory anyway."""
        return written

    def retain(self, live: Iterable[SliceEntry]) -> None:
        """Forget nothing when a batch begins: it may fail, and the slices before it are needed then."""

    def begin(self, batch: int) -> Manifest:
        """The last manifest."""
        return self.manifest

    def commit(self, manifest: Manifest) -> None:
        """Keep the manifest, and forget all slices but its own, and evicted rows."""
        parts = {number: self._thin(part) for number, part in manifest.parts.items()}
        self.manifest = replace(manifest, parts=parts)
        self._slices = {entry.place: self._slices[entry.place] for entry in self.manifest.entries}

    def _thin(self, part: PartitionState) -> PartitionState:
        """Let go of evicted rows at once: what is left of their slices is kept as slices of their own."""
        slices = []
        for entry in part.slices:
            if entry.thinning is None:
                slices.append(entry)
                continue
            left = entry.thinning.apply(self._slices[entry.place])
            if left.rows:
                self._slices[entry.place] = left
                slices.append(SliceEntry.of(left, *entry.place))
        return replace(part, slices=tuple(slices))


class LocalEngine(Engine[Mapping[str, pa.Table]]):
    """Builds and probes in the thread that brings the rows."""

    interval: float | None = None

    def __init__(self, memory: Memory, query: Query) -> None:
        self._memory, self._query = memory, query
        self._running: PartitionBatch | None = None
        self.quarantined = QUARANTINE_SCHEMA.empty_table()

    def clock(self) -> float:
        """CPU seconds of this thread, so that others who use the machine do not count."""
        return thread_time()

    def measure_span(self, rows: Mapping[str, pa.Table], before: Manifest) -> float | None:
        """The event seconds from the newest row before the batch, or from its first row, to its last."""
        times = [table.column(self._query.stream(name).time) for name, table in rows.items()]
        ends = [(pc.min(column), pc.max(column)) for column in times]
        known = [
            (low.cast(pa.int64()).as_py(), high.cast(pa.int64()).as_py())
            for low, high in ends
            if high.is_valid
        ]
        if not known:
            return None
        first = min(low for low, _ in known) if before.clock is None else before.clock
        span: int = max(high for _, high in known) - first
        return max(0, span) / 1e6

    def place(self, before: Manifest, plan: Join) -> tuple[Placement, str]:
        """All rows lie in one partition."""
        return _PLACEMENT, ""

    def build(self, rows: Mapping[str, pa.Table], batch: Batch) -> list[TaskReport]:
        """Store the rows and run the joins below the root."""
        self._running = PartitionBatch(batch.assign(self._memory), _PARTITION, rows, thread_time)
        return [self._running.report()]

    def emit(self, batch: Batch, tasks: Sequence[TaskReport]) -> Generator[pa.Table, None, list[TaskReport]]:
        """Hand out the results piece by piece."""
        assert self._running is not None, "a batch is built before its results are emitted"
        running, self._running = self._running, None
        yield from running.probe()
        self.quarantined = running.quarantine.to_table()
        return [running.report()]

    def load(self, manifest: Manifest, plan: PhysicalPlan) -> State:
        """The state that a manifest describes."""
        part = manifest.parts.get(_PARTITION, PartitionState())
        slices: dict[str, tuple[Slice, ...]] = dict.fromkeys(plan.schemas, ())
        for entry in part.slices:
            # While the query migrates, states of the next plan are among them.
            slices[entry.node] = (*slices.get(entry.node, ()), self._memory.read(entry, plan))
        return State(slices, manifest.watermark, manifest.newest, part.next_sequence, part.next_row_numbers)
