"""What an allowance is expected to give and to take, when the streams are as a graph says."""

from __future__ import annotations

from functools import cache, partial

from weir.plan.space import Space
from weir.plan.tree import Join
from weir.shed.ages import Ages
from weir.shed.allowance import Allowance
from weir.shed.directions import (
    Direction,
    HopMenu,
    Scored,
    basic_window,
    directions_in,
    is_harvestable,
    scores,
)
from weir.shed.flow import Flow, flow
from weir.shed.hop_network import HopNetwork, Wiring
from weir.stats.join_graph import JoinGraph
from weir.stats.lag_histogram import LagHistograms


def expected(
    graph: JoinGraph,
    plan: Join,
    allowance: Allowance | None = None,
    correlations: LagHistograms | None = None,
    basic: float | None = None,
) -> tuple[float, float]:
    """Results a second, and seconds a second for what can be skipped; without an allowance, those of all."""
    return ShedForecast(graph, correlations, basic).expected(plan, allowance)


class ShedForecast:
    """What plans give and take when the streams are as a graph and correlations say.

    Each answer is found once: the same few plans are asked about again and again.
    """

    def __init__(
        self, graph: JoinGraph, correlations: LagHistograms | None = None, basic: float | None = None
    ) -> None:
        self.graph, self.correlations = graph, correlations
        self._space, self._basic = Space(graph), basic
        self._scored: dict[float, Scored] = {}
        self._directions: dict[tuple[Join, float], tuple[Direction, ...]] = {}
        self._wirings: dict[Join, Wiring] = {}
        self._whole: dict[Join, tuple[float, float]] = {}

    def basic_window(self, plan: Join) -> float:
        """The length in seconds of the ranges of ages."""
        return basic_window(self.graph, plan, self._basic)

    def directions(self, plan: Join, every: float) -> tuple[Direction, ...]:
        """The directions of an mjoin, for basic windows of so many seconds."""
        if (plan, every) not in self._directions:
            # What is known of two streams does not hang on the plan.
            scored = self._scored.setdefault(
                every, cache(partial(scores, self.graph, every, self.correlations))
            )
            self._directions[plan, every] = directions_in(self._space, plan, scored)
        return self._directions[plan, every]

    def wiring(self, plan: Join) -> Wiring:
        """The links of a plan, in seconds."""
        if plan not in self._wirings:
            self._wirings[plan] = Wiring(self._space, plan, in_seconds=True)
        return self._wirings[plan]

    def whole(self, plan: Join) -> tuple[float, float]:
        """What is expected when nothing is skipped."""
        if plan not in self._whole:
            self._whole[plan] = self._found(plan, Allowance())
        return self._whole[plan]

    def expected(self, plan: Join, allowance: Allowance | None = None) -> tuple[float, float]:
        """Results a second, and seconds a second for what can be skipped; without an allowance, of all."""
        if allowance is None or not allowance.sheds:
            return self.whole(plan)
        results, spent = self._found(plan, allowance)
        if not allowance.sample or not is_harvestable(self.graph, plan):
            return results, spent
        # Sampled rows pass and look at everything.
        all_results, all_spent = self.whole(plan)
        sample = allowance.sample
        return results + sample * (all_results - results), spent + sample * (all_spent - spent)

    def _found(self, plan: Join, allowed: Allowance) -> tuple[float, float]:
        if not is_harvestable(self.graph, plan):
            through = _through(self.wiring(plan), allowed)
            return through.results, through.spent
        every = next((ages.every / 1e6 for ages in allowed.ages.values()), None)
        results = spent = 0.0
        for one in self.directions(plan, self.basic_window(plan) if every is None else every):
            partials = one.rate * (1 - allowed.drop.get(one.stream, 0.0))
            for look in one.looks:
                probes = partials * allowed.share(look.hop)
                looked, likely = _looked_at(look, allowed.ages.get(look.hop))
                there = 1 - allowed.drop.get(look.hop.partner, 0.0)
                partials = probes * likely * there * look.selectivity * look.rows
                spent += probes * looked * there * (look.search + look.compare) + partials * look.match
            results += partials
        return results, spent


def _looked_at(look: HopMenu, ages: Ages | None) -> tuple[float, float]:
    """The share of a window that is looked at, and the share of its matches that lie there."""
    if ages is None:
        return 1.0, 1.0
    kept = [k for k in ages.kept if k < len(look.scores)]
    looked, whole = len(kept) / len(look.scores), sum(look.scores)
    return looked, sum(look.scores[k] for k in kept) / whole if whole else looked


def _through(wiring: Wiring, allowed: Allowance) -> Flow:
    """Rows flow as far as their shares let them, into states that are as large as what is let in."""
    net = wiring.network()
    first = flow(net, _grants(net, allowed))
    settled = wiring.resized(net, first.inserts)
    return flow(settled, _grants(settled, allowed))


def _grants(net: HopNetwork, allowed: Allowance) -> list[float]:
    grants: list[float] = []
    for link in net.links:
        arriving = link.rate + sum(grants[i] * net.links[i].productivity for i in link.sources)
        grants.append(arriving * allowed.share(link.hop))
    return grants
