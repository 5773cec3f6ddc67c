"""Evict slices at commit until the state fits into the memory budget; parked ones take no memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import compress
from operator import not_

from weir.adapt.eviction import choose_kept
from weir.adapt.slice_summary import SliceSummary
from weir.runtime.manifest import summarise
from weir.runtime.partition_batch import PartitionState
from weir.stats.lag_histogram import LagHistograms


def fit_into_memory(
    parts: Mapping[int, PartitionState], max_bytes: int, now: int | None, lags: LagHistograms | None
) -> tuple[dict[int, PartitionState], tuple[SliceSummary, ...]]:
    """Return the partitions with at most so many bytes, and a summary of what was evicted of each state."""
    entries = [entry for part in parts.values() for entry in part.slices]
    summaries = summarise(entry for entry in entries if not entry.parked)
    stays = choose_kept(summaries, max_bytes, now, lags)
    decided = iter(stays)
    kept = iter([entry.parked or next(decided) for entry in entries])  # of each partition as many as it has
    left = {n: replace(part, slices=tuple(compress(part.slices, kept))) for n, part in parts.items()}
    evicted: dict[str, SliceSummary] = {}
    for summary in compress(summaries, map(not_, stays)):
        earlier = evicted.get(summary.node)
        evicted[summary.node] = summary if earlier is None else _merge(earlier, summary)
    return left, tuple(evicted.values())


def _merge(summary: SliceSummary, other: SliceSummary) -> SliceSummary:
    size = summary.rows + other.rows, summary.bytes + other.bytes
    span = min(summary.first, other.first), max(summary.last, other.last)
    deadlines = [each.deadline for each in (summary, other) if each.deadline is not None]
    return SliceSummary(summary.node, *size, *span, max(deadlines) if len(deadlines) == 2 else None)
