"""Mixtures of probes and ages: harvest for more than the budget, then make as many probes as it pays for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from weir.shed.flow import compute_flow, convert_grants
from weir.shed.harvest import Harvest, allow_setting
from weir.shed.harvest_model import Direction, HarvestSetting, compute_cost, full_setting
from weir.shed.harvest_setting import find_best_setting, find_greedy_setting, improve_by_exchanges
from weir.shed.hop_network import HopNetwork, Link
from weir.shed.linear_program import solve_grants

# How many mixtures are tried between few ages with every row and all ages with few rows; fewer for many
# streams, where each try takes long.
_MIXTURES, _MIXTURES_OF_MANY, _MANY = 6, 2, 7


def mix(
    directions: Sequence[Direction], setting: HarvestSetting, budget: float, basic_window: float
) -> Harvest:
    """The best division of probes over hops that probe only the ages of a setting."""
    net = build_network(directions, setting)
    grants = solve_grants(net, budget)
    ages = allow_setting(directions, setting, basic_window)
    shares, flowing = convert_grants(net, grants).probes, compute_flow(net, grants)
    return Harvest(replace(ages, probes={**shares, **ages.probes}), flowing.results, flowing.spent)


def propose_mixtures(
    directions: Sequence[Direction], budget: float, basic_window: float, roughly: bool = False
) -> list[Harvest]:
    """Mixtures worth comparing.

    Exchanges take long: for many streams they improve only the best mixture, and `roughly` none.
    """
    is_short = roughly or len(directions) >= _MANY
    budgets = _larger_budgets(directions, budget, _MIXTURES_OF_MANY if is_short else _MIXTURES)
    find_setting = find_greedy_setting if is_short else find_best_setting
    settings = [find_setting(directions, larger) for larger in budgets]
    mixtures = [mix(directions, setting, budget, basic_window) for setting in settings]
    if mixtures and is_short and not roughly:
        i = max(range(len(mixtures)), key=lambda i: mixtures[i].results)
        better = improve_by_exchanges(directions, budgets[i], settings[i])
        mixtures.append(mix(directions, better, budget, basic_window))
    return mixtures


def _larger_budgets(directions: Sequence[Direction], budget: float, count: int) -> list[float]:
    """Budgets between the given one and the full cost, evenly spaced in their logarithms."""
    full = compute_cost(directions, full_setting(directions))
    budgets: list[float] = np.geomspace(budget, full, count + 2)[1:-1].tolist() if budget < full else []
    return budgets


def build_network(directions: Sequence[Direction], setting: HarvestSetting) -> HopNetwork:
    """The hop network of an mjoin whose hops probe only the ages of a setting."""
    links: list[Link] = []
    for direction, counts in zip(directions, setting, strict=True):
        steps = zip(direction.hops, direction.tables, counts, strict=True)
        for i, (hop, (partials, costs), count) in enumerate(steps):
            rate, sources = (0.0, (len(links) - 1,)) if i else (direction.rate, ())
            is_last = i == len(direction.hops) - 1
            links.append(Link(hop.hop, partials[count], rate, sources, None, is_last, costs[count]))
    return HopNetwork(tuple(links), (), {})
