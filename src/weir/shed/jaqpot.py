"""GrePP and JAQPOT as published (Mukherji et al. 2011, section 4.1 and algorithm 1).

GrePP divides probes over a plan by the productivity of whole paths; `weir.shed.linear_program` grants the
same link by link. JAQPOT keeps states fresh first, then divides the rest by GrePP: `shed='jaqpot-printed'`;
`shed='jaqpot'` solves the linear program instead.
"""

from __future__ import annotations

from collections.abc import Mapping

from weir.shed.flow import check_budget
from weir.shed.freshness import ROUNDING, Cover, FreshnessError, greedy_cover, least_cover
from weir.shed.hop_network import Grants, HopNetwork


def grepp(net: HopNetwork, budget: float) -> Grants:
    """Grant probes to the most productive path first, up to the rate of its stream.

    In Mukherji et al. 2011 a path can use any budget; here the rest goes to the next path.
    """
    check_budget(budget)
    resources = {}
    for path in sorted(net.paths, key=lambda path: path.productivity, reverse=True):
        resources[path.stream] = min(budget, path.rate * path.cost) if path.productivity else 0.0
        budget -= resources[path.stream]
    return net.divide(resources)


def jaqpot_printed(net: HopNetwork, budget: float, refresh: Mapping[str, float]) -> Grants:
    """Pay for the greedy cover of the refresh rates; GrePP gets the rest of the budget (algorithm 1).

    Line 3 of the algorithm overwrites what line 1 assigned; here, as in the text, GrePP's grants are added to
    the cover's. Refused if the greedy cover exceeds the budget, even if another one would not.
    """
    check_budget(budget)
    return _add_grepp(net, budget, greedy_cover(net, refresh))


def jaqpot(net: HopNetwork, budget: float, refresh: Mapping[str, float]) -> Grants:
    """JAQPOT; where the greedy cover exceeds the budget, with the least one."""
    check_budget(budget)
    cover = greedy_cover(net, refresh)
    if sum(cover.values()) > budget:
        cover = least_cover(net, refresh)
    return _add_grepp(net, budget, cover)


def _add_grepp(net: HopNetwork, budget: float, cover: Cover) -> Grants:
    cost = sum(cover.values())
    if cost > budget * ROUNDING:
        raise FreshnessError(
            f"keeping this plan as fresh as asked costs {cost:g} and the budget is {budget:g}; "
            "allow older results, or give more CPU"
        )
    grants, left = net.divide(cover), budget - cost
    if left <= 0:
        return grants
    more = grepp(net.subtract(cover), left)
    return tuple(covering + added for covering, added in zip(grants, more, strict=True))
