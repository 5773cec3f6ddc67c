"""What a batch costs in virtual seconds: what the engine really did, times unit costs.

The charge does not depend on the machine, so a run can be repeated anywhere with the same outcome.
"""

from __future__ import annotations

import numpy as np

from weir.adapt.batch_report import BatchReport
from weir.kernel.slice import Slice
from weir.kernel.state import State
from weir.plan.tree import Join
from weir.stats.batch_counts import BatchCounts
from weir.stats.hop import Hop, HopStats
from weir.stats.unit_costs import UnitCosts


def charge(stats: BatchReport, inserted: int, deleted: int, costs: UnitCosts) -> float:
    """Seconds for a batch's hops, results and stored rows."""
    hops = sum(charge_hop(hop, costs) for hop in stats.per_hop.values())
    return hops + costs.out * stats.results + costs.insert * inserted + costs.delete * deleted


def charge_hop(work: HopStats, costs: UnitCosts) -> float:
    """Seconds for what one hop did; a probe counts once, whatever slices it visits."""
    steps = costs.probe * work.probes + costs.compare * work.comparisons + costs.match * work.matches
    return costs.fixed + steps


def count_inserted_rows(counts: BatchCounts, plan: Join) -> int:
    """The rows that a batch stored: those of the streams, and what every join below the root put out."""
    lost = sum(counts.late.values()) + sum(counts.null_time.values())
    leaves = sum(counts.rows_in.values()) - lost
    return leaves + sum(
        _matches(counts, hop) for node in plan.inner() if node is not plan for hop in _ends(node)
    )


def count_alive_rows(state: State) -> dict[str, int]:
    """The rows of each state that may still join.

    Slices go as a whole, so a state also holds rows that are dead; a machine that purges row by row, like
    the papers', holds these.
    """
    return {
        node: sum(_alive(stored, state.watermark) for stored in slices)
        for node, slices in state.slices.items()
    }


def _ends(node: Join) -> list[Hop]:
    """The last hop of every path through a join: its matches are what the join puts out."""
    return [
        Hop(str(child), str(node), str(node.inputs[order[-1]]))
        for child, order in zip(node.inputs, node.orders, strict=True)
    ]


def _matches(counts: BatchCounts, hop: Hop) -> int:
    work = counts.hops.get(hop)
    return 0 if work is None else work.matches


def _alive(stored: Slice, watermark: int | None) -> int:
    deadlines = stored.schema.deadlines
    if watermark is None or deadlines is None:
        return stored.rows
    ends = [np.min([stored.numbers(name) + more for name, more in reach], axis=0) for reach in deadlines]
    return int(np.count_nonzero(np.max(ends, axis=0) >= watermark))
