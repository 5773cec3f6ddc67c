"""Choose where the rows of the next batch go: as before, to more or fewer partitions, or by another spread.

Shared rows find partners wherever these lie, so their slices may stay or be assigned to another partition,
in the manifest alone, and the results are the same. Rows by key or by segments lie where these say: for
another number of partitions, their slices are cut again (`weir.spark.repartition`).
"""

from __future__ import annotations

from dataclasses import replace

from weir.partition.placement import (
    SHARED_SPREADS,
    ArrivalForecast,
    Placement,
    StoredSlice,
    assign_future_cells,
    balance_slices,
    change_partitions,
    place_by_time,
)
from weir.partition.resize import Resize
from weir.query.model import Query
from weir.runtime.manifest import Manifest
from weir.runtime.partition_batch import PartitionState, SliceEntry
from weir.spark.routing import Routing


def choose_placement(
    before: Manifest, query: Query, routing: Routing, resize: Resize | None
) -> tuple[Placement, str]:
    """Return the placement of the batch after a manifest, and why it changes; "" if it does not."""
    old = before.placement or routing.first_placement()
    spread, reason = _choose_spread(before, old, routing)
    if spread not in SHARED_SPREADS:
        return _keep_or_cut(old, routing, resize)
    partitions = old.partitions if resize is None else resize.nodes
    # With psp the partition of a slice probes it, so slices that keys have placed are distributed again.
    relocate = spread == "psp" and not old.is_shared
    if resize is not None and (partitions != old.partitions or resize.how == "aggressive"):
        relocate = relocate or resize.how == "aggressive"
        reason = f"{partitions} partitions after {old.partitions}, {resize.how} adjustment"
    if spread == "share":
        return Placement("share", partitions, relocate=relocate), reason
    placement = replace(_divide_time(old, before, routing, partitions), relocate=relocate)
    return _balance_future(placement, before, query), reason


def _keep_or_cut(old: Placement, routing: Routing, resize: Resize | None) -> tuple[Placement, str]:
    if resize is None or resize.nodes == old.partitions:
        return replace(old, relocate=False), ""
    reason = f"{resize.nodes} partitions after {old.partitions}, stored slices are cut again"
    return Placement(routing.name, resize.nodes, relocate=True), reason


def relocate_slices(before: Manifest, placement: Placement) -> Manifest:
    """Assign the slices of a manifest to partitions again, if the placement says so; no file is touched."""
    if not placement.relocate:
        return before
    slices: dict[int, list[SliceEntry]] = {}
    partitions = balance_slices(_stored_slices(before), placement.partitions)
    for partition, entry in zip(partitions, before.entries, strict=True):
        slices.setdefault(partition, []).append(entry)
    parts = {partition: PartitionState(tuple(entries)) for partition, entries in slices.items()}
    return replace(before, parts=parts)


def _choose_spread(before: Manifest, old: Placement, routing: Routing) -> tuple[str, str]:
    if routing.is_shared:
        return routing.name, ""
    if old.is_shared or routing.fallback is None or not before.skew.is_skewed:
        return old.spread, ""
    return routing.fallback, f"a few keys have most of the work, so spread='{routing.fallback}' from here on"


def _divide_time(old: Placement, before: Manifest, routing: Routing, partitions: int) -> Placement:
    """Keep the cells of time, or make new ones for another number of partitions."""
    if old.homes and old.partitions == partitions:
        return old
    assert routing.shortest_window is not None, "psp is routed with its shortest window"
    if not old.homes or not before.newest:
        return place_by_time(routing.shortest_window, partitions)
    return change_partitions(old, routing.shortest_window, partitions, max(before.newest.values()))


def _balance_future(placement: Placement, before: Manifest, query: Query) -> Placement:
    """Assign future cells by the rows that each partition stores and the rate of arrivals."""
    if not before.newest:
        return placement
    newest = max(before.newest.values())
    oldest = min(before.newest.values()) if before.watermark is None else before.watermark
    watermark_delay = newest - oldest
    retentions = [query.bounds.retention(i) or 0 for i in range(len(query.names))]
    mean_retention = max(0, sum(retentions) // len(retentions)) + watermark_delay
    forecast = ArrivalForecast(newest, oldest, before.skew.rate, mean_retention)
    stored = _stored_slices(relocate_slices(before, placement), watermark_delay)
    return assign_future_cells(placement, stored, forecast)


def _stored_slices(manifest: Manifest, watermark_delay: int = 0) -> list[StoredSlice]:
    """The slices of a manifest, in order, for a watermark that lags so far behind the newest row."""
    return [
        StoredSlice(number, entry.rows, None if entry.deadline is None else entry.deadline + watermark_delay)
        for number, part in manifest.parts.items()
        for entry in part.slices
    ]
