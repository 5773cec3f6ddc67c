"""GrePP (Mukherji et al. 2011, section 4.1): divide probes over a plan by the productivity of whole paths.

This is the published algorithm, to compare with; `weir.shed.linear_program` grants the same link by link.
"""

from __future__ import annotations

from weir.shed.flow import Grants, check_budget
from weir.shed.hop_network import HopNetwork


def grepp(net: HopNetwork, budget: float) -> Grants:
    """Grant probes to the most productive path first, up to the rate of its stream.

    In Mukherji et al. 2011 a path can use any budget; here the rest goes to the next path.
    """
    check_budget(budget)
    grants = [0.0] * len(net.links)
    for path in sorted(net.paths, key=lambda path: path.productivity, reverse=True):
        resources = min(budget, path.rate * path.cost) if path.productivity else 0.0
        budget -= resources
        for i, probes in zip(path.links, path.divide(resources), strict=True):
            grants[i] += probes
    return tuple(grants)
