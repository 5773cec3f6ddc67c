"""Admission: after a batch, keep the slices that fit into the memory budget and evict the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from weir.adapt.eviction import choose_kept
from weir.adapt.slice_summary import SliceSummary
from weir.runtime.manifest import summarise
from weir.runtime.partition_state import PartitionState
from weir.stats.lag_histogram import LagHistograms


def fit_into_memory(
    parts: Mapping[int, PartitionState], max_bytes: int, now: int | None, lags: LagHistograms | None
) -> tuple[dict[int, PartitionState], tuple[SliceSummary, ...]]:
    """Return the partitions with at most so many bytes, and a summary of what was evicted of each state."""
    summaries = {number: summarise(part) for number, part in parts.items()}
    everything = [summary for of_part in summaries.values() for summary in of_part]
    stays = iter(choose_kept(everything, max_bytes, now, lags))
    left, evicted = {}, dict[str, SliceSummary]()
    for number, part in parts.items():
        kept = []
        for entry, summary in zip(part.slices, summaries[number], strict=True):
            if next(stays):
                kept.append(entry)
            else:
                earlier = evicted.get(entry.node)
                evicted[entry.node] = summary if earlier is None else _merge(earlier, summary)
        left[number] = replace(part, slices=tuple(kept))
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
