"""State within its budget: at the end of a batch the slices worth least are let go, in the manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from weir.adapt.eviction import choose_kept
from weir.adapt.slice_summary import SliceSummary
from weir.kernel.migration_state import MigrationState
from weir.kernel.plan_migration import PhysicalPlans
from weir.plan.tree import Join
from weir.spark.report import PartitionState
from weir.stats.lag_histogram import LagHistograms


def within(
    parts: Mapping[int, PartitionState],
    most: int,
    programs: PhysicalPlans,
    plan: Join,
    now: int | None,
    lags: LagHistograms | None,
) -> tuple[dict[int, PartitionState], tuple[SliceSummary, ...]]:
    """The parts with at most so many bytes of slices, and what had to go, each state's as one.

    The `plan` is the one that was decided, though an earlier one may still answer.
    """
    slices = {number: held(part, programs, plan) for number, part in parts.items()}
    stays = iter(choose_kept([one for found in slices.values() for one in found], most, now, lags))
    left, gone = {}, dict[str, SliceSummary]()
    for number, part in parts.items():
        kept = []
        for entry, one in zip(part.slices, slices[number], strict=True):
            if next(stays):
                kept.append(entry)
            else:
                gone[one.node] = _both(gone[one.node], one) if one.node in gone else one
        left[number] = replace(part, slices=tuple(kept))
    return left, tuple(gone.values())


def held(part: PartitionState, programs: PhysicalPlans, plan: Join) -> list[SliceSummary]:
    """What is known of a partition's slices, one for one, when a plan was decided."""
    standing = part.standing or MigrationState(plan)
    program = programs.of(standing.plan, standing.beside(plan))
    found = []
    for entry in part.slices:
        layout = program.layout_of(entry.node)
        assert layout is not None, entry.node
        first, last = entry.spans[layout.lead]
        found.append(SliceSummary(entry.node, entry.rows, entry.bytes, first, last, entry.deadline))
    return found


def _both(one: SliceSummary, other: SliceSummary) -> SliceSummary:
    ends = (one.deadline, other.deadline)
    return SliceSummary(
        one.node,
        one.rows + other.rows,
        one.bytes + other.bytes,
        min(one.first, other.first),
        max(one.last, other.last),
        None if None in ends else max(end for end in ends if end is not None),
    )
