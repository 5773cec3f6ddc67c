"""JAQPOT (Mukherji et al. 2011, algorithm 1): keep states fresh first, then divide the rest by GrePP.

This is the published algorithm, to compare with; `shed='jaqpot'` solves `weir.shed.linear_program` instead.
"""

from __future__ import annotations

from collections.abc import Mapping

from weir.shed.flow import Grants, check_budget
from weir.shed.freshness import ROUNDING, FreshnessError, greedy_cover, least_cover
from weir.shed.grepp import grepp
from weir.shed.hop_network import HopNetwork


def jaqpot(net: HopNetwork, budget: float, refresh: Mapping[str, float]) -> Grants:
    """Pay for the greedy cover of the refresh rates; GrePP gets the rest of the budget.

    If the greedy cover exceeds the budget, the least one is tried, where Mukherji et al. 2011 give up.
    """
    check_budget(budget)
    cover = greedy_cover(net, refresh)
    if cover.cost > budget:
        cover = least_cover(net, refresh)
    if cover.cost > budget * ROUNDING:
        raise FreshnessError(
            f"keeping this plan as fresh as asked costs {cover.cost:g} and the budget is {budget:g}; "
            "allow older results, or give more CPU"
        )
    grants = cover.grants(net)
    left = budget - cover.cost
    if left <= 0:
        return tuple(grants)
    more = grepp(net.subtract(cover.resources), left)
    return tuple(covering + added for covering, added in zip(grants, more, strict=True))
