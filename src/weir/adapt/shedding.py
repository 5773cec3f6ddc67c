"""What is skipped when no plan fits the CPU: the allowance with the most results for the budget."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace

from weir.errors import QueryError
from weir.plan import Join, Limits, cost
from weir.query import Query, RowWindow
from weir.shed import (
    Allowance,
    Network,
    Shed,
    allowance,
    best_way,
    flow,
    is_harvestable,
    network,
    refresh_rates,
    steady,
    tightest,
)
from weir.stats import JoinGraph

# The reason of a decision that skips.
SHED = "the plan takes more CPU than allowed, so some probes are skipped"
_LOG = logging.getLogger("weir")
# Where what cannot be skipped takes the whole budget, a little is done all the same.
_LEAST = 0.01
# Enough to tell over some batches how many results are missed, for about a hundredth of the exact work.
_SAMPLE = 0.01


@dataclass(frozen=True, slots=True)
class Shedding:
    """An allowance, the share of all results that it is expected to give, and the way it was found."""

    allowance: Allowance
    recall: float
    way: str


def shedding(
    query: Query, graph: JoinGraph, plan: Join, limits: Limits, shed: Shed = "auto"
) -> Shedding | None:
    """What to skip so that a plan takes no more CPU than allowed; None if it does not take more."""
    needed = cost(graph, plan).cpu
    if needed <= limits.cpu:
        return None
    net = network(graph, plan, in_seconds=True)
    full = flow(net, [math.inf] * len(net.links))
    # Inserting, expiring and what a hop costs however few rows come cannot be skipped.
    budget = limits.cpu - max(0.0, needed - full.spent)
    if budget < _LEAST * full.spent:
        _LOG.warning("what cannot be skipped alone takes the CPU allowed, so almost every probe is skipped")
        budget = _LEAST * full.spent
    # The sample comes on top of the shares, so these have to leave room for it.
    budget = max(budget - _SAMPLE * full.spent, _LEAST * full.spent)
    if shed == "jaqpot" or (shed == "auto" and not is_harvestable(graph, plan)):
        found, results = _by_probes(query, graph, plan, net, budget)
        way = "jaqpot"
    else:
        basic = None if query.basic is None else query.basic / 1e6
        best = best_way(graph, plan, budget, shed, basic=basic)
        found, results, way = best.allowance, best.results, best.name
    return Shedding(replace(found, sample=_SAMPLE), results / full.results if full.results else 1.0, way)


def _by_probes(
    query: Query, graph: JoinGraph, plan: Join, net: Network, budget: float
) -> tuple[Allowance, float]:
    """The best division of probes that keeps the states as fresh as asked, and its results a second."""
    fresh = _fresh_seconds(query, graph)
    try:
        settled, grants = steady(graph, plan, budget, refresh_rates(graph, net, fresh), in_seconds=True)
    except QueryError as error:
        factor = tightest(graph, net, fresh, budget)
        loosest = (
            "no freshness can" if math.isinf(factor) else f"{factor:.2f} times the freshness asked for could"
        )
        _LOG.warning("%s (%s be kept by refreshing; old results are dropped)", error, loosest)
        settled, grants = steady(graph, plan, budget, in_seconds=True)
    return allowance(settled, grants), flow(settled, grants).results


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
