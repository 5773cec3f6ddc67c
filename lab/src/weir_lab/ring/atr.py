"""Aligned tuple routing: segments of a master stream, one node each (Wang and Rundensteiner 2009, section 7).

A result holds one row of the master, and is found where that row's segment is. So the other streams' rows
are copied to every node that has a segment with a row they may meet, before or after it:

    master    │   segment k at one node   │ k + 1 at the next
    others  W │◀──────────────────────────│▶ W_master        to the node of k: these, with both overlaps

Each node is a ring of one. It drops old rows only when something comes that purges them, so a node whose
segment is over holds what it has until its next turn.
"""

from __future__ import annotations

from math import ceil, floor

from weir.errors import QueryError
from weir.partition.placement import check_nodes
from weir_lab.ring.clock import Clock
from weir_lab.ring.hardware import Hardware
from weir_lab.ring.ring import Emit, Ring
from weir_lab.ring.stored import Row
from weir_lab.ring.task import Task

MASTER = 0


class AlignedRouting:
    """Nodes that take turns at segments of stream 0, each of so many seconds."""

    def __init__(
        self, task: Task, nodes: int, segment: float, hardware: Hardware, clock: Clock, emit: Emit
    ) -> None:
        check_nodes(nodes)
        longest = max(task.windows)
        if segment < longest:
            raise QueryError(
                f"a segment of {segment:g} seconds is shorter than the window of {longest:g} seconds, so "
                f"rows would be copied to most nodes; take {longest:g} seconds or more"
            )
        self._task, self._segment, self._clock = task, segment, clock
        self._hop = hardware.hop
        self.nodes = [Ring(task, 1, hardware, clock, emit) for _ in range(nodes)]

    def arrive(self, row: Row) -> None:
        """Send a row to the nodes of all segments that it may meet."""
        for node in self.route(row):
            self._clock.at(self._clock.now + self._hop, self.nodes[node].arrive, row)

    def route(self, row: Row) -> list[int]:
        """The nodes that need a row, each once."""
        if row.stream == MASTER:
            first = last = floor(row.time / self._segment)
        else:
            # From the segments whose rows are not yet too old for it to those for which it is not.
            first = max(0, floor((row.time - self._task.windows[MASTER]) / self._segment))
            last = ceil((row.time + self._task.windows[row.stream]) / self._segment) - 1
        return sorted({segment % len(self.nodes) for segment in range(first, last + 1)})

    @property
    def rows(self) -> int:
        """Rows held by all nodes."""
        return sum(node.rows for node in self.nodes)
