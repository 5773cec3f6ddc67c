"""A simulated machine: what a controller would observe of a query, and how long its batches would take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
from tests.adapt.reports import report

from weir.adapt.batch_report import BatchReport
from weir.adapt.estimate import estimate_join_graph
from weir.adapt.plan_estimator import CostCorrection, PlanEstimator
from weir.adapt.statistics import Statistics, iterate_steps
from weir.plan.default_plan import mjoin
from weir.plan.tree import Join
from weir.query.build import build_query
from weir.query.model import Query
from weir.query.options import QueryOptions
from weir.shed.allowance import Allowance
from weir.stats.batch_counts import StateSize
from weir.stats.hop import HopStats
from weir.stats.join_graph import JoinGraph
from weir.stats.lag_histogram import LagHistogram, LagHistograms
from weir.stats.unit_costs import TYPICAL

SECOND = 1_000_000
SCHEMA = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64(), "v": pa.float64()})
WINDOW = 10.0


def asked(names: str = "abc", on: str = "{0}.v * {1}.v > 0.9") -> Query:
    chain = " AND ".join(on.format(*pair) for pair in pairwise(names))
    return build_query(dict.fromkeys(names, SCHEMA), QueryOptions(on=chain, within=f"{WINDOW:g} seconds"))


def lags_at(query: Query, middle: float, results: int = 400) -> LagHistograms:
    """Return lags of results that all lie `middle` seconds apart."""
    counts = [0.0] * 40
    counts[int((middle + WINDOW) / (2 * WINDOW) * 40)] = float(results)
    first, *others = query.names
    return LagHistograms(first, {name: LagHistogram(-WINDOW, WINDOW, tuple(counts)) for name in others})


@dataclass
class Machine:
    """Batches of one second, as a join graph predicts; probing takes `scale` times the modelled seconds."""

    query: Query
    rates: Mapping[str, float]
    share: float = 0.002
    scale: float = 1.0
    noise: float = 0.0
    lags: LagHistograms | None = None
    batch: int = 0
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))

    @property
    def graph(self) -> JoinGraph:
        pairs = {c.streams: self.share for c in self.query.predicate.conjuncts}
        return estimate_join_graph(self.query, self.rates, pairs, TYPICAL)

    def work(self, plan: Join, allowance: Allowance | None) -> float:
        estimator = PlanEstimator(self.query, self.graph, self.lags).correct(CostCorrection(self.scale))
        return estimator.estimate(plan, allowance)[1] * float(np.exp(self.rng.normal(0, self.noise)))

    def step(self, plan: Join | None = None, allowance: Allowance | None = None) -> BatchReport:
        plan = mjoin(self.query) if plan is None else plan
        rows = {name: int(self.rng.poisson(rate)) for name, rate in self.rates.items()}
        held = {name: rate * WINDOW for name, rate in self.rates.items()}
        hops = {}
        for hop, (bound, partner) in iterate_steps(plan):
            share = self.graph.selectivity(bound, partner)
            probes = int(rows[bound[0]])
            reached = np.prod([held[name] for name in partner])
            matches = int(self.rng.poisson(share * probes * reached))
            hops[hop] = HopStats(probes=probes, comparisons=10 * matches, matches=matches)
        work = self.work(plan, allowance)
        self.batch += 1
        return report(
            plan,
            allowance,
            hops,
            results=50,
            rows=rows,
            newest=dict.fromkeys(self.query.names, (self.batch - 1) * SECOND) if self.batch > 1 else {},
            reached=dict.fromkeys(self.query.names, self.batch * SECOND),
            held=held,
            seconds=work + 0.001,
            work=work,
            watermark=self.batch * SECOND,
            state={name: StateSize(int(rows), int(rows) * 40, 5) for name, rows in held.items()},
            lags=None if self.lags is None else _sample_lags(self.lags),
        )


def collect_statistics(
    machine: Machine, plan: Join, allowance: Allowance | None = None, batches: int = 6
) -> Statistics:
    """Run some batches."""
    statistics = Statistics()
    for _ in range(batches):
        statistics = statistics.after(machine.query, machine.step(plan, allowance))
    return statistics


def _sample_lags(lags: LagHistograms) -> LagHistograms:
    """Return the lags that the sample of one batch would show."""
    sampled = {n: replace(h, counts=tuple(c / 4 for c in h.counts)) for n, h in lags.lags.items()}
    return replace(lags, lags=sampled)
