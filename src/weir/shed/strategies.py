"""The strategies that `shed=` chooses from: skip probes, ages or rows of an mjoin to keep within a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from weir.errors import QueryError
from weir.plan.tree import Join
from weir.shed.allowance import Allowance
from weir.shed.drop import random_drop
from weir.shed.expected import ShedForecast
from weir.shed.flow import allowance, check_budget, flow
from weir.shed.harvest import allow_setting, harvest
from weir.shed.harvest_model import Direction, HarvestSetting, compute_cost, compute_output, full_setting
from weir.shed.harvest_setting import find_best_setting, find_greedy_setting, improve_by_exchanges
from weir.shed.hop_network import HopNetwork, Link
from weir.shed.linear_program import optimal

# For type checkers; what exists is in STRATEGIES.
ShedName = Literal["auto", "jaqpot", "harvest", "random-drop"]
# How many mixtures are tried between few ages with every row and all ages with few rows; fewer for many
# streams, where each try takes long.
_MIXTURES, _MIXTURES_OF_MANY, _MANY = 6, 2, 7
# A mixture must promise this many times the results of a single strategy.
_WORTH_MIXING = 1.01


@dataclass(frozen=True, slots=True)
class Proposal:
    """The name of a strategy, the allowance that it proposes, and the results each second expected of it."""

    name: str
    allowance: Allowance
    results: float


# Proposes the most results for the directions of an mjoin, a budget, and a basic window in seconds. The
# budget is in the unit of the directions' costs, each second, for the work that can be skipped.
Strategy = Callable[[Sequence[Direction], float, float], Proposal]


def shed_probes(directions: Sequence[Direction], budget: float, basic_window: float) -> Proposal:
    """Skip probes, those of the least productive paths first (Mukherji et al. 2011)."""
    return replace(_mix(directions, full_setting(directions), budget, basic_window), name="jaqpot")


def shed_ages(
    directions: Sequence[Direction], budget: float, basic_window: float, setting: HarvestSetting | None = None
) -> Proposal:
    """Skip the ages that are least likely to match (Gedik et al. 2007)."""
    best = harvest(directions, budget, basic_window, setting)
    return Proposal("harvest", best.allowance, best.results)


def shed_rows(directions: Sequence[Direction], budget: float, basic_window: float) -> Proposal:
    """Drop rows before the join (RandomDrop in Gedik et al. 2007)."""
    drop = random_drop(directions, budget)
    kept = float(np.prod([1 - share for share in drop.values()]))
    results = kept * compute_output(directions, full_setting(directions))
    return Proposal("random-drop", Allowance(drop=drop), results)


STRATEGIES: dict[str, Strategy] = {"jaqpot": shed_probes, "harvest": shed_ages, "random-drop": shed_rows}


def register_strategy(name: str, strategy: Strategy) -> None:
    """Add a strategy to the table: `shed=` then accepts its name, and 'auto' tries it too."""
    if name == "auto" or name in STRATEGIES:
        raise QueryError(f"there is a shedding strategy {name!r} already")
    STRATEGIES[name] = strategy


def check_shed(shed: str) -> None:
    """Refuse a strategy that does not exist."""
    names = ("auto", *STRATEGIES)
    if shed not in names:
        raise QueryError(f"shed is one of {', '.join(map(repr, names))}; got {shed!r}")


def best_within(
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
    is_mixed = shed == "auto" and forecast.lags is not None
    if roughly and shed in ("auto", "harvest"):
        rough = [shed_ages(directions, budget, basic_window, find_greedy_setting(directions, budget))]
        if shed == "auto":
            rough.append(shed_probes(directions, budget, basic_window))
        settings = _find_larger_settings(directions, budget) if is_mixed else []
        rough += [_mix(directions, setting, budget, basic_window) for setting, _ in settings]
        return max(rough, key=_results)
    proposals = [
        strategy(directions, budget, basic_window)
        for name, strategy in STRATEGIES.items()
        if shed in (name, "auto")
    ]
    best = max(proposals, key=_results)
    mixtures = _propose_mixtures(directions, budget, basic_window) if is_mixed else ()
    better = (mixture for mixture in mixtures if mixture.results > _WORTH_MIXING * best.results)
    return max(better, key=_results, default=best)


def _results(proposal: Proposal) -> float:
    return proposal.results


def _propose_mixtures(
    directions: Sequence[Direction], budget: float, basic_window: float
) -> Iterator[Proposal]:
    """Ages for more than the budget, and then as many probes as the budget pays for."""
    full = compute_cost(directions, full_setting(directions))
    if budget >= full:
        return
    if len(directions) < _MANY:
        for larger in np.geomspace(budget, full, _MIXTURES + 2)[1:-1].tolist():
            yield _mix(directions, find_best_setting(directions, larger), budget, basic_window)
        return
    # Exchanges take long for many streams, so they improve only the best mixture.
    mixtures = [
        (_mix(directions, setting, budget, basic_window), setting, larger)
        for setting, larger in _find_larger_settings(directions, budget)
    ]
    _, setting, larger = max(mixtures, key=lambda mixture: mixture[0].results)
    yield from (proposal for proposal, *_ in mixtures)
    yield _mix(directions, improve_by_exchanges(directions, larger, setting), budget, basic_window)


def _find_larger_settings(
    directions: Sequence[Direction], budget: float
) -> list[tuple[HarvestSetting, float]]:
    """Settings for more than the budget, and the budget of each."""
    full = compute_cost(directions, full_setting(directions))
    budgets = np.geomspace(budget, full, _MIXTURES_OF_MANY + 2)[1:-1].tolist() if budget < full else []
    return [(find_greedy_setting(directions, larger), larger) for larger in budgets]


def _mix(
    directions: Sequence[Direction], setting: HarvestSetting, budget: float, basic_window: float
) -> Proposal:
    """The best division of probes over hops that probe only the ages of a setting."""
    net = build_network(directions, setting)
    grants = optimal(net, budget)
    ages = allow_setting(directions, setting, basic_window)
    shares = allowance(net, grants).probes
    return Proposal(
        "jaqpot and harvest", replace(ages, probes={**shares, **ages.probes}), flow(net, grants).results
    )


def build_network(directions: Sequence[Direction], setting: HarvestSetting) -> HopNetwork:
    """The hop network of an mjoin whose hops probe only the ages of a setting."""
    links: list[Link] = []
    for direction, counts in zip(directions, setting, strict=True):
        steps = zip(direction.hops, direction.tables, counts, strict=True)
        for i, (hop, (partials, costs), count) in enumerate(steps):
            links.append(
                Link(
                    hop=hop.hop,
                    productivity=partials[count],
                    rate=0.0 if i else direction.rate,
                    sources=(len(links) - 1,) if i else (),
                    feeds=None,
                    is_last=i == len(direction.hops) - 1,
                    cost=costs[count],
                )
            )
    return HopNetwork(tuple(links), (), {})
