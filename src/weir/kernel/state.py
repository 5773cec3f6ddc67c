"""What is kept between micro-batches, and what becomes of it when one ends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from weir.kernel.physical_plan import PhysicalPlan
from weir.kernel.row_window import is_over
from weir.kernel.slice import Slice, merge
from weir.shed.allowance import Allowance
from weir.stats.batch import StateSize

# Slices of one basic window that is still filling are merged when this many are of like size: a window of n
# batches then holds about log n slices, and a row is rewritten about as often.
_MERGE_AT = 2
_CLOSED = -1


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


def commit(
    program: PhysicalPlan, state: State, allowance: Allowance | None = None, since: int | None = None
) -> State:
    """The state after a batch: the watermark moved on, dead slices gone, small slices merged (see `tidy`)."""
    state = replace(state, watermark=watermark_after(program, state.watermark, state.newest))
    return tidy(program, expire(program, state, allowance), since)


def watermark_after(
    program: PhysicalPlan, watermark: int | None, newest: Mapping[str, int], idle: Collection[str] = ()
) -> int | None:
    """It never goes back, and a stream that has had no row yet holds it, unless it is idle."""
    streams = [stream for stream in program.query.streams if stream.name not in idle]
    if not streams or any(stream.name not in newest for stream in streams):
        return watermark
    reached = min(newest[stream.name] - stream.late for stream in streams)
    return reached if watermark is None else max(watermark, reached)


def expire(program: PhysicalPlan, state: State, allowance: Allowance | None = None) -> State:
    """The state without the slices that no row to come can reach or, if the allowance forgets, looks at."""
    numbers = dict(state.next_numbers)
    # What another plan is being made ready from is not forgotten.
    forgets = allowance is not None and allowance.forget and not program.beside
    oldest = allowance.oldest(program.plan) if allowance is not None and forgets else {}
    live = {
        node: tuple(
            s
            for s in state.of(node)
            if not is_dead(s.deadline, state.watermark)
            and not is_over(s, numbers)
            and not is_dead(_looked_at_until(s, oldest.get(node)), state.watermark)
        )
        for node in program.layouts
    }
    return replace(state, slices=live)


def _looked_at_until(one: Slice, oldest: int | None) -> int | None:
    """The time of the first row to which all of a slice is too old to look at; None without such a time."""
    return None if oldest is None else one.spans[one.layout.lead][1] + oldest


def is_dead(deadline: int | None, watermark: int | None) -> bool:
    """True if no row at or after the watermark can reach a slice of that deadline."""
    return watermark is not None and deadline is not None and deadline <= watermark


def tidy(program: PhysicalPlan, state: State, since: int | None = None) -> State:
    """The state with small slices merged; a basic window behind the watermark becomes one slice.

    Slices of batches before `since` are not merged with later ones.
    """
    merged = {node: tuple(_merged(program, state, node, since)) for node in program.layouts}
    return replace(state, slices=merged)


def _merged(program: PhysicalPlan, state: State, node: str, since: int | None) -> Iterator[Slice]:
    groups: dict[tuple[int, int, bool], list[Slice]] = defaultdict(list)
    for one in state.of(node):
        kind = _CLOSED if _is_closed(one, state.watermark) else _size_class(one)
        groups[one.window, kind, since is not None and one.batch < since].append(one)
    for found in groups.values():
        yield from [merge(found, program.sorts[node])] if len(found) >= _MERGE_AT else found


def _is_closed(one: Slice, watermark: int | None) -> bool:
    """True if no row can come into the slice's basic window any more."""
    layout = one.layout
    if watermark is None or layout.cut_by != layout.lead:
        return False
    return (one.window + 1) * layout.cut_every <= watermark


def _size_class(one: Slice) -> int:
    """Slices of like size are merged with each other: no row is rewritten more than a few times."""
    return one.rows.bit_length()
