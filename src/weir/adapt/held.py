"""What is known of slices, of whichever engine: how many of their rows can still join."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from weir.kernel import Slice


@dataclass(frozen=True, slots=True)
class Held:
    """One slice: its state, its size, and its times (µs).

    `first` and `last` are the times of its rows; from `deadline` on none of them can join, None if they can
    for ever.
    """

    node: str
    rows: int
    bytes: int
    first: int
    last: int
    deadline: int | None

    @staticmethod
    def of(one: Slice) -> Held:
        """What a slice tells."""
        first, last = one.spans[one.layout.lead]
        return Held(one.layout.node, one.rows, one.bytes, first, last, one.deadline)

    def alive(self, now: int | None) -> float:
        """How many of its rows can still join with one of the time `now`, if they are spread evenly."""
        if now is None or self.deadline is None:
            return float(self.rows)
        left = (self.deadline - now) / max(self.last - self.first, 1)
        return self.rows * min(1.0, max(0.0, left))


def alive(slices: Iterable[Held], now: int | None) -> dict[str, float]:
    """The rows of each state that can still join with one of the time `now`."""
    found: dict[str, float] = defaultdict(float)
    for one in slices:
        found[one.node] += one.alive(now)
    return dict(found)


def missing(gone: Iterable[Held], slices: Iterable[Held], now: int | None) -> dict[str, float]:
    """The share of each state's rows that could still join but were let go."""
    lost, there = alive(gone, now), alive(slices, now)
    return {node: rows / (rows + there.get(node, 0.0)) for node, rows in lost.items() if rows > 0}
