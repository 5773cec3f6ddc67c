"""Evict slices at commit until the state fits into the memory budget; parked ones take no memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

from weir.adapt.eviction import choose_shares
from weir.kernel.state_schema import StateSchema
from weir.runtime.manifest import summarise
from weir.runtime.partition_batch import PartitionState, SliceEntry
from weir.stats.lag_histogram import LagHistograms


def find_clocks(
    states: Mapping[str, StateSchema], newest: Mapping[str, int], idle: Collection[str]
) -> dict[str, int]:
    """Return for each state the newest time of the slowest other stream, if all have rows.

    The stream that is furthest behind completes the results: its next rows join those of the others at its
    own time, and its earlier rows join none. Streams that are idle do not count.
    """
    clocks = {}
    streams = {name for schema in states.values() for name in schema.streams}
    for node, schema in states.items():
        others = streams - schema.streams - set(idle)
        if others and others <= newest.keys():
            clocks[node] = min(newest[name] for name in others)
    return clocks


def fit_into_memory(
    parts: Mapping[int, PartitionState],
    max_bytes: int,
    batch: int,
    clocks: Mapping[str, int],
    lags: LagHistograms | None,
) -> tuple[dict[int, PartitionState], dict[str, int]]:
    """Return the partitions with about so many bytes at most, and the rows evicted of each state."""
    entries = [entry for part in parts.values() for entry in part.slices if not entry.parked]
    shares = iter(choose_shares(summarise(entries), max_bytes, clocks, lags))
    evicted = Counter[str]()

    def fit(entry: SliceEntry) -> SliceEntry:
        share = 1.0 if entry.parked else next(shares)
        if share >= 1:
            return entry
        left = entry.thin(share, batch)
        evicted[entry.node] += entry.rows - left.rows
        return left

    fitting = {n: replace(part, slices=tuple(map(fit, part.slices))) for n, part in parts.items()}
    return fitting, dict(evicted)
