"""Where the rows of the next batch go: as before, over more or fewer partitions, or by another spread.

What is correct: rows that are shared are found wherever they lie, so slices may stay, or be given to another
partition in the manifest, and the results are the same. Rows by key or by segments lie where these say.
"""

from __future__ import annotations

from dataclasses import replace

from weir.kernel.decision import Decision
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
from weir.runtime.partition_state import PartitionState, SliceEntry
from weir.spark.routing import Routing


def placement_after(
    before: Manifest, query: Query, routing: Routing, resize: Resize | None
) -> tuple[Placement, str]:
    """The placement of the batch after a manifest, and why it is another than before; "" if it is not."""
    old = before.placement or routing.start()
    spread, why = _spread(before, old, routing)
    if spread not in SHARED_SPREADS:
        return old, why
    partitions = old.partitions if resize is None else resize.nodes
    # By time, work is where the slices are; shared by all tasks it is not.
    relocate = spread == "psp" and not old.is_shared
    if resize is not None and (partitions != old.partitions or resize.how == "aggressive"):
        relocate = relocate or resize.how == "aggressive"
        why = f"{partitions} partitions after {old.partitions}, {resize.how} adjustment"
    if spread == "share":
        return Placement("share", partitions, relocate=relocate), why
    placement = replace(_cut(old, before, routing, partitions), relocate=relocate)
    return _laid_out(placement, before, query), why


def placement_of(decision: Decision) -> Placement:
    """Where a batch's rows go."""
    assert decision.placement is not None, "on Spark every decision places its rows"
    return decision.placement


def relocated(before: Manifest, placement: Placement) -> Manifest:
    """The manifest with its slices given away anew, if the placement says so; no file is touched."""
    if not placement.relocate:
        return before
    slices: dict[int, list[SliceEntry]] = {}
    for home, entry in zip(balance_slices(_held(before), placement.partitions), before.entries, strict=True):
        slices.setdefault(home, []).append(entry)
    return replace(before, parts={home: PartitionState(tuple(given)) for home, given in slices.items()})


def _spread(before: Manifest, old: Placement, routing: Routing) -> tuple[str, str]:
    if routing.is_shared:
        return routing.name, ""
    if old.is_shared or routing.instead is None or not before.skew.is_skewed:
        return old.spread, ""
    return routing.instead, f"a few keys have most of the work, so spread='{routing.instead}' from here on"


def _cut(old: Placement, before: Manifest, routing: Routing, partitions: int) -> Placement:
    """The slices as they were, or for another number of partitions."""
    if old.homes and old.partitions == partitions:
        return old
    assert routing.shortest is not None, "psp is routed with its shortest window"
    if not old.homes or not before.newest:
        return place_by_time(routing.shortest, partitions)
    return change_partitions(old, routing.shortest, partitions, max(before.newest.values()))


def _laid_out(placement: Placement, before: Manifest, query: Query) -> Placement:
    """The slices ahead, by the rows that are held and the pace at which they have come lately."""
    if not before.newest:
        return placement
    newest = max(before.newest.values())
    oldest = min(before.newest.values()) if before.watermark is None else before.watermark
    lag = newest - oldest
    retentions = [query.bounds.retention(i) or 0 for i in range(len(query.names))]
    kept = max(0, sum(retentions) // len(retentions)) + lag
    outlook = ArrivalForecast(newest, oldest, before.skew.rate, kept)
    return assign_future_cells(placement, _held(relocated(before, placement), lag), outlook)


def _held(manifest: Manifest, lag: int = 0) -> list[StoredSlice]:
    """The slices of a manifest, one for one, for a watermark that is so far behind the newest row."""
    return [
        StoredSlice(number, entry.rows, None if entry.deadline is None else entry.deadline + lag)
        for number, part in manifest.parts.items()
        for entry in part.slices
    ]
