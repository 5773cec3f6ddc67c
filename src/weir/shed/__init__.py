"""What is skipped when it does not fit?"""

from weir.shed.allowance import Allowance
from weir.shed.flow import Flow, allowance, flow
from weir.shed.fresh import Cover, greedy_cover, jaqpot, least_cover, refresh_rates, tightest
from weir.shed.network import Link, Network, Path, network, resized
from weir.shed.optimal import optimal, steady
from weir.shed.policies import (
    POLICIES,
    best_hjp,
    ebest_hjp,
    equal_hj,
    global_hjpr,
    grepp,
    knapsack,
    sbest_hjp,
    whole_units,
)

__all__ = [
    "POLICIES",
    "Allowance",
    "Cover",
    "Flow",
    "Link",
    "Network",
    "Path",
    "allowance",
    "best_hjp",
    "ebest_hjp",
    "equal_hj",
    "flow",
    "global_hjpr",
    "greedy_cover",
    "grepp",
    "jaqpot",
    "knapsack",
    "least_cover",
    "network",
    "optimal",
    "refresh_rates",
    "resized",
    "sbest_hjp",
    "steady",
    "tightest",
    "whole_units",
]
