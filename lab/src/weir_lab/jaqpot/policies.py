"""The policies that experiments compare, by name: each divides a budget of probes among hops."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from weir.errors import QueryError
from weir.plan.space import Space
from weir.plan.tree import Join
from weir.shed.allowance import Allowance
from weir.shed.flow import compute_flow, convert_grants
from weir.shed.freshness import compute_refresh_rates, find_loosening_factor, greedy_cover
from weir.shed.hop_network import Grants, HopNetwork, HopNetworkBuilder
from weir.shed.jaqpot import grepp, jaqpot
from weir.shed.linear_program import solve_grants, solve_steady_grants
from weir.stats.join_graph import JoinGraph
from weir_lab.jaqpot.rivals import POLICIES, RIVALS

GREPP, JAQPOT, LP, STEADY = "GrePP", "JAQPOT", "LP", "LP, steady"
# States of row windows keep their size whatever feeds them, so there the two programs are one.
POLICIES_COMPARED = (*RIVALS, GREPP, JAQPOT, LP)


@dataclass(frozen=True, slots=True)
class Division:
    """The share that each hop may probe with, and what that is predicted to bring.

    `loosened` is 1, or by how much freshness had to be loosened because the budget cannot hold it.
    """

    allowance: Allowance
    results: float
    probes: float
    loosened: float = 1.0


def divide(
    policy: str, graph: JoinGraph, tree: Join, budget: float, fresh: Mapping[str, float] | None = None
) -> Division:
    """What a policy makes of a budget; only JAQPOT and the program know freshness (in seconds)."""
    builder = HopNetworkBuilder(Space(graph), tree)
    if policy == STEADY:
        return _division(*solve_steady_grants(builder, budget))
    net = builder.network()
    if policy in POLICIES:
        return _division(net, POLICIES[policy](net, budget))
    if policy == LP:
        return _fresh(lambda rates: solve_grants(net, budget, rates), graph, net, budget, fresh)
    return _fresh(lambda rates: jaqpot(net, budget, rates), graph, net, budget, fresh)


def cover_share(graph: JoinGraph, net: HopNetwork, budget: float, fresh: Mapping[str, float]) -> float | None:
    """The share of a budget that JAQPOT spends on freshness; None if there is not enough."""
    try:
        cost = sum(greedy_cover(net, compute_refresh_rates(graph, net, fresh)).values())
    except QueryError:
        return None
    return cost / budget if cost <= budget else None


def _fresh(
    policy: Callable[[Mapping[str, float]], Grants],
    graph: JoinGraph,
    net: HopNetwork,
    budget: float,
    fresh: Mapping[str, float] | None,
) -> Division:
    if fresh is None:
        return _division(net, policy({}))

    def solve(looser: Mapping[str, float]) -> Grants:
        return policy(compute_refresh_rates(graph, net, looser))

    factor = find_loosening_factor(fresh, solve)
    if math.isinf(factor):
        return _division(net, grepp(net, budget), factor)
    return _division(net, solve({name: seconds * factor for name, seconds in fresh.items()}), factor)


def _division(net: HopNetwork, grants: Grants, loosened: float = 1.0) -> Division:
    flowing = compute_flow(net, grants)
    return Division(convert_grants(net, grants, "newest"), flowing.results, flowing.spent, loosened)
