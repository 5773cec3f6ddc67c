"""Run a join on the simulated machine with one shedding policy that adapts at intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from time import process_time

from weir.plan.tree import Join
from weir.shed.allowance import Allowance
from weir.shed.drop import random_drop
from weir.shed.harvest_model import compute_cost, full_setting
from weir_lab.grubjoin.learn import KEPT, Learned
from weir_lab.grubjoin.machine import Machine
from weir_lab.grubjoin.streams import WINDOW, Streams
from weir_lab.grubjoin.throttle import measured_directions, throttled_harvest, update_throttle

HARVEST, RANDOM_DROP, FROZEN = "GrubJoin", "RandomDrop", "GrubJoin, frozen"
BOOST, SAMPLE, BASIC, PERIOD = 1.2, 0.1, 2.0, 5.0


@dataclass(frozen=True, slots=True)
class Period:
    """What happened between two adaptations; `predicted` is the share of the machine that was to be used."""

    time: float
    throttle: float
    arrived: int
    consumed: int
    dropped: int
    results: int
    comparisons: int
    predicted: float
    decision_seconds: float


@dataclass(frozen=True, slots=True)
class Way:
    """How a join sheds: its name, the seconds between adaptations, and the length of basic windows.

    From `frozen_at` on the allowance stays as it is. `slowdown` is how much slower the machine is than the
    computer that takes the decisions: so many times what they take is charged, and 0 charges nothing.
    """

    name: str
    period: float = PERIOD
    basic: float = BASIC
    frozen_at: float = float("inf")
    slowdown: float = 0.0


def play(streams: Streams, machine: Machine, way: Way, seconds: float) -> Iterator[Period]:
    """Run for some virtual seconds."""
    run = _Run(streams, machine, way)
    steps = round(way.period / machine.every)
    for number in range(round(seconds / machine.every)):
        run.step(number * machine.every)
        if (number + 1) % steps == 0:
            yield run.adapt((number + 1) * machine.every)


@dataclass
class _Count:
    arrived: int = 0
    consumed: int = 0
    results: int = 0
    comparisons: int = 0
    per_stream: dict[str, int] = field(default_factory=dict)


class _Run:
    def __init__(self, streams: Streams, machine: Machine, way: Way) -> None:
        self._streams, self._machine, self._way = streams, machine, way
        self._plan: Join = streams.plan
        self._query = streams.join().start()
        self._queue = machine.start()
        self._learned = Learned(
            self._plan,
            WINDOW,
            machine.every,
            sampled=way.name != RANDOM_DROP,
            kept=KEPT ** (way.period / PERIOD),
        )
        self._throttle = 1.0
        self._predicted = 0.0
        self._count = _Count()
        self._dropped = 0
        if way.name != RANDOM_DROP:
            self._query.allow(Allowance(sample=SAMPLE))

    def step(self, start: float) -> None:
        every = self._machine.every
        arrived = self._streams.between(start, start + every)
        batch = self._queue.tick(start + every, arrived)
        rows = sum(table.num_rows for table in batch.values())
        for _ in self._query.chunks(batch):
            pass  # results are counted by the engine and let go
        stats = self._query.last_report
        assert stats is not None
        comparisons = sum(hop.comparisons for hop in stats.per_hop.values())
        self._queue.spend(rows, comparisons)
        self._learned.add(self._query)
        count = self._count
        for name, table in arrived.items():
            count.per_stream[name] = count.per_stream.get(name, 0) + table.num_rows
            count.arrived += table.num_rows
        count.consumed += rows
        count.results += stats.results
        count.comparisons += comparisons

    def adapt(self, now: float) -> Period:
        count, self._count = self._count, _Count()
        dropped, self._dropped = self._queue.dropped - self._dropped, self._queue.dropped
        self._throttle = update_throttle(self._throttle, count.consumed, count.arrived, BOOST)
        took = self._decide({name: n / self._way.period for name, n in count.per_stream.items()}, now)
        self._queue.stall(took * self._way.slowdown)
        return Period(
            now, self._throttle, count.arrived, count.consumed, dropped, count.results, count.comparisons,
            self._predicted / self._machine.speed, took,
        )  # fmt: skip

    def _decide(self, rates: dict[str, float], now: float) -> float:
        if now > self._way.frozen_at:
            return 0.0
        started = process_time()
        graph, measured = self._learned.graph(rates), self._learned.selectivities
        if self._way.name == RANDOM_DROP:
            directions = measured_directions(graph, self._plan, self._way.basic, measured=measured)
            full = compute_cost(directions, full_setting(directions))
            drop = random_drop(directions, max(self._throttle * full, 1e-6))
            self._query.allow(Allowance(drop=drop))
            self._predicted = self._throttle * full
        else:
            lags = self._learned.correlations
            best = throttled_harvest(
                graph, self._plan, self._throttle, lags, self._way.basic, SAMPLE, measured
            )
            self._query.allow(best.allowance)
            self._predicted = best.cost
        took = process_time() - started
        self._learned.age()
        return took
