"""PSP: nodes in a ring, each with a slice of every window (Wang and Rundensteiner 2009, sections 4 and 6).

The correct output is that of one machine: each input row, in the order of arrival, with all rows before it
that are in their windows. A row is stored at the head and moves towards the tail as it ages. What the ring
must not do is to let a tuple under way miss a row that moves, or meet it twice:

    source ─▶ head ─▶ node 2 ─▶ ... ─▶ tail ─┐      build rows and their probe: head to tail
               ▲                             │      partials: one full round from where they were found
               └─────────────────────────────┘      END: behind the last partial of the head, level by level

A link keeps order and an input row's probe travels behind the rows that it purges, so when it probes a node,
every row is on exactly one side of it. Partials of the row probe what it marked. After the END of level m - 1
has passed a node, nothing of the row can come any more.

Reading of the paper: level m - 1 holds results, which leave the ring, so its END travels alone. Theorem 1
counts it, equation 5 has its round (M N T_n), and only after it may a node other than the head drop the
marks: END tuples of lower levels pass that node before the partials that were found behind it do.

One tuple at a time is basic PSP; with `interleave` above one it is PSP-I, several tuples and delayed purge.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import ceil
from operator import add
from typing import Any

from weir.errors import QueryError
from weir.partition.placement import check_nodes
from weir.partition.resize import Resize, count_transfers, insert_nodes, remove_nodes
from weir_lab.ring.clock import Clock
from weir_lab.ring.hardware import Hardware
from weir_lab.ring.link import Link
from weir_lab.ring.message import Partials, Probe
from weir_lab.ring.node import Node
from weir_lab.ring.stored import Row
from weir_lab.ring.task import Task, even_ends

Emit = Callable[[Row, Any, float, float], None]
Seen = Callable[[Node, Probe | Partials], None]


class Ring:
    """Nodes at work: let rows `arrive` and the clock run, `emit` gets the results.

    `seen` hears of every message that a node begins to do.
    """

    def __init__(
        self,
        task: Task,
        nodes: int,
        hardware: Hardware,
        clock: Clock,
        emit: Emit,
        interleave: int = 1,
        seen: Seen | None = None,
    ) -> None:
        if interleave < 1:
            raise QueryError(f"a ring processes at least one tuple at a time; got interleave={interleave}")
        self.task, self.hardware, self.clock = task, hardware, clock
        self.nodes = [self._new(number) for number in range(check_nodes(nodes))]
        self._numbers = nodes
        self._emit, self._seen = emit, seen
        self._interleave = interleave
        self._waiting: deque[Row] = deque()
        self._under_way = 0
        self._resize: Resize | None = None
        self._suspended = False
        self._leaving = 0
        self.moved = 0
        self._unlimited: list[int | None] = [None] * task.streams
        self._limits: Sequence[int | None] = self._unlimited
        # The ages at which rows leave each node, for each stream.
        self.ends: Sequence[Sequence[float]] = even_ends(task.windows, nodes)
        self._connect()

    def _new(self, number: int) -> Node:
        return Node(number, self.task.streams, self.clock, self._handle)

    def _connect(self) -> None:
        alone = len(self.nodes) == 1
        following = [*self.nodes[1:], self.nodes[0]]
        # A node alone hands its partials to itself: nothing is sent.
        hop, wire = (0.0, 0.0) if alone else (self.hardware.hop, self.hardware.wire)
        self._links = {
            node.number: Link(self.clock, to, hop, wire)
            for node, to in zip(self.nodes, following, strict=True)
        }
        self._send = 0.0 if alone else self.hardware.send
        self._places = {node.number: place for place, node in enumerate(self.nodes)}
        self._head, self._tail = self.nodes[0].number, self.nodes[-1].number

    # What comes in

    def arrive(self, row: Row) -> None:
        """Let an input row wait for its turn at the head."""
        self._waiting.append(row)
        self._admit()

    def fill(self, rows: Sequence[Row], now: float) -> None:
        """Put rows that came before `now` where they would be by then."""
        for row in rows:
            for place, node in enumerate(self.nodes):
                if now - row.time < self.ends[row.stream][place]:
                    node.stored[row.stream].insert(row)
                    break

    @property
    def rows(self) -> int:
        """Rows held by all nodes."""
        return sum(node.rows for node in self.nodes)

    @property
    def waiting(self) -> int:
        """Rows that wait for their turn."""
        return len(self._waiting)

    def _admit(self) -> None:
        if self._resize is not None and not self._under_way and not self._suspended:
            self._apply(self._resize)
        held = self._suspended or self._resize is not None
        while self._waiting and self._under_way < self._interleave and not held:
            self._under_way += 1
            self.nodes[0].receive(Probe(self._waiting.popleft()))

    # What a node does

    def _handle(self, node: Node, message: Probe | Partials, now: float) -> float:
        if self._seen is not None:
            self._seen(node, message)
        if isinstance(message, Partials):
            return self._partials(node, message, now)
        return self._probe(node, message, now)

    def _probe(self, node: Node, message: Probe, now: float) -> float:
        row, builds, costs = message.row, message.builds, self.hardware
        number, place = node.number, self._places[node.number]
        if number == self._head:
            builds = [row]
        for build in builds:
            node.stored[build.stream].insert(build)
        purged: list[Row] = []
        limits = self._limits if number != self._tail else self._unlimited
        for stored, ends, limit in zip(node.stored, self.ends, limits, strict=True):
            purged += stored.expire(row.time, ends[place], limit)
        mark = node.mark(row.number)
        node.sweep()
        begin = now + costs.insert * len(builds) + costs.purge * len(purged)
        begin += self._send * (len(builds) + 1)
        if number != self._tail:
            self._links[number].send(begin, Probe(row, purged), len(purged) + 1)
        first = self.task.matching.first(row)
        return self._step(node, row, first, 1.0, 0, mark, begin, number == self._head)

    def _partials(self, node: Node, message: Partials, now: float) -> float:
        number, row, partials = node.number, message.row, message.partials
        # An END without partials is still one tuple to receive and to send.
        tuples, is_home = message.tuples, number in partials
        begin = now + self._send * (tuples or 1.0)
        content = reduce(add, partials.values())
        if is_home:
            del partials[number]
        if partials:
            if is_home:
                message.tuples = sum(map(self.task.matching.size, partials.values()))
            self._links[number].send(begin, message, message.tuples or 1.0)
        if message.level == self.task.streams - 1:
            node.unmark(row.number)
            if is_home:
                self.clock.at(begin, self._finish, row)
            return begin
        mark = node.marks[row.number]
        is_end = message.is_end and is_home
        return self._step(node, row, content, tuples, message.level, mark, begin, is_end)

    def _step(
        self,
        node: Node,
        row: Row,
        content: Any,
        tuples: float,
        level: int,
        mark: Sequence[tuple[int, int]],
        begin: float,
        is_end: bool,
    ) -> float:
        """Probe the next stream's state, and send on or put out what is found."""
        stream = self.task.orders[row.stream][level]
        low, high = mark[stream]
        done = begin + self.hardware.join * tuples * (high - low)
        matching = self.task.matching
        matches = matching.probe(content, node.stored[stream], low, high, level)
        size = matching.size(matches)
        is_last = level + 2 == self.task.streams
        if is_last and size:
            self._emit(row, matches, begin, done)
        if is_end or (size and not is_last):
            carried, tuples = (None, 0.0) if is_last else (matches, size)
            out = Partials(row, level + 1, {node.number: carried}, tuples, is_end)
            self._links[node.number].send(done, out, out.tuples or 1.0)
        return done

    def _finish(self, row: Row) -> None:
        self._under_way -= 1
        if self._leaving and not self.nodes[-1].rows and self._resize is None:
            self._resize = Resize(len(self.nodes) - self._leaving, "passive")
        self._admit()

    # How the ring is balanced, and changes its length

    def balance(self) -> None:
        """From now on slice by count: no node but the tail holds more than its share of the rows there are.

        To be called again as rates change. Rows older than their window are passed on by every node, not only
        by the tail as in the paper, or they would still be joined when fewer rows come than before.
        """
        totals = [sum(len(node.stored[s].rows) for node in self.nodes) for s in range(self.task.streams)]
        self._limits = [ceil(total / len(self.nodes)) for total in totals]
        self.ends = [(window,) * len(self.nodes) for window in self.task.windows]

    def resize(self, change: Resize) -> None:
        """Change the number of nodes, once the tuples under way are done; slices are by time again."""
        check_nodes(change.nodes)
        self._resize = change
        self._admit()

    def _apply(self, change: Resize) -> None:
        self._resize, self._limits = None, self._unlimited
        if change.how == "passive":
            self._set_ranges(change.nodes)
        else:
            self._relocate(change.nodes)

    def _set_ranges(self, nodes: int) -> None:
        # A node that is to go stays until its last row is too old, with ranges of no length.
        while len(self.nodes) > nodes and not self.nodes[-1].rows:
            self.nodes.pop()
        while len(self.nodes) < nodes:
            self.nodes.append(self._added())
        leaving = len(self.nodes) - nodes
        self.ends = [
            (*ends, *(window for _ in range(leaving)))
            for ends, window in zip(even_ends(self.task.windows, nodes), self.task.windows, strict=True)
        ]
        self._connect()
        self._leaving = leaving

    def _added(self) -> Node:
        self._numbers += 1
        return self._new(self._numbers - 1)

    def _relocate(self, nodes: int) -> None:
        """Suspend the ring for as long as the longest hand-over between two neighbours takes."""
        old = list(self.nodes)
        added = [self._added() for _ in range(nodes - len(old))]
        everyone = {node.number: node for node in [*old, *added]}
        along = insert_nodes([node.number for node in old], [node.number for node in added])
        kept = remove_nodes(along, nodes)
        before = self._whereabouts(along, everyone)
        rows = [row for node in old for stored in node.stored for row in stored.take()]
        self.nodes = [everyone[number] for number in kept]
        self.ends, self._leaving = even_ends(self.task.windows, nodes), 0
        self.fill(sorted(rows, key=lambda row: row.number), max((row.time for row in rows), default=0.0))
        self._connect()
        crossing = count_transfers(before, self._whereabouts(along, everyone), len(along))
        self.moved += sum(crossing)
        costs = self.hardware
        pause = costs.hop + max(crossing, default=0) * (costs.purge + costs.send + costs.insert + costs.wire)
        self._suspended = True
        self.clock.at(self.clock.now + pause, self._resume)

    def _whereabouts(self, along: Sequence[int], nodes: Mapping[int, Node]) -> dict[int, int]:
        return {
            row.number: place
            for place, number in enumerate(along)
            for stored in nodes[number].stored
            for row in stored.rows
        }

    def _resume(self, _: None) -> None:
        self._suspended = False
        self._admit()
