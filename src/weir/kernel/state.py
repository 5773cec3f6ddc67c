"""What is kept between micro-batches, and what becomes of it when one ends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from weir.kernel.line import is_over
from weir.kernel.program import Program
from weir.kernel.slice import Slice, merge
from weir.stats import StateSize

# Slices of one basic window that is still filling are merged when there are this many; one that time has left
# behind becomes a single slice.
_MERGE_AT = 4


@dataclass(frozen=True)
class State:
    """Live slices per node, the watermark, and the counters that row windows need.

    `newest` is the newest event time per stream; `next_place` and `next_numbers` continue the order of rows.
    """

    slices: Mapping[str, tuple[Slice, ...]] = field(default_factory=dict)
    watermark: int | None = None
    newest: Mapping[str, int] = field(default_factory=dict)
    next_place: int = 0
    next_numbers: Mapping[str, int] = field(default_factory=dict)

    def of(self, node: str) -> tuple[Slice, ...]:
        """The slices of a node."""
        return self.slices.get(node, ())

    def adding(self, new: Mapping[str, Iterable[Slice]]) -> State:
        """The state with more slices."""
        slices = dict(self.slices)
        for node, found in new.items():
            slices[node] = (*self.of(node), *found)
        return replace(self, slices=slices)

    def sizes(self) -> dict[str, StateSize]:
        """Rows, bytes and slices per node."""
        return {
            node: StateSize(sum(s.rows for s in found), sum(s.bytes for s in found), len(found))
            for node, found in self.slices.items()
        }


def commit(program: Program, state: State) -> State:
    """The state after a batch: the watermark moved on, dead slices gone, small slices merged."""
    watermark = _watermark(program, state)
    slices = {node: _tidy(program, state, node, watermark) for node in program.layouts}
    return replace(state, slices=slices, watermark=watermark)


def _watermark(program: Program, state: State) -> int | None:
    """It never goes back, and a stream that has had no row yet holds it (DESIGN 4)."""
    streams = program.query.streams
    if any(stream.name not in state.newest for stream in streams):
        return state.watermark
    reached = min(state.newest[stream.name] - stream.late for stream in streams)
    return reached if state.watermark is None else max(state.watermark, reached)


def _tidy(program: Program, state: State, node: str, watermark: int | None) -> tuple[Slice, ...]:
    numbers = dict(state.next_numbers)
    live = [one for one in state.of(node) if not _is_dead(one, watermark) and not is_over(one, numbers)]
    windows = defaultdict(list)
    for one in live:
        windows[one.window].append(one)
    newest = max(windows, default=0)
    tidied: list[Slice] = []
    for window, found in windows.items():
        wanted = len(found) >= _MERGE_AT if window == newest else len(found) > 1
        tidied += [merge(found, program.sorts[node])] if wanted else found
    return tuple(tidied)


def _is_dead(one: Slice, watermark: int | None) -> bool:
    return watermark is not None and one.deadline is not None and one.deadline <= watermark
