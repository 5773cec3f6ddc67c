"""What is skipped when it does not fit?"""

from weir.shed.ages import Ages
from weir.shed.allowance import Allowance
from weir.shed.directions import Direction, check_harvestable, directions, is_harvestable, usual_basic
from weir.shed.drop import random_drop
from weir.shed.expected import ShedForecast, expected
from weir.shed.flow import Flow, allowance, flow
from weir.shed.freshness import Cover, greedy_cover, jaqpot, least_cover, refresh_rates, tightest
from weir.shed.grepp import (
    POLICIES,
    FreshnessError,
    Unit,
    best_hjp,
    ebest_hjp,
    equal_hj,
    global_hjpr,
    grepp,
    knapsack,
    productivity_table,
    sbest_hjp,
    whole_units,
)
from weir.shed.harvest import Harvest, harvest, looking
from weir.shed.harvest_setting import brute_force, double_sided, greedy, greedy_reverse
from weir.shed.hop_network import HopNetwork, Link, Path, network
from weir.shed.linear_program import optimal, settled, steady
from weir.shed.strategies import ShedName, Strategy, best_way, best_within, check_shed
from weir.shed.throttle import throttled

__all__ = [
    "POLICIES",
    "Ages",
    "Allowance",
    "Cover",
    "Direction",
    "Flow",
    "FreshnessError",
    "Harvest",
    "HopNetwork",
    "Link",
    "Path",
    "ShedForecast",
    "ShedName",
    "Strategy",
    "Unit",
    "allowance",
    "best_hjp",
    "best_way",
    "best_within",
    "brute_force",
    "check_harvestable",
    "check_shed",
    "directions",
    "double_sided",
    "ebest_hjp",
    "equal_hj",
    "expected",
    "flow",
    "global_hjpr",
    "greedy",
    "greedy_cover",
    "greedy_reverse",
    "grepp",
    "harvest",
    "is_harvestable",
    "jaqpot",
    "knapsack",
    "least_cover",
    "looking",
    "network",
    "optimal",
    "productivity_table",
    "random_drop",
    "refresh_rates",
    "sbest_hjp",
    "settled",
    "steady",
    "throttled",
    "tightest",
    "usual_basic",
    "whole_units",
]
