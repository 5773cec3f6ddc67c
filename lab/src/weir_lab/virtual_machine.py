"""A machine of a stated speed and size, simulated around the real engine.

Rows come in by virtual time, the engine processes them batch by batch, and what each batch did is charged
with virtual seconds. A machine has `cpu` seconds of work to spend each second: what it cannot process waits
in a queue, in order of arrival; a batch that has begun is finished, and what it took too long is missing from
the ticks to come. Seconds that nobody needs are lost. A plan whose rows, in states and in the queue, outgrow
the memory is stopped, as a process without memory is.

    arrive ──▶ queue ──▶ engine ──▶ results
               waits      states     charged: probes, comparisons, matches, results, inserts, deletes
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from weir.errors import QueryError
from weir.local.query import LocalQuery
from weir.plan.limits import NO_LIMITS, Limits
from weir.plan.tree import Join
from weir.stats.unit_costs import UnitCosts
from weir_lab.charge import charge, count_alive_rows, count_inserted_rows

Delta = Mapping[str, pa.Table]


@dataclass(frozen=True, slots=True)
class Tick:
    """How things stand at a virtual time; `results`, `processed` and `cpu` count from the start.

    `state` are the rows that may still join, `stored` those that the engine's slices hold, dead ones too.
    """

    seconds: float
    arrived: int
    processed: int
    queued: int
    results: int
    state: int
    stored: int
    cpu: float
    stopped: bool


@dataclass(frozen=True, slots=True)
class Machine:
    """What work costs, how many seconds of it a second has, how many rows fit, and how often it ticks."""

    costs: UnitCosts
    limits: Limits = NO_LIMITS
    every: float = 1.0

    def __post_init__(self) -> None:
        if self.every <= 0:
            raise QueryError(f"a clock needs a time between ticks above zero; got {self.every} seconds")

    def start(self, query: LocalQuery, plan: Join) -> Clock:
        """The machine at time zero, about to run a query by a plan."""
        return Clock(self, query, plan)

    def run(self, query: LocalQuery, plan: Join, feed: Iterable[Delta]) -> Iterator[Tick]:
        """One tick per delta of the feed; the last one is that in which the plan was stopped."""
        clock = self.start(query, plan)
        for delta in feed:
            tick = clock.tick(delta)
            yield tick
            if tick.stopped:
                return


class Clock:
    """A machine at work: bring the rows of each tick, see how things stand after it."""

    def __init__(self, machine: Machine, query: LocalQuery, plan: Join) -> None:
        self._machine, self._query, self._plan = machine, query, plan
        self._queue: deque[Delta] = deque()
        self._ticks = 0
        self._arrived = self._processed = self._results = self._state = self._stored = 0
        self._cpu = self._left = 0.0
        self._stopped = False

    def tick(self, arrived: Delta) -> Tick:
        """Let rows arrive and work for one tick; a stopped plan takes nothing more and does nothing."""
        if not self._stopped:
            self._ticks += 1
            self._arrived += _rows(arrived)
            self._queue.append(arrived)
            self._left = min(self._left, 0.0) + self._machine.limits.cpu * self._machine.every
            while self._queue and self._left > 0 and not self._stopped:
                self._process(self._queue.popleft())
            self._stopped = self._stopped or self._is_full()
        return self._now()

    def _process(self, delta: Delta) -> None:
        for _ in self._query.chunks(delta):
            pass  # results are counted by the engine and let go
        stats = self._query.last_report
        assert stats is not None
        alive = sum(count_alive_rows(self._query.state).values())
        inserted = count_inserted_rows(stats.counts, self._plan)
        seconds = charge(stats, inserted, self._state + inserted - alive, self._machine.costs)
        self._state, self._stored = alive, sum(size.rows for size in stats.state.values())
        self._results += stats.results
        self._processed += _rows(delta)
        self._cpu += seconds
        self._left -= seconds
        self._stopped = self._is_full()

    def _is_full(self) -> bool:
        return self._state + self._arrived - self._processed > self._machine.limits.memory

    def _now(self) -> Tick:
        return Tick(
            seconds=self._ticks * self._machine.every,
            arrived=self._arrived,
            processed=self._processed,
            queued=self._arrived - self._processed,
            results=self._results,
            state=self._state,
            stored=self._stored,
            cpu=self._cpu,
            stopped=self._stopped,
        )


def _rows(delta: Delta) -> int:
    return sum(table.num_rows for table in delta.values())
