"""One micro-batch: build the slices, then probe for results.

**Correctness.** A result `(t_1..t_m)` is found exactly once, by the row of it that is processed last.
Every slice carries (batch, rank), where the rank is the position of its rows in the batch's driver order: one
per stream, or one per row if a policy interleaves streams. A row sees rows of earlier batches and, in its own
batch, rows of lower rank. Rows of one stream run together even if they differ in rank; then the ranks of each
pair of rows are compared. So ranks decide which row finds a result, not in which order results come.

    rank 0   a's delta ──▶ b, c                 (earlier batches)
    rank 1   b's delta ──▶ c, a + a's delta
    rank 2   c's delta ──▶ a + a's delta, b + b's delta

**Ties** do not exist: of two rows of one batch the one of higher rank finds the other, and rows of one rank
belong to one stream, of which a result has one row. A partial takes the rank of the row that completed it.

**Expiry** happens between batches, never while rows probe: time bounds decide which rows join, and a slice
may only go when no row to come can reach it. An allowance keeps rows from probing, never from being stored,
so what is found is a subset of the exact join.

**Only inner joins**: a result is emitted once it is complete and never taken back.

`build` does all that must be stored: leaf slices, and the outputs of every join below the root. `probe` is a
pure function of the slices and may run never, once or several times.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import pyarrow as pa

from weir.kernel.decision import Decision
from weir.kernel.ingest import ingest
from weir.kernel.intermediate_state import store
from weir.kernel.lag_recorder import LagRecorder
from weir.kernel.output import Results
from weir.kernel.path import run_join
from weir.kernel.physical_plan import PhysicalPlan
from weir.kernel.quarantine import Quarantine
from weir.kernel.spill import Spill, keep_in_memory
from weir.kernel.state import State
from weir.kernel.work_cap import divide_cap
from weir.stats.batch_counts import BatchCounts


def build(
    physical: PhysicalPlan,
    decision: Decision,
    state: State,
    tables: Mapping[str, pa.Table],
    batch: int,
    counts: BatchCounts,
    spill: Spill = keep_in_memory,
    quarantine: Quarantine | None = None,
) -> State:
    """Ingest the rows of a batch and run every join below the root; `probe` takes the state returned."""
    state = ingest(physical, decision, state, tables, batch, counts, spill, quarantine)
    steps_before = counts.steps
    for node in physical.nodes[:-1]:
        hops = counts.migration_hops if node.node in physical.migration_joins else counts.hops
        cap = divide_cap(decision, physical, node, counts.steps - steps_before)
        partials = run_join(node, physical, decision, state, batch, hops, None, quarantine, cap)
        state = store(physical, node, partials, state, batch, decision.slice_bytes, spill)
    return state


def probe(
    physical: PhysicalPlan,
    decision: Decision,
    state: State,
    batch: int,
    counts: BatchCounts,
    drivers: Collection[int] | None = None,
    quarantine: Quarantine | None = None,
    spent: int | None = None,
) -> Iterator[pa.Table]:
    """Yield the results of a batch, in chunks, as they are found.

    With `drivers`, only the slices with these `id`s probe: several calls that divide the slices of a batch
    among them find together what one call finds. `spent` are the steps of the joins below, if they are known.
    """
    results = Results(physical.query, decision, state.next_row_numbers, batch, quarantine)
    recorder = LagRecorder.of(physical, decision.allowance, batch)
    cap = divide_cap(decision, physical, physical.root, spent)
    found = run_join(physical.root, physical, decision, state, batch, counts.hops, drivers, quarantine, cap)
    for _, partial in found:
        if recorder is not None:
            recorder.add(partial)
        yield from results.emit(partial, counts)
    counts.weights = results.weights
    counts.lags = None if recorder is None else recorder.get()
