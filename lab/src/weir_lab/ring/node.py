"""A machine: one processor that does what comes in, in the order in which it comes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from weir_lab.ring.clock import Clock
from weir_lab.ring.message import Partials
from weir_lab.ring.stored import Stored

Mark = tuple[tuple[int, int], ...]


class Node:
    """Holds a part of every stream's state; `handle` does a message and tells when it will be done.

    `marks` say, for each tuple under way, which stored rows of each stream it may see: from StateEnd, the
    oldest, to StateStart (Wang and Rundensteiner 2009, section 4.4).
    """

    __slots__ = ("_clock", "_handle", "_inbox", "_is_busy", "_queued", "busy", "marks", "number", "stored")

    def __init__(
        self, number: int, streams: int, clock: Clock, handle: Callable[[Node, Any, float], float]
    ) -> None:
        self.number = number
        self.stored = [Stored() for _ in range(streams)]
        self.marks: dict[int, Mark] = {}
        self.busy = 0.0
        self._clock, self._handle = clock, handle
        self._inbox: deque[Any] = deque()
        self._queued: dict[tuple[int, int], Partials] = {}
        self._is_busy = False

    def receive(self, message: Any) -> None:
        """Take a message in; it is done when all before it are.

        Partials that find others of their row and level waiting are done with these. An END keeps its place.
        """
        if isinstance(message, Partials) and not message.is_end:
            key = message.row.number, message.level
            if key in self._queued:
                self._queued[key].join(message)
                return
            self._queued[key] = message
        self._inbox.append(message)
        if not self._is_busy:
            self._next(None)

    def _next(self, _: None) -> None:
        if self._inbox:
            now, message = self._clock.now, self._inbox.popleft()
            if isinstance(message, Partials) and not message.is_end:
                del self._queued[message.row.number, message.level]
            done = self._handle(self, message, now)
            self.busy += done - now
            self._is_busy = True
            self._clock.at(done, self._next)
        else:
            self._is_busy = False

    def mark(self, number: int) -> Mark:
        """Remember what is live now as what a tuple may see."""
        bounds = tuple((part.live, part.end) for part in self.stored)
        self.marks[number] = bounds
        return bounds

    def unmark(self, number: int) -> None:
        """A tuple needs nothing more here."""
        self.marks.pop(number, None)
        self.sweep()

    def sweep(self) -> None:
        """Delete what was passed on and nobody under way may see."""
        # Marks are set in order of arrival, so the first one reaches back furthest.
        oldest = next(iter(self.marks.values()), None)
        for stream, stored in enumerate(self.stored):
            stored.forget(stored.live if oldest is None else oldest[stream][0])

    @property
    def rows(self) -> int:
        """Rows held, those passed on but still marked included."""
        return sum(len(part.rows) for part in self.stored)
