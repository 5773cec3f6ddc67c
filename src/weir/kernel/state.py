"""State: the live slices between micro-batches, and what happens to them there - expiry and merging.

Expiry may only remove slices that no row to come can join: those whose deadline the watermark has reached,
and those whose rows have all left a row window.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from weir.kernel.index import Spec
from weir.kernel.physical_plan import PhysicalPlan
from weir.kernel.row_window import has_left
from weir.kernel.slice import ROWS, Slice, merge
from weir.kernel.spill import Spill, keep_in_memory, spill_new
from weir.stats.batch_counts import StateSize

# So many neighbours of similar size are merged: a window of n batches then holds about log n small slices,
# and each of their rows is rewritten about log n times. Large slices are rewritten less often.
_MERGE_SMALL_AT = 2
_MERGE_AT = 4
# So many bytes are merged at most at a time: larger slices are few anyway.
_MERGED_BYTES = 1 << 26
# A slice is rewritten without its dead rows when they are this share of its rows.
_DEAD_SHARE = 0.25


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


def merge_slices(
    physical: PhysicalPlan,
    state: State,
    since: int | None = None,
    max_bytes: int | None = None,
    spill: Spill = keep_in_memory,
) -> State:
    """Merge small slices, and drop the dead rows of slices that are mostly dead.

    Slices of batches before `since` are not merged with later ones. `max_bytes` bounds the size of a slice.
    """
    merged = {}
    for node in physical.schemas:
        slices = _merge_node(state, node, physical.sorts[node], since, max_bytes)
        merged[node] = tuple(spill_new(slices, state.of(node), spill))
    return replace(state, slices=merged)


def _merge_node(
    state: State, node: str, sort: Spec, since: int | None, max_bytes: int | None
) -> Iterator[Slice]:
    classes: dict[tuple[int, bool, bool], list[Slice]] = defaultdict(list)
    for slice_ in sorted(state.of(node), key=lambda s: s.span):
        # Only slices of similar size are merged, so that no row is rewritten more than a few times; and what
        # eviction has left of some apart from others, so that it can tell them.
        is_early = since is not None and slice_.batch < since
        classes[slice_.rows.bit_length(), slice_.is_rest, is_early].append(slice_)
    for slices in classes.values():
        for run in _find_runs(slices, max_bytes):
            if len(run) >= (_MERGE_SMALL_AT if run[0].rows < ROWS else _MERGE_AT):
                yield from merge(run, sort, state.watermark, max_bytes)
                continue
            for slice_ in run:
                yield from (
                    merge([slice_], sort, state.watermark, max_bytes)
                    if _holds_many_dead(slice_, state.watermark)
                    else [slice_]
                )


def _find_runs(slices: Sequence[Slice], max_bytes: int | None) -> Iterator[list[Slice]]:
    """Divide slices, in the order of time, into runs: of small ones, or of large ones in one cell or time."""
    most = _MERGED_BYTES if max_bytes is None else min(max_bytes, _MERGED_BYTES)
    run: list[Slice] = []
    rows = size = last = 0
    for slice_ in slices:
        rows, size = rows + slice_.rows, size + slice_.bytes
        if run and not (size <= most and (rows <= ROWS or _is_near(run[-1], last, slice_))):
            yield run
            run, rows, size = [], slice_.rows, slice_.bytes
        last = max(last, slice_.span[1]) if run else slice_.span[1]
        run.append(slice_)
    if run:
        yield run


def _is_near(before: Slice, last: int, slice_: Slice) -> bool:
    """True if a slice shares a cell with the one before it, or begins before the `last` row of a run."""
    return before.cells[0] == slice_.cells[1] or slice_.span[0] <= last


def _holds_many_dead(slice_: Slice, watermark: int | None) -> bool:
    """True for a slice over many cells with so many dead rows that it is worth rewriting."""
    first, last = slice_.cells
    dead = slice_.find_dead(watermark) if first < last else None
    return dead is not None and int(dead.sum()) >= _DEAD_SHARE * len(dead)
