"""The strategies that `shed=` chooses from: skip probes, ages or rows of an mjoin to keep within a budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from weir.errors import QueryError
from weir.plan.tree import Join
from weir.shed.allowance import Allowance
from weir.shed.drop import random_drop
from weir.shed.expected import ShedForecast
from weir.shed.flow import check_budget, compute_flow, convert_grants
from weir.shed.harvest import allow_setting, harvest
from weir.shed.harvest_model import Directions, HarvestSetting, compute_cost, compute_output, full_setting
from weir.shed.harvest_setting import find_best_setting, find_greedy_setting, improve_by_exchanges
from weir.shed.hop_network import HopNetwork, Link
from weir.shed.linear_program import solve_grants

# For type checkers; what exists is in STRATEGIES.
ShedName = Literal["auto", "jaqpot", "harvest", "random-drop"]
# A mixture must promise this many times the results of a single strategy.
_WORTH_MIXING = 1.01
# How many mixtures are tried between few ages with every row and all ages with few rows; fewer for many
# streams, where each try takes long.
_MIXTURES, _MIXTURES_OF_MANY, _MANY = 6, 2, 7


@dataclass(frozen=True, slots=True)
class Proposal:
    """The name of a strategy, the allowance that it proposes, and the results each second expected of it."""

    name: str
    allowance: Allowance
    results: float


# Proposes the most results for the directions of an mjoin, a budget, and a basic window in seconds. The
# budget is in the unit of the directions' costs, each second, for the work that can be skipped.
Strategy = Callable[[Directions, float, float], Proposal]


def shed_probes(directions: Directions, budget: float, basic_window: float) -> Proposal:
    """Skip probes, those of the least productive paths first (Mukherji et al. 2011)."""
    return replace(_mix(directions, full_setting(directions), budget, basic_window), name="jaqpot")


def shed_ages(
    directions: Directions, budget: float, basic_window: float, setting: HarvestSetting | None = None
) -> Proposal:
    """Skip the ages that are least likely to match (Gedik et al. 2007)."""
    harvested = harvest(directions, budget, basic_window, setting)
    return Proposal("harvest", harvested.allowance, harvested.results)


def shed_rows(directions: Directions, budget: float, basic_window: float) -> Proposal:
    """Drop rows before the join (RandomDrop in Gedik et al. 2007)."""
    drop = random_drop(directions, budget)
    kept = float(np.prod([1 - share for share in drop.values()]))
    results = kept * compute_output(directions, full_setting(directions))
    return Proposal("random-drop", Allowance(drop=drop), results)


STRATEGIES: dict[str, Strategy] = {"jaqpot": shed_probes, "harvest": shed_ages, "random-drop": shed_rows}


def register_strategy(name: str, strategy: Strategy) -> None:
    """Add a strategy for mjoins over time windows: `shed=` accepts its name, and 'auto' tries it too."""
    if name == "auto" or name in STRATEGIES:
        raise QueryError(f"there is a shedding strategy {name!r} already")
    STRATEGIES[name] = strategy


def check_shed(shed: str) -> None:
    """Refuse a strategy that does not exist."""
    names = ("auto", *STRATEGIES)
    if shed not in names:
        raise QueryError(f"shed is one of {', '.join(map(repr, names))}; got {shed!r}")


def choose_strategy(
    forecast: ShedForecast, plan: Join, budget: float, shed: str = "auto", roughly: bool = False
) -> Proposal:
    """What a strategy proposes for an mjoin; 'auto' takes the best of all and of mixtures of two.

    With `roughly`, searches that take long are left out.
    """
    check_shed(shed)
    check_budget(budget)
    basic_window = forecast.basic_window(plan)
    directions = forecast.directions(plan, basic_window)
    # Without lags all ages are alike, and there is nothing to mix.
    mixes = shed == "auto" and forecast.lags is not None
    mixtures = _propose_mixtures(directions, budget, basic_window, roughly) if mixes else []
    if roughly and shed in ("auto", "harvest"):
        rough = [shed_ages(directions, budget, basic_window, find_greedy_setting(directions, budget))]
        rough += [shed_probes(directions, budget, basic_window)] if shed == "auto" else []
        return _best([*rough, *mixtures])
    chosen = [strategy for name, strategy in STRATEGIES.items() if shed in (name, "auto")]
    best = _best([strategy(directions, budget, basic_window) for strategy in chosen])
    better = [mixture for mixture in mixtures if mixture.results > _WORTH_MIXING * best.results]
    return _best(better or [best])


def _best(proposals: Sequence[Proposal]) -> Proposal:
    return max(proposals, key=lambda proposal: proposal.results)


def _propose_mixtures(
    directions: Directions, budget: float, basic_window: float, roughly: bool
) -> list[Proposal]:
    """Mixtures of probes and ages: harvest for more than the budget, then make as many probes as it pays for.

    Exchanges take long: for many streams they improve only the best mixture, and `roughly` none.
    """
    full = compute_cost(directions, full_setting(directions))
    if budget >= full:
        return []
    is_short = roughly or len(directions) >= _MANY
    # Budgets between the given one and the full cost, evenly spaced in their logarithms.
    count = _MIXTURES_OF_MANY if is_short else _MIXTURES
    budgets: list[float] = np.geomspace(budget, full, count + 2)[1:-1].tolist()
    find_setting = find_greedy_setting if is_short else find_best_setting
    settings = [find_setting(directions, larger) for larger in budgets]
    mixtures = [_mix(directions, setting, budget, basic_window) for setting in settings]
    if is_short and not roughly:
        i = max(range(len(mixtures)), key=lambda i: mixtures[i].results)
        better = improve_by_exchanges(directions, budgets[i], settings[i])
        mixtures.append(_mix(directions, better, budget, basic_window))
    return mixtures


def _mix(directions: Directions, setting: HarvestSetting, budget: float, basic_window: float) -> Proposal:
    """The best division of probes over hops that probe only the ages of a setting."""
    net = build_network(directions, setting)
    grants = solve_grants(net, budget)
    ages, probes = allow_setting(directions, setting, basic_window), convert_grants(net, grants).probes
    allowance = replace(ages, probes={**probes, **ages.probes})
    return Proposal("jaqpot and harvest", allowance, compute_flow(net, grants).results)


def build_network(directions: Directions, setting: HarvestSetting) -> HopNetwork:
    """The hop network of an mjoin whose hops probe only the ages of a setting."""
    links: list[Link] = []
    for direction, counts in zip(directions, setting, strict=True):
        steps = zip(direction.hops, direction.tables, counts, strict=True)
        for i, (hop, (partials, costs), count) in enumerate(steps):
            rate, sources = (0.0, (len(links) - 1,)) if i else (direction.rate, ())
            is_last = i == len(direction.hops) - 1
            links.append(Link(hop.hop, partials[count], rate, sources, None, is_last, costs[count]))
    return HopNetwork(tuple(links), (), {})
