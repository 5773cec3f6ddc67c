"""The state of a query between two batches: all that the next batch starts from."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from weir.adapt.recall import Recall
from weir.adapt.skew import SkewMonitor
from weir.adapt.slice_summary import SliceSummary
from weir.adapt.statistics import Statistics
from weir.kernel.plan_migration import PhysicalPlans
from weir.partition.placement import Placement
from weir.plan.tree import Join
from weir.runtime.partition_batch import PartitionState, SliceEntry
from weir.stats.batch_counts import StateSize

_LOG = logging.getLogger("weir")


@dataclass(frozen=True)
class Manifest:
    """The live slices of each partition, the watermark, and what has been learned.

    `plan` is the one decided last, though an earlier one may be active in some partitions. `arrivals` are the
    clocks of the batches whose rows may still be fresh, where a freshness is asked for. `last_arrivals` has
    the wall clock (µs) of the batch that brought the last row of each stream, or of the first batch.
    """

    batch: int = -1
    watermark: int | None = None
    newest: Mapping[str, int] = field(default_factory=dict)
    parts: Mapping[int, PartitionState] = field(default_factory=dict)
    recall: Recall = field(default_factory=Recall)
    statistics: Statistics = field(default_factory=Statistics)
    skew: SkewMonitor = field(default_factory=SkewMonitor)
    placement: Placement | None = None
    plan: Join | None = None
    arrivals: Mapping[int, int] = field(default_factory=dict)
    last_arrivals: Mapping[str, int] = field(default_factory=dict)

    @property
    def clock(self) -> int | None:
        """The newest event time of all streams (µs); None before the first row."""
        return max(self.newest.values(), default=None)

    @property
    def entries(self) -> tuple[SliceEntry, ...]:
        """The slices of all partitions."""
        return tuple(entry for part in self.parts.values() for entry in part.slices)

    @property
    def files(self) -> frozenset[str]:
        """The slice files it names."""
        return frozenset(entry.file for entry in self.entries)

    @property
    def sizes(self) -> dict[str, StateSize]:
        """How much each state holds, over all partitions, without what is parked."""
        sizes: dict[str, StateSize] = {}
        for entry in self.entries:
            if entry.parked:
                continue
            size = sizes.get(entry.node, StateSize(0, 0, 0))
            sizes[entry.node] = StateSize(size.rows + entry.rows, size.bytes + entry.bytes, size.slices + 1)
        return sizes

    @property
    def parked_rows(self) -> dict[str, int]:
        """The parked rows of each state that has any."""
        rows: dict[str, int] = {}
        for entry in self.entries:
            if entry.parked:
                rows[entry.node] = rows.get(entry.node, 0) + entry.rows
        return rows

    @property
    def active_plans(self) -> set[Join]:
        """The active plans, each of some partition."""
        return {part.migration.plan for part in self.parts.values() if part.migration is not None}

    def accept_until(self, latest: Mapping[str, int]) -> Manifest:
        """Forget the newest time of a stream that is beyond what is accepted of it, as its clock was wrong.

        So is a watermark beyond all that is accepted: no row could come in time any more.
        """
        newest = {name: time for name, time in self.newest.items() if time <= latest.get(name, time)}
        if len(newest) < len(self.newest):
            wrong = ", ".join(f"'{name}'" for name in self.newest if name not in newest)
            _LOG.warning("the newest times of %s lie so far ahead that they are forgotten", wrong)
        is_wrong = bool(latest) and self.watermark is not None and self.watermark > max(latest.values())
        if is_wrong:
            _LOG.warning("the watermark lies so far ahead that it is forgotten")
        return replace(self, newest=newest, watermark=None if is_wrong else self.watermark)

    def prepare_for(self, plan: Join, plans: PhysicalPlans) -> Manifest:
        """What is left when a plan is decided: the slices that it or the plan before it needs."""
        parts = {number: part.prepare_for(plan, plans) for number, part in self.parts.items()}
        return replace(self, parts=parts, plan=plan)


def summarise(entries: Iterable[SliceEntry]) -> list[SliceSummary]:
    """Summaries of slices, one for one."""
    return [
        SliceSummary(entry.node, entry.rows, entry.bytes, *entry.span, entry.deadline, entry.is_rest)
        for entry in entries
    ]
