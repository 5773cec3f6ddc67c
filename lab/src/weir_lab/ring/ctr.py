"""CTR (Wang and Rundensteiner 2009, section 7): copies of segments, and a set cover for every hop.

Rows of a stream are cut into segments; each segment is stored on `copies` nodes, those that hold least of
the stream. For each hop of an input row a router picks nodes that together hold all live segments of the
partner, lightly loaded ones first, and tells each which segments to look at. No segment is looked at twice,
so no result appears twice. One input row at a time: it is stored, and every hop is done, before the next one
begins.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import floor
from typing import Any

from weir.errors import QueryError
from weir.partition.placement import check_nodes
from weir_lab.ring.clock import Clock
from weir_lab.ring.cover import cheapest_cover
from weir_lab.ring.hardware import Hardware
from weir_lab.ring.link import Link
from weir_lab.ring.node import Node
from weir_lab.ring.ring import Emit
from weir_lab.ring.stored import Row, Stored
from weir_lab.ring.task import Task

Segment = tuple[int, int]
Cover = dict[int, list[Segment]]


@dataclass(slots=True)
class _Store:
    row: Row


@dataclass(slots=True)
class _Drop:
    segment: Segment


@dataclass(slots=True)
class _Hop:
    row: Row
    level: int
    content: Any
    tuples: float


class CoordinatedRouting:
    """Nodes that hold copies of segments of so many seconds, and the router before them."""

    def __init__(
        self,
        task: Task,
        nodes: int,
        copies: int,
        segment: float,
        hardware: Hardware,
        clock: Clock,
        emit: Emit,
    ) -> None:
        check_nodes(nodes)
        if not 1 <= copies <= nodes:
            raise QueryError(
                f"{copies} copies of a row cannot be on {nodes} nodes, one each; take 1 to {nodes} copies"
            )
        if not segment > 0:
            raise QueryError(f"a segment must be longer than zero; got {segment} seconds")
        self._task, self._copies, self._segment = task, copies, segment
        self._hardware, self._clock, self._emit = hardware, clock, emit
        self.nodes = [Node(number, 0, clock, self._handle) for number in range(nodes)]
        self._links = [
            [Link(clock, to, hardware.hop, hardware.wire) for to in self.nodes] for _ in range(nodes + 1)
        ]
        self._held: list[dict[Segment, Stored]] = [{} for _ in range(nodes)]
        # What the router knows: who has been given which segment, how many rows, how much work this row.
        self._homes: dict[Segment, list[int]] = {}
        self._newest: dict[Segment, float] = {}
        self._given = [[0] * task.streams for _ in range(nodes)]
        self._covers: list[Cover] = []
        self._waiting: deque[Row] = deque()
        self._open = 0
        self.asked = 0

    def arrive(self, row: Row) -> None:
        """Let an input row wait for its turn."""
        self._waiting.append(row)
        self._begin()

    @property
    def rows(self) -> int:
        """Rows held by all nodes, copies included."""
        return sum(len(stored.rows) for held in self._held for stored in held.values())

    # The router

    def _begin(self) -> None:
        if self._open or not self._waiting:
            return
        row = self._waiting.popleft()
        self._drop_old(row.time)
        self._covers = self._plan(row)
        for node in self._homes_of(row):
            self._given[node][row.stream] += 1
            self._send(self._router, node, _Store(row), 1.0)
        first = self._task.matching.first(row)
        self.asked += len(self._covers[0])
        for node in self._covers[0]:
            self._send(self._router, node, _Hop(row, 0, first, 1.0), 1.0)

    @property
    def _router(self) -> int:
        return len(self.nodes)

    def _drop_old(self, now: float) -> None:
        for segment, newest in list(self._newest.items()):
            if now - newest >= self._task.windows[segment[0]]:
                for node in self._homes.pop(segment):
                    self._given[node][segment[0]] -= len(self._held[node][segment].rows)
                    self._send(self._router, node, _Drop(segment), 1.0)
                del self._newest[segment]

    def _homes_of(self, row: Row) -> list[int]:
        segment = self._segment_of(row)
        if segment not in self._homes:
            # Least of the same stream first, so that more nodes can take part in a hop.
            order = sorted(
                range(len(self.nodes)),
                key=lambda n: (
                    self._given[n][row.stream],
                    sum(self._given[n]),
                    (n - row.number) % self._router,
                ),
            )
            self._homes[segment] = order[: self._copies]
        self._newest[segment] = row.time
        return self._homes[segment]

    def _segment_of(self, row: Row) -> Segment:
        return row.stream, floor(row.time / self._segment)

    def _plan(self, row: Row) -> list[Cover]:
        """A cover for each hop; what a node was given for one hop weighs against it for the next."""
        weights = dict.fromkeys(range(len(self.nodes)), 1.0)
        covers = []
        for stream in self._task.orders[row.stream]:
            sizes: dict[Segment, float] = {}
            held: dict[int, set[Segment]] = {}
            for segment, homes in self._homes.items():
                if segment[0] == stream:
                    sizes[segment] = float(len(self._held[homes[0]][segment].rows))
                    for node in homes:
                        held.setdefault(node, set()).add(segment)
            cover = cheapest_cover(sizes, held, weights)
            for node, segments in cover.items():
                weights[node] += len(segments) / len(sizes)
            covers.append(cover)
        return covers

    def _send(self, source: int, to: int, message: Any, tuples: float) -> None:
        self._open += 1
        self._links[source][to].send(self._clock.now, message, tuples)

    def _close(self, _: None) -> None:
        self._open -= 1
        if not self._open:
            self._begin()

    # The nodes

    def _handle(self, node: Node, message: _Store | _Drop | _Hop, now: float) -> float:
        costs, held = self._hardware, self._held[node.number]
        if isinstance(message, _Store):
            held.setdefault(self._segment_of(message.row), Stored()).insert(message.row)
            done = now + costs.send + costs.insert
        elif isinstance(message, _Drop):
            done = now + costs.send + costs.purge * len(held.pop(message.segment).rows)
        else:
            return self._hop(node, message, now)
        # The router hears of it one hop later.
        self._clock.at(done + costs.hop, self._close)
        return done

    def _hop(self, node: Node, message: _Hop, now: float) -> float:
        row, level, matching = message.row, message.level, self._task.matching
        held = self._held[node.number]
        window = self._task.windows[self._task.orders[row.stream][level]]
        is_last = level + 2 == self._task.streams
        following = [] if is_last else list(self._covers[level + 1])
        begin = time = now + self._hardware.send * message.tuples
        for segment in self._covers[level][node.number]:
            stored = held[segment]
            low = stored.since(row.time, window)
            time += self._hardware.join * message.tuples * (stored.end - low)
            matches = matching.probe(message.content, stored, low, stored.end, level)
            size = matching.size(matches)
            if is_last and size:
                self._emit(row, matches, begin, time)
            for to in following if size else ():
                self._open += 1
                hop = _Hop(row, level + 1, matches, size)
                self._links[node.number][to].send(time, hop, size)
            begin = time
        self._clock.at(time + self._hardware.hop, self._close)
        return time
