"""A machine of fixed comparisons a second behind bounded buffers (Gedik et al. 2007, section III-B).

    arrive ──▶ buffer of each stream ──▶ join
               a row that finds its      one row after the other, in order of time;
               buffer full is dropped    each takes as long as rows of the last second did

How long rows take is known only when a batch of them has been joined. So rows are taken to cost what those of
the last second did on average, and what they cost more or less is made up for in the next.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from math import exp

import numpy as np
import pyarrow as pa

from weir.errors import QueryError
from weir_lab.virtual_machine import Delta


@dataclass(frozen=True, slots=True)
class Machine:
    """Comparisons a second, rows that each input buffer holds, and the seconds of a tick."""

    speed: float
    buffer: float = 10.0
    every: float = 0.25

    def __post_init__(self) -> None:
        if not (self.speed > 0 and self.buffer >= 1 and self.every > 0):
            raise QueryError("a machine has a speed, buffers of a row or more and ticks, all above zero")

    def start(self) -> Queue:
        """The machine at time zero, with nothing to do."""
        return Queue(self)


@dataclass
class Queue:
    """The rows in front of a join."""

    machine: Machine
    free_at: float = 0.0
    dropped: int = 0
    _row_seconds: float = 0.0
    _owed: float = 0.0
    _mean: tuple[float, float] = (0.0, 0.0)
    _waiting: deque[tuple[float, str, pa.Table, int]] = field(default_factory=deque)
    _held: dict[str, int] = field(default_factory=dict)

    def tick(self, now: float, arrived: Delta) -> Delta:
        """Let rows arrive until `now`; those that the machine has begun by then make a batch."""
        taken: dict[str, list[tuple[pa.Table, int]]] = {name: [] for name in arrived}
        for time, name, rows, place in _in_order(arrived):
            self._serve(time, taken)
            if self._held.get(name, 0) >= self.machine.buffer:
                self.dropped += 1
                continue
            self._held[name] = self._held.get(name, 0) + 1
            self._waiting.append((time, name, rows, place))
        self._serve(now, taken)
        return {name: _taken(arrived[name].schema, picked) for name, picked in taken.items()}

    def spend(self, rows: int, comparisons: float) -> None:
        """What a batch of so many rows took."""
        seconds = comparisons / self.machine.speed
        kept = exp(-self.machine.every)
        self._mean = kept * self._mean[0] + seconds, kept * self._mean[1] + rows
        self._owed += seconds - rows * self._row_seconds
        # Over one second: 1 / (1 - kept) batches.
        mean_seconds, mean_rows = self._mean
        if mean_rows:
            self._row_seconds = max(0.0, (mean_seconds + self._owed) / mean_rows)

    def stall(self, seconds: float) -> None:
        """Be busy with something else."""
        self.free_at += seconds

    def _serve(self, until: float, taken: dict[str, list[tuple[pa.Table, int]]]) -> None:
        while self._waiting and max(self.free_at, self._waiting[0][0]) < until:
            time, name, rows, place = self._waiting.popleft()
            self._held[name] -= 1
            self.free_at = max(self.free_at, time) + self._row_seconds
            taken[name].append((rows, place))


def _in_order(arrived: Delta) -> list[tuple[float, str, pa.Table, int]]:
    rows = [
        (stamp / 1e6, name, table, place)
        for name, table in arrived.items()
        for place, stamp in enumerate(table.column("ts").cast(pa.int64()).to_numpy().tolist())
    ]
    return sorted(rows, key=lambda row: row[:2])


def _taken(schema: pa.Schema, picked: list[tuple[pa.Table, int]]) -> pa.Table:
    """The rows at some places of some tables, which come one after the other."""
    parts, start = [], 0
    for end in range(1, len(picked) + 1):
        if end == len(picked) or picked[end][0] is not picked[start][0]:
            parts.append(picked[start][0].take(np.array([place for _, place in picked[start:end]])))
            start = end
    return pa.concat_tables([schema.empty_table(), *parts])
