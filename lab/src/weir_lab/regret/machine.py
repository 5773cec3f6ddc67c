"""The machines that run a query: a simulated one, whose seconds are charged, and the real one.

On the simulated machine the engine does all of its work, but its clock shows what was counted times unit
costs: the same rows and decisions take the same seconds everywhere. Per hop, per phase and per batch, the
controller sees charged seconds only.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from os import cpu_count
from typing import Protocol

import numpy as np
import pyarrow as pa

from weir.local.engine import LocalEngine, Memory
from weir.local.join import LocalJoin
from weir.local.query import LocalQuery
from weir.plan.tree import Join
from weir.query.model import Query
from weir.runtime.micro_batch import Batch
from weir.runtime.partition_batch import TaskReport
from weir.stats.hop import Hop, HopStats
from weir.stats.unit_costs import UnitCosts
from weir_lab.charge import charge_hop, count_inserted_rows

# About a thousand times what a row takes on a real machine, and ten times what a hop does: one row here
# stands for many.
COSTS = UnitCosts(fixed=1e-3, probe=3e-5, compare=2e-5, match=2e-5, out=1e-5, insert=4e-5)
_NOISE = 0.03


class Machine(Protocol):
    """Where queries run."""

    name: str

    def start(self, asked: LocalJoin) -> LocalQuery:
        """Start a query on it."""

    def slow_down(self, factor: float) -> AbstractContextManager[None]:
        """Let everything take this many times as long, as a neighbour on the CPU would."""


@dataclass
class SimulatedMachine:
    """A machine of stated unit costs; seconds vary by `noise`, alike in every run."""

    costs: UnitCosts = COSTS
    noise: float = _NOISE
    name: str = "simulated"
    slowdown: float = field(default=1.0, init=False)

    def start(self, asked: LocalJoin) -> LocalQuery:
        """Start a query whose engine charges its seconds."""
        query = asked.start()
        engine = _ChargedEngine(query._memory, query.query, self)
        query._engine = query._batches._engine = query._decider._placer = engine
        return query

    @contextmanager
    def slow_down(self, factor: float) -> Iterator[None]:
        """Multiply all charges."""
        self.slowdown = factor
        try:
            yield
        finally:
            self.slowdown = 1.0

    def factor(self, batch: int) -> float:
        """What the seconds of a batch are multiplied by."""
        return self.slowdown * float(np.exp(np.random.default_rng([7, batch]).normal(0.0, self.noise)))


@dataclass
class RealMachine:
    """This computer; a neighbour is a busy process for every core."""

    name: str = "real"

    def start(self, asked: LocalJoin) -> LocalQuery:
        """Start a query."""
        return asked.start()

    @contextmanager
    def slow_down(self, factor: float) -> Iterator[None]:
        """Keep all cores busy, if anything should take longer at all."""
        with ExitStack() as stack:
            for _ in range((cpu_count() or 1) if factor > 1 else 0):
                stack.enter_context(_hog())
            yield


@contextmanager
def _hog() -> Iterator[None]:
    """Keep a core busy, for a minute at most."""
    loop = "import time\nend = time.time() + 60\nwhile time.time() < end: pass"
    process = subprocess.Popen([sys.executable, "-c", loop])
    try:
        yield
    finally:
        process.kill()
        process.wait()


class _ChargedEngine(LocalEngine):
    """The engine in one process, whose clock goes on by what its batches are charged."""

    def __init__(self, memory: Memory, query: Query, machine: SimulatedMachine) -> None:
        super().__init__(memory, query)
        self._machine = machine
        self._now = self._built = 0.0

    def clock(self) -> float:
        """The seconds charged so far."""
        return self._now

    def build(self, rows: Mapping[str, pa.Table], batch: Batch) -> list[TaskReport]:
        """Build, and charge what was built."""
        self._built = self._now
        return self._charge(super().build(rows, batch), batch)

    def emit(self, batch: Batch, tasks: Sequence[TaskReport]) -> Generator[pa.Table, None, list[TaskReport]]:
        """Probe, and charge all of it once it is done."""
        reports = yield from super().emit(batch, tasks)
        return self._charge(reports, batch)

    def _charge(self, reports: Sequence[TaskReport], batch: Batch) -> list[TaskReport]:
        factor = self._machine.factor(batch.number)
        charged = [
            _charge_task(report, batch.decision.plan, self._machine.costs, factor) for report in reports
        ]
        self._now = self._built + sum(sum(report.seconds.values()) for report in charged)
        return charged


def _charge_task(report: TaskReport, decided: Join, costs: UnitCosts, factor: float) -> TaskReport:
    """The report with charged seconds in place of measured ones: of the task's phases and of its hops."""
    migration, counts = report.part.migration, report.counts
    plan = decided if migration is None else migration.plan

    hops = {hop: _charge_work(work, costs, factor) for hop, work in counts.hops.items()}
    building = {hop: _charge_work(work, costs, factor) for hop, work in counts.migration_hops.items()}
    below = {hop: work for hop, work in hops.items() if hop.node != str(plan)}
    stored = factor * costs.insert * count_inserted_rows(counts, plan)
    results = _sum(hops) - _sum(below) + factor * costs.out * counts.results
    seconds = {"migrate": _sum(building), "build": _sum(below) + stored, "probe": results}
    return replace(report, counts=replace(counts, hops=hops, migration_hops=building), seconds=seconds)


def _charge_work(work: HopStats, costs: UnitCosts, factor: float) -> HopStats:
    return replace(work, seconds=factor * charge_hop(work, costs))


def _sum(hops: Mapping[Hop, HopStats]) -> float:
    return sum(work.seconds for work in hops.values())
