"""What is skipped when no plan fits the CPU: the allowance with the most results for the budget."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace

from weir.plan.cost import PlanCost, cost
from weir.plan.explain import show_share
from weir.plan.limits import Limits
from weir.plan.tree import Join, is_composed
from weir.query.model import Query
from weir.query.windows import RowWindow
from weir.shed.allowance import Allowance
from weir.shed.directions import is_harvestable
from weir.shed.expected import ShedForecast
from weir.shed.flow import allowance, flow
from weir.shed.freshness import refresh_rates, tightest
from weir.shed.grepp import FreshnessError
from weir.shed.linear_program import settled
from weir.shed.strategies import ShedName, best_within
from weir.stats.join_graph import JoinGraph
from weir.stats.lag_histogram import LagHistograms
from weir.units import show_interval

# The reasons of a decision that nobody weighed, and of one that skips.
AS_ASKED = "as asked"
SHED = "the plan takes more CPU than allowed, so some probes are skipped"
# Where what cannot be skipped takes the whole budget, a little is done all the same: so much of what can be,
# and at least so much of what cannot, as skipping more than that would hardly save anything.
_LEAST, _BESIDE = 0.01, 0.1
# Enough to tell over some batches how many results are missed, for about a hundredth of the exact work.
SAMPLE = 0.01
# Where work is skipped, the sample alone tells when lags become others, so it takes this share of the budget;
# but so many rows are sampled at least.
_SAMPLE_WORK, _LEAST_SAMPLE = 0.05, 0.002


@dataclass(frozen=True, slots=True)
class Shedding:
    """An allowance, the share of all results that it is expected to give, the way it was found, and cautions.

    `cpu` are the seconds a second that the plan takes with it.
    """

    allowance: Allowance
    recall: float
    way: str
    cpu: float
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pace:
    """How many times the model's seconds it takes to probe, and what is beside it."""

    probing: float = 1.0
    beside: float = 1.0


def choose_shedding(
    query: Query, graph: JoinGraph, plan: Join, limits: Limits, shed: ShedName = "auto"
) -> Shedding | None:
    """What to skip so that a plan takes no more CPU than allowed; None if it does not take more.

    None, too, where what can be skipped is next to nothing beside what cannot.
    """
    return Weighing(query, graph).shedding(plan, limits, shed)


class Weighing:
    """What plans of a query take, all of them or with something skipped, by one graph and lags.

    What several questions about a plan hang on is found once.
    """

    def __init__(self, query: Query, graph: JoinGraph, lags: LagHistograms | None = None) -> None:
        self._query, self._graph = query, graph
        self._pace = Pace()
        self._outlook = ShedForecast(graph, lags, None if query.basic is None else query.basic / 1e6)
        self._costs: dict[Join, PlanCost] = {}

    def at(self, pace: Pace) -> Weighing:
        """The same on a machine that was measured."""
        other = copy(self)
        other._pace = pace
        return other

    def memory(self, plan: Join) -> float:
        """What the states of a plan take; nothing is known of those with windows of their own."""
        return 0.0 if is_composed(plan) else self._cost(plan).memory

    def taken(self, plan: Join, allowance: Allowance | None = None) -> tuple[float, float]:
        """The recall that an allowance is expected to give, and the seconds a second that the plan takes."""
        whole, _ = self._outlook.whole(plan)
        results, spent = self._outlook.expected(plan, allowance)
        recall = min(1.0, results / whole) if whole else 1.0
        return recall, self.rest(plan) + self._pace.probing * spent

    def is_harvestable(self, plan: Join) -> bool:
        """True for a plan whose ages can be skipped, which takes long to weigh."""
        return is_harvestable(self._graph, plan)

    def shedding(
        self, plan: Join, limits: Limits, shed: ShedName = "auto", roughly: bool = False
    ) -> Shedding | None:
        """What to skip so that a plan takes no more CPU than allowed, as the function `shedding` says.

        `roughly` is enough to compare plans of the same tree.
        """
        results, skippable = self._outlook.whole(plan)
        skippable *= self._pace.probing
        rest = self.rest(plan)
        least = max(_LEAST * skippable, _BESIDE * rest)
        budget = limits.cpu - rest
        if skippable <= max(budget, least):
            return None
        warnings = []
        if budget < least:
            warnings.append(
                f"what cannot be skipped takes {show_share(rest)} of CPU, and {show_share(limits.cpu)} are "
                "allowed, so almost every probe is skipped"
            )
            budget = least
        # The sample comes on top of the shares, so these have to leave room for it.
        sample = max(_SAMPLE_WORK * budget / skippable, _LEAST_SAMPLE)
        budget = max(budget - sample * skippable, _LEAST * skippable)
        if shed == "jaqpot" or (shed == "auto" and not is_harvestable(self._graph, plan)):
            found, kept, way = *self._by_probes(plan, budget / self._pace.probing, warnings), "jaqpot"
        else:
            best = best_within(self._outlook, plan, budget / self._pace.probing, shed, roughly)
            found, kept, way = best.allowance, best.results, best.name
        recall = min(1.0, kept / results) if results else 1.0
        found = replace(found, sample=sample)
        cpu = rest + self._pace.probing * self._outlook.expected(plan, found)[1]
        return Shedding(found, recall, way, cpu, tuple(warnings))

    def _cost(self, plan: Join) -> PlanCost:
        if plan not in self._costs:
            self._costs[plan] = cost(self._graph, plan)
        return self._costs[plan]

    def rest(self, plan: Join) -> float:
        """Seconds a second for what cannot be skipped.

        That is inserting, expiring, and what a hop costs however few rows come.
        """
        if is_composed(plan):
            # What a plan whose joins have windows of their own takes beside its probes is not known.
            return 0.0
        net = self._outlook.wiring(plan).network()
        modelled = self._cost(plan).cpu - flow(net, [math.inf] * len(net.links)).spent
        return self._pace.beside * max(0.0, modelled)

    def _by_probes(self, plan: Join, budget: float, warnings: list[str]) -> tuple[Allowance, float]:
        """The best division of probes that keeps the states as fresh as asked, and its results a second."""
        graph, wiring = self._graph, self._outlook.wiring(plan)
        net, fresh = wiring.network(), _fresh_seconds(self._query, graph)
        try:
            # Only a window that counts rows keeps old ones when it starves; others are small then, which the
            # program knows.
            refresh = {s: r for s, r in refresh_rates(graph, net, fresh).items() if s in net.counted}
            after, grants = settled(wiring, budget, refresh)
        except FreshnessError:
            warnings.append(
                f"the CPU allowed does not refresh the states of {plan} as fast as asked, so old results "
                f"will be found and dropped; {_loosest(fresh, tightest(graph, net, fresh, budget))}"
            )
            after, grants = settled(wiring, budget)
        return allowance(after, grants), flow(after, grants).results


def _loosest(fresh: Mapping[str, float], factor: float) -> str:
    """What freshness could be held, in words."""
    if math.isinf(factor):
        return "no freshness can be held by refreshing"
    held = (f"{name} {show_interval(round(factor * seconds * 1e6))}" for name, seconds in fresh.items())
    return f"it could hold {', '.join(held)}"


def _fresh_seconds(query: Query, graph: JoinGraph) -> dict[str, float]:
    """The freshness of each stream that has one beyond its window; in rows, at the stream's rate."""
    found = {}
    for name, window, fresh in zip(query.names, query.windows, query.fresh, strict=True):
        if fresh is None:
            continue
        seconds = fresh / graph.rates[name] if isinstance(window, RowWindow) else fresh / 1e6
        if seconds > graph.window_seconds(name):
            found[name] = seconds
    return found
