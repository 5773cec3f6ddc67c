"""Change the number of partitions where a key or a segment of time says where rows lie.

Before its first batch with another number, a query cuts all stored slices again (`weir.spark.recut`). The
batch then starts from a manifest that names the pieces; nothing else knows them until it commits, and if it
is repeated, they are cut again from the same slices.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.pandas.types import from_arrow_type

from weir.codec import from_json
from weir.kernel.decision import Decision
from weir.kernel.migration_state import MigrationState, unite
from weir.kernel.plan_migration import PhysicalPlans
from weir.partition.placement import Placement
from weir.plan.default_plan import mjoin
from weir.plan.tree import Join
from weir.query.model import Query
from weir.runtime.manifest import Manifest
from weir.runtime.partition_batch import PartitionState, SliceEntry, SliceStore
from weir.spark.recut import (
    KEY,
    ROW,
    ROW_IDS,
    SEGMENTS,
    SLICE,
    CutReport,
    KeyReader,
    SegmentReader,
    SliceCutter,
    StoredSlices,
)
from weir.spark.routing import Routing
from weir.spark.slice_files import FileStore
from weir.spark.task_reports import REPORT, collect_reports
from weir.spark.union import assign_partitions, hash_key


@dataclass(frozen=True)
class Repartitioning:
    """Cuts the slices of a query for the placements that its decisions ask for."""

    spark: SparkSession
    query: Query
    routing: Routing
    store: FileStore

    def run(self, before: Manifest, decision: Decision, new: Placement) -> Manifest:
        """Return the manifest with every stored row in its partition of the new placement."""
        if not before.entries:
            return replace(before, parts={})
        migration, stored, homes = choose_slices(before, decision.plan, self.query, self.store)
        old = before.placement or self.routing.first_placement()
        if new.partitions == 1 and self.routing.segments is None:
            return replace(before, parts={0: PartitionState(stored.entries, migration=migration)})
        rows = self._read(stored, homes, old, max(old.partitions, new.partitions))
        reports = collect_reports(assign_partitions(rows, new).mapInArrow(SliceCutter(stored), REPORT))
        cut = [from_json(CutReport, report) for report in reports]
        return replace(before, parts=gather_pieces(cut, migration))

    def _read(self, stored: StoredSlices, homes: tuple[int, ...], old: Placement, tasks: int) -> DataFrame:
        """Read of every stored row what its partition depends on, as in the union of all streams."""
        numbers = self.spark.range(0, len(stored.entries), 1, min(tasks, len(stored.entries)))
        segments, key = self.routing.segments, self.routing.key
        if segments is not None:
            reach = {segments.master: (0, 0)} | {name: (back, ahead) for name, back, ahead in segments.reach}
            reader = SegmentReader(stored, homes, old.partitions, segments.length, reach)
            return numbers.mapInArrow(reader, SEGMENTS)
        assert key is not None, "without a key or segments, there is one partition"
        kind = from_arrow_type(key.domain, prefer_timestamp_ntz=True).simpleString()
        keys = numbers.mapInArrow(KeyReader(stored, key), f"{ROW_IDS}, {KEY} {kind}")
        return keys.select(SLICE, ROW, hash_key(F.col(KEY), key.domain))


def choose_slices(
    before: Manifest, target: Join, query: Query, store: SliceStore
) -> tuple[MigrationState, StoredSlices, tuple[int, ...]]:
    """Choose the slices to cut when a plan is decided; return the partition of each too.

    Rows of several partitions come together, so all get one migration state, and slices of states that were
    not complete in each of them are left out.
    """
    migrations = [part.migration_to(target) for part in before.parts.values() if part.slices]
    migration = unite(migrations, target, mjoin(query))
    physical = PhysicalPlans(query).of(migration.plan, migration.migration_joins(target))
    places = [
        (entry, partition)
        for partition, part in before.parts.items()
        for entry in part.slices
        if physical.schema_of(entry.node) is not None
    ]
    entries, homes = zip(*places, strict=True)
    return migration, StoredSlices(entries, physical, store, before.batch + 1), homes


def gather_pieces(reports: Iterable[CutReport], migration: MigrationState) -> dict[int, PartitionState]:
    """Return the partitions with the slices that tasks cut for them."""
    slices: dict[int, list[SliceEntry]] = {}
    for report in reports:
        for partition, entry in zip(report.partitions, report.entries, strict=True):
            slices.setdefault(partition, []).append(entry)
    return {number: PartitionState(tuple(slices[number]), migration=migration) for number in sorted(slices)}
