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
from weir.adapt.plan_estimator import PlanEstimator
from weir.adapt.recall import RecallEstimate
from weir.adapt.statistics import Statistics, iterate_steps
from weir.adapt.trial import Base
from weir.plan.default_plan import mjoin
from weir.plan.tree import Join
from weir.query.build import build_query
from weir.query.model import Query
from weir.query.options import QueryOptions
from weir.shed.allowance import Allowance
from weir.shed.thin import trim
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
    """Batches of `length` event seconds, as a join graph predicts.

    Probing takes `scale` times the modelled seconds, and `fixed` ones in each batch.
    """

    query: Query
    rates: Mapping[str, float]
    share: float = 0.002
    scale: float = 1.0
    noise: float = 0.0
    lags: LagHistograms | None = None
    length: float = 1.0
    fixed: float = 0.0
    now: float = 0.0
    batch: int = 0
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))

    @property
    def graph(self) -> JoinGraph:
        pairs = {c.streams: self.share for c in self.query.predicate.conjuncts}
        return estimate_join_graph(self.query, self.rates, pairs, TYPICAL)

    def work(self, plan: Join, allowance: Allowance | None) -> float:
        """Return the seconds that a batch would take, with noise."""
        return sum(self._split(plan, allowance)) * float(np.exp(self.rng.normal(0, self.noise)))

    def recall(self, plan: Join, allowance: Allowance | None) -> float:
        return PlanEstimator(self.query, self.graph, self.lags).estimate(plan, allowance)[0]

    def step(self, plan: Join | None = None, allowance: Allowance | None = None) -> BatchReport:
        plan = mjoin(self.query) if plan is None else plan
        stored = {
            name: 1.0 if allowance is None else 1 - allowance.drop.get(name, 0.0) for name in self.rates
        }
        rows = {
            name: int(stored[name] * self.rng.poisson(rate * self.length))
            for name, rate in self.rates.items()
        }
        held = {name: stored[name] * rate * WINDOW for name, rate in self.rates.items()}
        hops, thinned = {}, {}
        for hop, (bound, partner) in iterate_steps(plan):
            share = self.graph.selectivity(bound, partner)
            path, arriving = (hop.node, hop.driver), int(rows[bound[0]])
            # All later hops of a path see what its first hop lets through.
            admitted = thinned.setdefault(path, 1.0 if allowance is None else allowance.share(hop))
            probes = round(admitted * arriving)
            skipped = 0 if path in {(h.node, h.driver) for h in hops} else arriving - probes
            reached = np.prod([held[name] for name in partner])
            matches = int(self.rng.poisson(share * probes * reached))
            hops[hop] = HopStats(probes=probes, comparisons=10 * matches, matches=matches, skipped=skipped)
        kept, probing = (self.length * seconds for seconds in self._split(plan, allowance))
        probing += self.fixed
        noise = float(np.exp(self.rng.normal(0, self.noise)))
        before, self.now, self.batch = round(self.now * SECOND), self.now + self.length, self.batch + 1
        now = round(self.now * SECOND)
        return report(
            plan,
            allowance,
            hops,
            results=round(100 * self.length * self.recall(plan, allowance)),
            rows=rows,
            newest=dict.fromkeys(self.query.names, before) if self.batch > 1 else {},
            reached=dict.fromkeys(self.query.names, now),
            held=held,
            seconds=noise * (kept + probing) + 0.001,
            work=noise * (kept + probing),
            probing=noise * probing,
            batch_recall=_told(self.recall(plan, allowance)),
            watermark=now,
            state={name: StateSize(int(rows), int(rows) * 40, 5) for name, rows in held.items()},
            lags=None if self.lags is None else _sample_lags(self.lags),
        )

    def _split(self, plan: Join, allowance: Allowance | None) -> tuple[float, float]:
        """The seconds that are taken whatever probes the root, and those of probing it."""
        estimator = PlanEstimator(self.query, self.graph, self.lags)
        stored, exact = estimator.estimate_unskippable(plan), estimator.estimate(plan, allowance)[1]
        idle_root = trim(replace(allowance or Allowance(), sample=0.0), plan, 0.0)
        kept = estimator.estimate(plan, idle_root)[1]
        held = stored * Base(plan, allowance).stored_share(self.rates)
        return held + self.scale * (kept - stored), self.scale * (exact - kept)


def _told(recall: float) -> RecallEstimate:
    return RecallEstimate(recall, recall, recall)


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
