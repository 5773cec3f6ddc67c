"""A virtual clock that runs scheduled events in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import Any

from weir_lab.ring.stored import Row


class Clock:
    """Does things in the order of their times; of those at one time, what was planned first."""

    __slots__ = ("_planned", "_turn", "now")

    def __init__(self) -> None:
        self.now = 0.0
        self._planned: list[tuple[float, int, Callable[[Any], None], Any]] = []
        self._turn = 0

    def at(self, time: float, do: Callable[[Any], None], what: Any = None) -> None:
        """Plan something for a time."""
        self._turn += 1
        heappush(self._planned, (time, self._turn, do, what))

    def run(self, until: float = float("inf")) -> None:
        """Let time pass, up to a time or until nothing more is planned."""
        planned = self._planned
        while planned and planned[0][0] <= until:
            self.now, _, do, what = heappop(planned)
            do(what)


def feed(clock: Clock, rows: Iterable[Row], take: Callable[[Row], None]) -> None:
    """Let rows arrive at their times, which must not go back."""
    coming = iter(rows)

    def arrive(row: Row) -> None:
        # The next one is planned first: of rows of one time, the earlier number still goes first.
        plan_next()
        take(row)

    def plan_next() -> None:
        row = next(coming, None)
        if row is not None:
            clock.at(row.time, arrive, row)

    plan_next()
