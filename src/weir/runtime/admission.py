"""Admission: after a batch, keep the slices that fit into the memory budget and evict the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import compress
from operator import not_

from weir.adapt.eviction import choose_kept
from weir.adapt.slice_summary import SliceSummary
from weir.runtime.manifest import summarise
from weir.runtime.partition_state import PartitionState
from weir.stats.lag_histogram import LagHistograms


def fit_into_memory(
    parts: Mapping[int, PartitionState], max_bytes: int, now: int | None, lags: LagHistograms | None
) -> tuple[dict[int, PartitionState], tuple[SliceSummary, ...]]:
    """Return the partitions with at most so many bytes, and a summary of what was evicted of each state."""
    entries = [entry for part in parts.values() for entry in part.slices]
    summaries = summarise(entries)
    stays = choose_kept(summaries, max_bytes, now, lags)
    kept = {entry.place for entry, stay in zip(entries, stays, strict=True) if stay}
    left = {
        number: replace(part, slices=tuple(entry for entry in part.slices if entry.place in kept))
        for number, part in parts.items()
    }
    evicted: dict[str, SliceSummary] = {}
    for summary in compress(summaries, map(not_, stays)):
        earlier = evicted.get(summary.node)
        evicted[summary.node] = summary if earlier is None else _merge(earlier, summary)
    return left, tuple(evicted.values())


def _merge(summary: SliceSummary, other: SliceSummary) -> SliceSummary:
    deadlines = (summary.deadline, other.deadline)
    return SliceSummary(
        summary.node,
        summary.rows + other.rows,
        summary.bytes + other.bytes,
        min(summary.first, other.first),
        max(summary.last, other.last),
        None if None in deadlines else max(deadline for deadline in deadlines if deadline is not None),
    )
