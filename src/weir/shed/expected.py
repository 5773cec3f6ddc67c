"""Forecast the results and the cost of a plan under an allowance, from a join graph and lags."""

from __future__ import annotations

from functools import cache, partial

from weir.plan.space import Space
from weir.plan.tree import Join
from weir.shed.ages import Ages
from weir.shed.allowance import Allowance
from weir.shed.directions import build_directions, choose_basic_window, is_harvestable, score_ages
from weir.shed.flow import compute_flow
from weir.shed.harvest_model import Direction, HopHarvest
from weir.shed.hop_network import HopNetwork, HopNetworkBuilder
from weir.stats.join_graph import JoinGraph
from weir.stats.lag_histogram import LagHistograms


class ShedForecast:
    """Results and cost of plans, and the models they are computed from, for one graph and one set of lags.

    Each answer is computed once: adaptation asks about the same few plans again and again.
    """

    def __init__(
        self, graph: JoinGraph, lags: LagHistograms | None = None, basic_window: float | None = None
    ) -> None:
        self.graph, self.lags = graph, lags
        self._space, self._basic_window = Space(graph), basic_window
        # Scores of two streams do not depend on the plan.
        self._score = cache(lambda length, *pair: score_ages(graph, length, lags, *pair))
        self._directions: dict[tuple[Join, float], tuple[Direction, ...]] = {}
        # Builds the hop network of a plan, in seconds, for any sizes of its states.
        self.network_builder = cache(partial(HopNetworkBuilder, self._space, in_seconds=True))
        self._exact: dict[Join, tuple[float, float]] = {}

    def basic_window(self, plan: Join) -> float:
        """The length of basic windows in seconds."""
        return choose_basic_window(self.graph, plan, self._basic_window)

    def directions(self, plan: Join, basic_window: float | None = None) -> tuple[Direction, ...]:
        """The directions of an mjoin, for basic windows of this or of the forecast's own length."""
        length = self.basic_window(plan) if basic_window is None else basic_window
        if (plan, length) not in self._directions:
            score = partial(self._score, length)
            self._directions[plan, length] = build_directions(self._space, plan, score)
        return self._directions[plan, length]

    def estimate_exact(self, plan: Join) -> tuple[float, float]:
        """Results and cost each second when nothing is skipped."""
        if plan not in self._exact:
            self._exact[plan] = self._forecast(plan, Allowance())
        return self._exact[plan]

    def estimate(self, plan: Join, allowance: Allowance | None = None) -> tuple[float, float]:
        """Results each second, and the cost in seconds a second of the work that can be skipped."""
        if allowance is None or not allowance.sheds:
            return self.estimate_exact(plan)
        results, spent = self._forecast(plan, allowance)
        if not allowance.sample or not is_harvestable(plan, self.graph.windows):
            return results, spent
        # Sampled rows probe everything.
        all_results, all_spent = self.estimate_exact(plan)
        sample = allowance.sample
        return results + sample * (all_results - results), spent + sample * (all_spent - spent)

    def _forecast(self, plan: Join, allowed: Allowance) -> tuple[float, float]:
        if not is_harvestable(plan, self.graph.windows):
            # With the state sizes that the inserts of the allowance lead to.
            builder = self.network_builder(plan)
            net = builder.network()
            net = builder.resize(net, compute_flow(net, _grant_shares(net, allowed)).inserts)
            flow = compute_flow(net, _grant_shares(net, allowed))
            return flow.results, flow.spent
        basic_window = next((ages.every / 1e6 for ages in allowed.ages.values()), None)
        results = spent = 0.0
        for direction in self.directions(plan, basic_window):
            partials = direction.rate * (1 - allowed.drop.get(direction.stream, 0.0))
            for hop in direction.hops:
                probes = partials * allowed.share(hop.hop)
                probed, matched = _probed_shares(hop, allowed.ages.get(hop.hop))
                kept = 1 - allowed.drop.get(hop.hop.partner, 0.0)
                partials = probes * matched * kept * hop.selectivity * hop.rows
                spent += probes * probed * kept * (hop.search + hop.compare) + partials * hop.match
            results += partials
        return results, spent


def _probed_shares(hop: HopHarvest, ages: Ages | None) -> tuple[float, float]:
    """The share of a window that is probed, and the share of its matches that lie there."""
    if ages is None:
        return 1.0, 1.0
    kept = [k for k in ages.kept if k < len(hop.scores)]
    probed, total = len(kept) / len(hop.scores), sum(hop.scores)
    return probed, sum(hop.scores[k] for k in kept) / total if total else probed


def _grant_shares(net: HopNetwork, allowed: Allowance) -> list[float]:
    grants: list[float] = []
    for link in net.links:
        arriving = link.rate + sum(grants[i] * net.links[i].productivity for i in link.sources)
        grants.append(arriving * allowed.share(link.hop))
    return grants
