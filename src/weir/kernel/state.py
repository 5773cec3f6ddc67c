"""State: the live slices between micro-batches, and what happens to them there - expiry and merging.

Expiry may only remove slices that no row to come can join: those whose deadline the watermark has reached,
and those whose rows have all left a row window.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from weir.kernel.physical_plan import PhysicalPlan
from weir.kernel.row_window import has_left
from weir.kernel.slice import Slice, merge
from weir.stats.batch_counts import StateSize

# Slices of a basic window that is still filling are merged when this many have similar sizes: a window of n
# batches then holds about log n slices, and each row is rewritten about log n times.
_MERGE_AT = 2
_CLOSED = -1


@dataclass(frozen=True)
class State:
    """Live slices per node, the watermark, the newest event time per stream, and the counters of row windows.

    `next_sequence` is the next sequence number, `next_row_numbers` the next row number of each window.
    """

    slices: Mapping[str, tuple[Slice, ...]] = field(default_factory=dict)
    watermark: int | None = None
    newest: Mapping[str, int] = field(default_factory=dict)
    next_sequence: int = 0
    next_row_numbers: Mapping[str, int] = field(default_factory=dict)

    def of(self, node: str) -> tuple[Slice, ...]:
        """Return the slices of a node."""
        return self.slices.get(node, ())

    def count_rows(self, node: str) -> int:
        """Count the rows of a node."""
        return sum(s.rows for s in self.of(node))

    def add(self, new: Mapping[str, Iterable[Slice]]) -> State:
        """Return the state with more slices."""
        added = {node: (*self.of(node), *slices) for node, slices in new.items()}
        return replace(self, slices={**self.slices, **added})

    def sizes(self) -> dict[str, StateSize]:
        """Return rows, bytes and slices per node."""
        return {
            node: StateSize(self.count_rows(node), sum(s.bytes for s in slices), len(slices))
            for node, slices in self.slices.items()
        }


def end_batch(physical: PhysicalPlan, state: State) -> State:
    """End a batch: advance the watermark, drop dead slices, merge small ones."""
    state = replace(state, watermark=advance_watermark(physical, state.watermark, state.newest))
    return merge_slices(physical, expire(physical, state))


def advance_watermark(
    physical: PhysicalPlan, watermark: int | None, newest: Mapping[str, int], idle: Collection[str] = ()
) -> int | None:
    """Return the new watermark: it never goes back, and waits for a row of each stream that is not idle."""
    streams = [stream for stream in physical.query.streams if stream.name not in idle]
    if not streams or any(stream.name not in newest for stream in streams):
        return watermark
    reached = min(newest[stream.name] - stream.late for stream in streams)
    return reached if watermark is None else max(watermark, reached)


def expire(physical: PhysicalPlan, state: State) -> State:
    """Drop slices that no row to come can join."""

    def is_live(s: Slice) -> bool:
        return not is_dead(s.deadline, state.watermark) and not has_left(s, state.next_row_numbers)

    live = {node: tuple(s for s in state.of(node) if is_live(s)) for node in physical.schemas}
    return replace(state, slices=live)


def is_dead(deadline: int | None, watermark: int | None) -> bool:
    """True if no row at or after the watermark can join a slice of that deadline."""
    return watermark is not None and deadline is not None and deadline <= watermark


def merge_slices(physical: PhysicalPlan, state: State, since: int | None = None) -> State:
    """Merge small slices; a basic window that the watermark has passed becomes one slice.

    Slices of batches before `since` are not merged with later ones.
    """
    merged = {node: tuple(_merge_node(physical, state, node, since)) for node in physical.schemas}
    return replace(state, slices=merged)


def _merge_node(physical: PhysicalPlan, state: State, node: str, since: int | None) -> Iterator[Slice]:
    groups: dict[tuple[int, int, bool], list[Slice]] = defaultdict(list)
    for slice_ in state.of(node):
        # Slices of similar size are merged, so that no row is rewritten more than a few times.
        size_class = _CLOSED if _is_closed(slice_, state.watermark) else slice_.rows.bit_length()
        groups[slice_.window, size_class, since is not None and slice_.batch < since].append(slice_)
    for slices in groups.values():
        yield from [merge(slices, physical.sorts[node])] if len(slices) >= _MERGE_AT else slices


def _is_closed(slice_: Slice, watermark: int | None) -> bool:
    """True if no more rows can enter the slice's basic window."""
    schema = slice_.schema
    if watermark is None or schema.cut_by != schema.lead:
        return False
    return (slice_.window + 1) * schema.cut_every <= watermark
