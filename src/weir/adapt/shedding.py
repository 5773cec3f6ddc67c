"""What is skipped when no plan fits the CPU: the allowance with the most results for the budget."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from weir.plan import Join, Limits, cost, is_composed, show_share
from weir.query import Query, RowWindow
from weir.shed import (
    Allowance,
    FreshnessError,
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
from weir.units import show_interval

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
    net = network(graph, plan, in_seconds=True)
    full = flow(net, [math.inf] * len(net.links))
    # What a plan whose joins have windows of their own takes beside its probes is not known.
    needed = full.spent if is_composed(plan) else cost(graph, plan).cpu
    if needed <= limits.cpu:
        return None
    # Inserting, expiring and what a hop costs however few rows come cannot be skipped.
    budget = limits.cpu - max(0.0, needed - full.spent)
    if budget < _LEAST * full.spent:
        _LOG.warning(
            "what cannot be skipped takes %s of CPU, and %s are allowed, so almost every probe is skipped",
            show_share(needed - full.spent),
            show_share(limits.cpu),
        )
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
        # Only a window that counts rows keeps old ones when it starves; others are small then, which the
        # program knows.
        refresh = {s: r for s, r in refresh_rates(graph, net, fresh).items() if s in net.counted}
        settled, grants = steady(graph, plan, budget, refresh, in_seconds=True)
    except FreshnessError:
        _LOG.warning(
            "the CPU allowed does not refresh the states of %s as fast as asked, so old results will be "
            "found and dropped; %s",
            plan,
            _loosest(fresh, tightest(graph, net, fresh, budget)),
        )
        settled, grants = steady(graph, plan, budget, in_seconds=True)
    return allowance(settled, grants), flow(settled, grants).results


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
