"""One micro-batch: build the slices, then probe for results.

**What is correct.** A result `(t_1..t_m)` is found exactly once, by the row of it that is processed last.
Every slice carries (batch, rank), where the rank is the position of its stream in the batch's driver order;
a row sees slices of earlier batches and, in its own batch, slices of lower rank.

    rank 0   a's delta ──▶ b, c                 (earlier batches)
    rank 1   b's delta ──▶ c, a + a's delta
    rank 2   c's delta ──▶ a + a's delta, b + b's delta

**Ties** do not exist: of two rows of one batch the one of higher rank finds the other, and rows of one rank
belong to one stream, of which a result has one row. A partial takes the rank of the row that completed it.

**Expiry** happens after a batch, never during it: time bounds decide which rows join, and a slice may only
go when no row to come can reach it. An allowance keeps rows from probing, never from being stored, so what
is found is a subset of the exact join.

`build` does all that must be stored: leaf slices, and the outputs of every join below the root. `probe` is a
pure function of the slices and may run never, once or several times.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from weir.kernel.decision import Decision
from weir.kernel.half_join import HopWork
from weir.kernel.ingest import Ingested, ingest
from weir.kernel.intermediate_state import store
from weir.kernel.lag_recorder import LagRecorder
from weir.kernel.output import Results
from weir.kernel.path import run_join
from weir.kernel.physical_plan import PhysicalPlan
from weir.kernel.state import State
from weir.stats.batch import Hop, HopStats


@dataclass
class Work:
    """The running counts of a batch; `beside` are the hops of joins that the plan does not have."""

    hops: dict[Hop, HopWork] = field(default_factory=lambda: defaultdict(HopWork))
    results: int = 0
    stale: int = 0
    oldest: int | None = None
    apart: LagRecorder | None = None
    beside: dict[Hop, HopWork] = field(default_factory=lambda: defaultdict(HopWork))

    def per_hop(self) -> dict[Hop, HopStats]:
        """What each hop of the plan did."""
        return {hop: work.get() for hop, work in self.hops.items()}

    def per_hop_beside(self) -> dict[Hop, HopStats]:
        """What the hops did that make another plan ready."""
        return {hop: work.get() for hop, work in self.beside.items()}


def build(
    physical: PhysicalPlan,
    decision: Decision,
    state: State,
    tables: Mapping[str, pa.Table],
    batch: int,
    work: Work,
) -> Ingested:
    """Ingest the rows of a batch and run every join below the root; `probe` takes the state returned."""
    ingested = ingest(physical, decision, state, tables, batch)
    state = ingested.state
    for node in physical.nodes[:-1]:
        hops = work.beside if node.node in physical.migration_joins else work.hops
        partials = run_join(node, physical, decision, state, batch, hops)
        state = store(physical, node, partials, state, batch)
    return replace(ingested, state=state)


def probe(
    physical: PhysicalPlan,
    decision: Decision,
    state: State,
    batch: int,
    work: Work,
    drivers: Collection[int] | None = None,
) -> Iterator[pa.Table]:
    """Yield the results of a batch, in chunks, as they are found.

    With `drivers`, only the slices with these `id`s probe: several calls that divide the slices of a batch
    among them find together what one call finds.
    """
    results = Results(physical.query, decision, state.next_row_numbers, batch)
    work.apart = LagRecorder.of(physical, decision.allowance, batch)
    for _, partial in run_join(physical.root, physical, decision, state, batch, work.hops, drivers):
        if work.apart is not None:
            work.apart.add(partial)
        for chunk, stale in results.chunks(partial):
            work.stale += stale
            work.oldest = results.oldest
            work.results += chunk.num_rows
            if chunk.num_rows:
                yield chunk
