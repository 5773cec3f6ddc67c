"""What a manifest keeps of one partition: descriptors of its slices, and how far a plan change is.

Workers import this module, so it needs the kernel and nothing above it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from weir.kernel.migration_state import MigrationState
from weir.kernel.plan_migration import PhysicalPlans
from weir.kernel.slice import Slice
from weir.plan.tree import Join


@dataclass(frozen=True, slots=True)
class SliceEntry:
    """Where one slice is stored, and what can be known of it without opening it.

    `spans` are the least and the greatest of each stored number but keys, `lead` names the time it is cut by;
    from `deadline` on no row of it can join, None if that is never.
    """

    node: str
    file: str
    index: int
    batch: int
    rank: int
    window: int
    rows: int
    bytes: int
    spans: Mapping[str, tuple[int, int]]
    lead: str
    deadline: int | None
    sorted_by: str
    checksum: int = 0

    @staticmethod
    def of(stored: Slice, file: str, index: int, checksum: int = 0) -> SliceEntry:
        """Describe a slice that is stored at a place in a file."""
        return SliceEntry(
            node=stored.schema.node,
            file=file,
            index=index,
            batch=stored.batch,
            rank=stored.rank,
            window=stored.window,
            rows=stored.rows,
            bytes=stored.bytes,
            spans=stored.spans,
            lead=stored.schema.lead,
            deadline=stored.deadline,
            sorted_by=str(stored.sorted_by),
            checksum=checksum,
        )

    @property
    def place(self) -> tuple[str, int]:
        """The file and the index in it, which no other slice has."""
        return self.file, self.index


@dataclass(frozen=True, slots=True)
class PartitionState:
    """The live slices of a partition, the counters of its row windows, and which plan answers there.

    Without a `migration`, the plan that is decided answers: no batch has built here yet.
    """

    slices: tuple[SliceEntry, ...] = ()
    next_sequence: int = 0
    next_row_numbers: Mapping[str, int] = field(default_factory=dict)
    migration: MigrationState | None = None

    def migration_to(self, plan: Join) -> MigrationState:
        """Which plan answers, and what is being built, when a plan is decided."""
        return (self.migration or MigrationState(plan)).aim_at(plan)

    def prepare_for(self, plan: Join, plans: PhysicalPlans) -> PartitionState:
        """Drop the slices that neither the plan decided nor the one that answers needs."""
        migration = self.migration_to(plan)
        physical = plans.of(migration.plan, migration.migration_joins(plan))
        slices = tuple(entry for entry in self.slices if physical.schema_of(entry.node) is not None)
        return replace(self, slices=slices, migration=migration)
