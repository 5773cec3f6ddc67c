"""The unit costs of the kernel on this machine, measured in a second or a few.

The model is linear in its constants: what it says of a plan with one constant at 1 and the others at 0 is how
much of that constant the plan takes. A few small joins that differ in what they take most of are run with the
real kernel, and the constants are those that explain their times best (least squares of relative errors,
none below zero). Searching, putting out and keeping state are timed apart, as their constants would else mix.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from statistics import median
from time import perf_counter, process_time

import numpy as np
import pyarrow as pa

from weir.adapt.estimate import estimate_join_graph
from weir.kernel.batch import Work, build, probe
from weir.kernel.decision import Decision
from weir.kernel.physical_plan import PhysicalPlan, compile_plan
from weir.kernel.state import State, commit
from weir.plan.cost import cost
from weir.plan.tree import Join, join
from weir.query.build import build_query
from weir.query.model import Query
from weir.query.options import QueryOptions
from weir.stats.join_graph import JoinGraph
from weir.stats.unit_costs import UnitCosts

# Of a machine of 2026 that others used too, rounded; good enough to weigh plans against each other. Matches
# come out at nothing: there are no more of them than comparisons, which explain their time.
TYPICAL = UnitCosts(
    fixed=8e-5, probe=6e-8, compare=2e-8, out=4e-9, insert=1e-7,
    visit=5e-5, gather=1.2e-5, seek=7.5e-8, cut=2.5e-4, merge=5e-8,
)  # fmt: skip

_NUMBERS = "uvwxyz"
_SCHEMA = pa.schema(
    {"ts": pa.timestamp("us"), "k": pa.int64(), "l": pa.int64(), **dict.fromkeys(_NUMBERS, pa.float64())}
)
_SECOND = 1_000_000
_STEADY = 4
# What is paid while partners are searched, while columns are put together, and while rows are stored. Nothing
# is left for `delete`: a slice that is dead is dropped as a whole, which takes no time per row.
_PHASES = (
    ("visit", "probe", "seek", "compare", "match"),
    ("fixed", "gather", "out"),
    ("cut", "insert", "merge"),
)
_FITTED = tuple(name for phase in _PHASES for name in phase)


@dataclass(frozen=True, slots=True)
class _Sample:
    """A small join of equal streams: rows a second, seconds of window, partners that a row finds per hop."""

    rate: int
    window: float
    partners: float
    inputs: tuple[str | tuple[str, ...], ...] = ("a", "b", "c")
    values: int = 1
    band: bool = False
    two_keys: bool = False
    passing: float = 1.0

    @property
    def plan(self) -> Join:
        if self.two_keys or (self.band and len(self.inputs) == 3):
            return join(*_CHAIN, orders=((1, 2), (0, 2), (1, 0)))
        return join(*(one if isinstance(one, str) else join(*one) for one in self.inputs))

    @property
    def keys(self) -> int:
        return max(2, round(self.rate * self.window / self.partners))

    def query(self) -> Query:
        names = self.plan.streams
        width = 0.5 / self.keys
        link = "abs({0}.x - {1}.x) <= " + f"{width:.9f}" if self.band else "{0}.k = {1}.k"
        conditions = [link.format(one, other) for one, other in pairwise(names)]
        if self.two_keys:
            conditions = ["a.k = b.k", "b.l = c.l"]
        if self.passing < 1:
            # The sum of two uniform numbers is below s (at most 1) with probability s² / 2.
            conditions.append(f"a.y + b.y < {(2 * self.passing) ** 0.5:.9f}")
        columns = [f"{name}.{column} AS {name}{column}" for column in _NUMBERS for name in names]
        return build_query(
            dict.fromkeys(names, _SCHEMA),
            QueryOptions(
                on=" AND ".join(conditions),
                within=f"{round(self.window * _SECOND)} us",
                select=", ".join(columns[: self.values]),
            ),
        )

    def graph(self, asked: Query, costs: UnitCosts) -> JoinGraph:
        graph = estimate_join_graph(asked, dict.fromkeys(asked.names, float(self.rate)), costs=costs)
        share, pair = 1 / self.keys, frozenset(_PAIR)
        edges = {frozenset(edge): share for edge in pairwise(asked.names)}
        if self.band:
            return replace(graph, selectivities=edges, narrowing=edges)
        if self.two_keys:
            return replace(graph, classes=edges)
        passing = {pair: self.passing} if self.passing < 1 else {}
        return replace(graph, classes={frozenset(asked.names): share}, selectivities=passing)

    def rows(self, stream: int, start: float, seconds: float) -> pa.Table:
        """The rows of one stream from a moment on."""
        count = round(self.rate * seconds)
        rng = np.random.default_rng((stream, round(start)))
        times = np.sort(rng.integers(round(start * _SECOND), round((start + seconds) * _SECOND), count))
        keys = rng.integers(0, self.keys, (2, count))
        return pa.table(
            [pa.array(times).cast(pa.timestamp("us")), *keys, *rng.random((len(_NUMBERS), count))],
            schema=_SCHEMA,
        )


_PAIR, _CHAIN = ("a", "b"), ("a", "b", "c")
_SAMPLES = (
    # Few rows: hops, slices visited and slices made; windows of which few slices come in a batch, and many.
    _Sample(60, 4.1, 1, _PAIR),
    _Sample(60, 4.1, 1, ("a", "b", "c", "d")),
    _Sample(60, 11.3, 1),
    _Sample(60, 4.1, 1, _PAIR, values=12),
    _Sample(100, 6.2, 1, (_PAIR, "c")),
    # Many rows with few partners: probes, and rows stored. New rows are sorted by the key that they probe by
    # first; by a second key or value they probe in no order, which takes several times as long.
    _Sample(5000, 4.1, 0.3, _PAIR),
    _Sample(3000, 8.3, 1.5, two_keys=True),
    _Sample(1500, 6.2, 1.5, band=True),
    # Many partners, that fail a condition, or pass it, and are put out with few columns or many.
    _Sample(1000, 4.1, 200, _PAIR, passing=0.02),
    _Sample(1000, 4.1, 60, _PAIR),
    _Sample(1000, 4.1, 60, _PAIR, values=12),
    _Sample(1000, 6.2, 60, _PAIR, band=True),
    # Joins below joins: rows rewritten.
    _Sample(300, 6.2, 1, ("a", ("b", "c"), "d")),
    _Sample(1500, 4.1, 8, (_PAIR, "c"), passing=0.1),
)


@cache
def calibrate_costs() -> UnitCosts:
    """The costs of this machine, measured once a process."""
    # Not at the top: it takes longer to import than all the rest, and most queries need no calibration.
    from scipy.optimize import nnls

    rows = [row for sample in _SAMPLES for row in _rows(sample)]
    found, _ = nnls(np.array(rows), np.ones(len(rows)))
    return UnitCosts(**dict(zip(_FITTED, found.tolist(), strict=True)))


def _rows(sample: _Sample) -> list[list[float]]:
    """How much of each constant a second of a sample's time takes: phase by phase, or all at once.

    Joins below others put columns together in order to store them, so that their phases are not apart; their
    whole time counts as much as three phases do.
    """
    asked, seconds = sample.query(), _seconds(sample)
    amounts = {name: cost(sample.graph(asked, UnitCosts(**{name: 1.0})), sample.plan).cpu for name in _FITTED}
    if len(list(sample.plan.inner())) > 1:
        return [[amounts[name] / sum(seconds) for name in _FITTED]] * len(_PHASES)
    return [
        [amounts[name] / taken if name in phase else 0.0 for name in _FITTED]
        for phase, taken in zip(_PHASES, seconds, strict=True)
    ]


def _seconds(sample: _Sample) -> list[float]:
    """CPU seconds of the phases of a batch of one second, after one that fills the windows and one to settle.

    The median batch says how much; the shortest phases say how it divides, as only the wall's clock runs per
    hop, and on a busy machine a phase is either left alone or far too long.
    """
    asked = sample.query()
    program = compile_plan(asked, sample.plan)
    state, filled = State(), sample.window + 1
    found, cpu = [], []
    for number in range(_STEADY + 2):
        start, length = (0.0, filled) if not number else (filled + number - 1, 1.0)
        rows = {name: sample.rows(i, start, length) for i, name in enumerate(asked.names)}
        started = process_time()
        state, taken = _batch(program, state, rows, number)
        cpu.append(process_time() - started)
        found.append(taken)
    shortest = [min(phase) for phase in zip(*found[2:], strict=True)]
    return [phase * median(cpu[2:]) / sum(shortest) for phase in shortest]


def _batch(
    program: PhysicalPlan, state: State, rows: Mapping[str, pa.Table], number: int
) -> tuple[State, tuple[float, float, float]]:
    """One batch, and the seconds of its three phases."""
    decision, work = Decision(program.plan, program.query.names), Work()
    clock = [perf_counter()]
    built = build(program, decision, state, rows, number, work)
    clock.append(perf_counter())
    below = sum(hop.seconds for hop in work.per_hop().values())
    for _ in probe(program, decision, built.state, number, work):
        pass
    clock.append(perf_counter())
    state = commit(program, built.state)
    clock.append(perf_counter())
    searched = sum(hop.seconds for hop in work.per_hop().values())
    put_out = clock[2] - clock[1] - (searched - below)
    return state, (searched, put_out, clock[3] - clock[0] - searched - put_out)
