"""Calibrate the unit costs of the kernel on this machine, in a few seconds.

Run small joins that differ in what dominates their cost, and fit the unit costs to their times. The cost
model is linear in the unit costs: a plan's cost with one of them at 1 and the others at 0 is the amount that
the plan takes of it. So non-negative least squares of relative errors finds them. Probing, assembling results
and storing rows are timed separately, which keeps their unit costs apart. The times of a busy machine may
not tell some unit cost; a lower limit keeps it from being called nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from statistics import median
from time import thread_time

import numpy as np
import pyarrow as pa

from weir.adapt.estimate import estimate_join_graph
from weir.kernel.batch import build, probe
from weir.kernel.decision import Decision
from weir.kernel.physical_plan import compile_plan
from weir.kernel.state import State, end_batch
from weir.plan.cost import cost
from weir.plan.tree import Join, join
from weir.query.build import build_query
from weir.query.model import Query
from weir.query.options import QueryOptions
from weir.stats.batch_counts import BatchCounts
from weir.stats.join_graph import JoinGraph
from weir.stats.unit_costs import TYPICAL, UnitCosts

_NUMBERS = "uvwxyz"
_SCHEMA = pa.schema(
    {"ts": pa.timestamp("us"), "k": pa.int64(), "l": pa.int64(), **dict.fromkeys(_NUMBERS, pa.float64())}
)
_SECOND = 1_000_000
# A sample runs this many batches after the first two; more of them make the median steadier.
_TIMED_BATCHES = 4
# Unit costs by the phase that pays them: probing, assembling results, storing rows. `delete` is in none:
# expiry drops whole slices, which takes no time per row.
_PHASES = (
    ("visit", "probe", "seek", "compare", "match"),
    ("fixed", "gather", "out"),
    ("cut", "insert", "merge"),
)
_FITTED = tuple(name for phase in _PHASES for name in phase)
# No machine is faster than the typical one by more than this factor.
_FASTEST = 30


@dataclass(frozen=True, slots=True)
class _Sample:
    """A small join of equal streams: rows per second, window in seconds, matches per probe.

    The results have `values` columns. Streams are joined by one key, by a `band`, or by `two_keys`; of the
    matches of the first two streams, the share `passing` satisfies a further condition.
    """

    rate: int
    window: float
    matches: float
    inputs: tuple[str | tuple[str, ...], ...] = ("a", "b", "c")
    values: int = 1
    band: bool = False
    two_keys: bool = False
    passing: float = 1.0

    @property
    def plan(self) -> Join:
        if self.two_keys or (self.band and len(self.inputs) == 3):
            return join(*_CHAIN, orders=((1, 2), (0, 2), (1, 0)))
        return join(*(child if isinstance(child, str) else join(*child) for child in self.inputs))

    @property
    def distinct_keys(self) -> int:
        return max(2, round(self.rate * self.window / self.matches))

    def build_query(self) -> Query:
        names = self.plan.streams
        width = 0.5 / self.distinct_keys
        link = "abs({0}.x - {1}.x) <= " + f"{width:.9f}" if self.band else "{0}.k = {1}.k"
        conditions = [link.format(*pair) for pair in pairwise(names)]
        if self.two_keys:
            conditions = ["a.k = b.k", "b.l = c.l"]
        if self.passing < 1:
            # The sum of two uniform numbers is below s (at most 1) with probability s² / 2.
            conditions.append(f"a.y + b.y < {(2 * self.passing) ** 0.5:.9f}")
        columns = [f"{name}.{column} AS {name}{column}" for column in _NUMBERS for name in names]
        on, within = " AND ".join(conditions), f"{round(self.window * _SECOND)} us"
        options = QueryOptions(on=on, within=within, select=", ".join(columns[: self.values]))
        return build_query(dict.fromkeys(names, _SCHEMA), options)

    def build_graph(self, joined: Query, costs: UnitCosts) -> JoinGraph:
        graph = estimate_join_graph(joined, dict.fromkeys(joined.names, float(self.rate)), costs=costs)
        share = 1 / self.distinct_keys
        edges = {frozenset(edge): share for edge in pairwise(joined.names)}
        if self.band:
            return replace(graph, selectivities=edges, narrowing=edges)
        if self.two_keys:
            return replace(graph, classes=edges)
        passing = {frozenset(_PAIR): self.passing} if self.passing < 1 else {}
        return replace(graph, classes={frozenset(joined.names): share}, selectivities=passing)

    def draw_rows(self, stream: int, start: float, seconds: float) -> pa.Table:
        """Draw the rows of one stream from a time on."""
        count = round(self.rate * seconds)
        rng = np.random.default_rng((stream, round(start)))
        times = np.sort(rng.integers(round(start * _SECOND), round((start + seconds) * _SECOND), count))
        keys = rng.integers(0, self.distinct_keys, (2, count))
        columns = [pa.array(times).cast(pa.timestamp("us")), *keys, *rng.random((len(_NUMBERS), count))]
        return pa.table(columns, schema=_SCHEMA)


_PAIR, _CHAIN = ("a", "b"), ("a", "b", "c")
_SAMPLES = (
    # Few rows, so that hops, slices probed and slices made dominate; short windows and long ones.
    _Sample(60, 4.1, 1, _PAIR),
    _Sample(60, 4.1, 1, ("a", "b", "c", "d")),
    _Sample(60, 11.3, 1),
    _Sample(60, 4.1, 1, _PAIR, values=12),
    _Sample(100, 6.2, 1, (_PAIR, "c")),
    # Many rows with few matches, so that probes and stored rows dominate. New rows are sorted by the key that
    # they probe first; a second key or a value they probe in random order, which takes several times as long.
    _Sample(5000, 4.1, 0.3, _PAIR),
    _Sample(100_000, 2.2, 0.3, _PAIR),
    _Sample(30_000, 2.2, 0.3),
    _Sample(3000, 8.3, 1.5, two_keys=True),
    _Sample(10_000, 3.3, 1.5, two_keys=True),
    _Sample(1500, 6.2, 1.5, band=True),
    # Many matches that fail a condition, or pass it and give results of few columns or many.
    _Sample(1000, 4.1, 200, _PAIR, passing=0.02),
    _Sample(1000, 4.1, 60, _PAIR),
    _Sample(1000, 4.1, 60, _PAIR, values=12),
    _Sample(1000, 6.2, 60, _PAIR, band=True),
    # Joins below joins, whose states are rewritten in almost every batch.
    _Sample(300, 6.2, 1, ("a", ("b", "c"), "d")),
    _Sample(1500, 4.1, 8, (_PAIR, "c"), passing=0.1),
)


@cache
def calibrate_costs() -> UnitCosts:
    """Measure the unit costs of this machine, once per process."""
    equations = []
    for sample in _SAMPLES:
        joined = sample.build_query()
        equations += _equations(sample, joined, _time_phases(sample, joined))
    return _fit(equations)


def _fit(equations: list[list[float]]) -> UnitCosts:
    """Return the unit costs with which each equation gives 1, as nearly as their lower limits let them."""
    # Not at the top: scipy takes longer to import than all else, and most queries need no calibration.
    from scipy.optimize import nnls

    amounts = np.array(equations)
    least = np.array([getattr(TYPICAL, name) for name in _FITTED]) / _FASTEST
    above, _ = nnls(amounts, 1 - amounts @ least)
    return UnitCosts(**dict(zip(_FITTED, (least + above).tolist(), strict=True)))


def _equations(sample: _Sample, joined: Query, seconds: list[float]) -> list[list[float]]:
    """Return an equation per phase: the amounts of each unit cost, divided by the phase's seconds.

    Lower joins assemble columns in order to store them, so that phases overlap. Plans with lower joins give
    one equation for the whole time, repeated so that it weighs as much as three phases.
    """
    graphs = {name: sample.build_graph(joined, UnitCosts(**{name: 1.0})) for name in _FITTED}
    amounts = {name: cost(graph, sample.plan).cpu for name, graph in graphs.items()}
    if len(list(sample.plan.inner())) > 1:
        return [[amounts[name] / sum(seconds) for name in _FITTED]] * len(_PHASES)
    return [
        [amounts[name] / phase_seconds if name in phase else 0.0 for name in _FITTED]
        for phase, phase_seconds in zip(_PHASES, seconds, strict=True)
    ]


def _time_phases(sample: _Sample, joined: Query) -> list[float]:
    """Return the CPU seconds of each phase of a one-second batch, with full windows.

    The first batch fills the windows, the second lets merges settle; of the others the median counts.
    """
    physical, decision = compile_plan(joined, sample.plan), Decision(sample.plan, joined.names)
    state, start, length = State(), 0.0, sample.window + 1
    phases = []
    for number in range(_TIMED_BATCHES + 2):
        rows = {name: sample.draw_rows(i, start, length) for i, name in enumerate(joined.names)}
        counts, started = BatchCounts(), thread_time()
        state = build(physical, decision, state, rows, number, counts)
        built_at, lower_hops = thread_time(), counts.hop_seconds
        for _ in probe(physical, decision, state, number, counts):
            pass
        probed_at, probing = thread_time(), counts.hop_seconds
        state = end_batch(physical, state)
        assembling = probed_at - built_at - (probing - lower_hops)
        phases.append((probing, assembling, thread_time() - started - probing - assembling))
        start, length = start + length, 1.0
    return [median(phase) for phase in zip(*phases[2:], strict=True)]
