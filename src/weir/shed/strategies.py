"""The strategies that `shed=` chooses from, by name: what to skip to keep a plan within a budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from weir.errors import QueryError, unknown_name
from weir.plan.tree import Join
from weir.shed.allowance import Allowance
from weir.shed.directions import is_harvestable
from weir.shed.drop import random_drop
from weir.shed.expected import ShedForecast
from weir.shed.flow import check_budget, compute_flow, convert_grants
from weir.shed.harvest import allow_setting, harvest
from weir.shed.harvest_model import HarvestSetting, compute_cost, compute_output, full_setting
from weir.shed.harvest_setting import find_best_setting, find_greedy_setting, improve_by_exchanges
from weir.shed.jaqpot import grepp
from weir.shed.linear_program import solve_grants
from weir.shed.probes import build_network, shed_as_printed, shed_by_policy, shed_evenly, shed_probes
from weir.shed.proposal import Overload, Proposal

# For type checkers; what exists is in STRATEGIES.
ShedName = Literal["auto", "thin", "jaqpot", "jaqpot-printed", "grepp", "harvest", "random-drop"]
# A mixture must promise this many times the results of a single strategy.
_WORTH_MIXING = 1.01
# How many mixtures are tried between few ages with every row and all ages with few rows; fewer for many
# streams, where each try takes long.
_MIXTURES, _MIXTURES_OF_MANY, _MANY = 6, 2, 7


@dataclass(frozen=True, slots=True)
class Strategy:
    """A way to shed: it proposes an allowance for an overload.

    One that is `mjoin_only` needs an mjoin over time windows; one that `uses_ages` gains by knowing lags.
    What is not `in_auto` is not tried by 'auto', as another strategy promises at least as much.
    """

    propose: Callable[[Overload], Proposal]
    mjoin_only: bool = False
    uses_ages: bool = False
    in_auto: bool = True


def shed_ages(overload: Overload) -> Proposal:
    """Skip the ages that are least likely to match (Gedik et al. 2007)."""
    harvested = harvest(overload.directions, overload.budget, overload.basic_window)
    return Proposal("harvest", harvested.allowance, harvested.results)


def shed_rows(overload: Overload) -> Proposal:
    """Drop rows before the join (RandomDrop in Gedik et al. 2007)."""
    directions = overload.directions
    drop = random_drop(directions, overload.budget)
    kept = float(np.prod([1 - share for share in drop.values()]))
    results = kept * compute_output(directions, full_setting(directions))
    return Proposal("random-drop", Allowance(drop=drop), results)


STRATEGIES: dict[str, Strategy] = {
    "thin": Strategy(shed_evenly, in_auto=False),
    "jaqpot": Strategy(shed_probes),
    "jaqpot-printed": Strategy(shed_as_printed, in_auto=False),
    "grepp": Strategy(shed_by_policy("grepp", grepp), in_auto=False),
    "harvest": Strategy(shed_ages, mjoin_only=True, uses_ages=True),
    "random-drop": Strategy(shed_rows, mjoin_only=True),
}


def register_strategy(name: str, strategy: Strategy) -> None:
    """Add a strategy: `shed=` accepts its name, and 'auto' tries it unless it says otherwise."""
    if name == "auto" or name in STRATEGIES:
        raise QueryError(f"there is a shedding strategy {name!r} already")
    STRATEGIES[name] = strategy


def find_strategy(shed: str) -> Strategy:
    """Return the strategy of a name, or refuse one that does not exist."""
    strategies: Mapping[str, Strategy] = {"auto": _AUTO, **STRATEGIES}
    if not isinstance(shed, str) or shed not in strategies:
        raise unknown_name("strategy", str(shed), strategies, where=" in shed=")
    return strategies[shed]


def choose_strategy(
    forecast: ShedForecast,
    plan: Join,
    budget: float,
    shed: str = "auto",
    fresh: Mapping[str, float] | None = None,
) -> Proposal:
    """What a strategy proposes for a plan; 'auto' takes the best of all and of mixtures of two."""
    strategy = find_strategy(shed)
    check_budget(budget)
    return strategy.propose(Overload(forecast, plan, budget, fresh or {}))


def _choose_best(overload: Overload) -> Proposal:
    harvestable = is_harvestable(overload.plan, overload.forecast.graph.windows)
    tried = [s for s in STRATEGIES.values() if s.in_auto and (harvestable or not s.mjoin_only)]
    best = _best([strategy.propose(overload) for strategy in tried])
    # Without lags all ages are alike, and there is nothing to mix.
    mixes = harvestable and overload.forecast.lags is not None
    mixtures = _propose_mixtures(overload) if mixes else []
    better = [mixture for mixture in mixtures if mixture.results > _WORTH_MIXING * best.results]
    return _best(better or [best])


def _best(proposals: Sequence[Proposal]) -> Proposal:
    return max(proposals, key=lambda proposal: proposal.results)


def _propose_mixtures(overload: Overload) -> list[Proposal]:
    """Mixtures of probes and ages: harvest for more than the budget, then make as many probes as it pays for.

    Exchanges take long: for many streams they improve only the best mixture.
    """
    directions, budget = overload.directions, overload.budget
    full = compute_cost(directions, full_setting(directions))
    if budget >= full:
        return []
    are_many = len(directions) >= _MANY
    # Budgets between the given one and the full cost, evenly spaced in their logarithms.
    count = _MIXTURES_OF_MANY if are_many else _MIXTURES
    budgets: list[float] = np.geomspace(budget, full, count + 2)[1:-1].tolist()
    find_setting = find_greedy_setting if are_many else find_best_setting
    settings = [find_setting(directions, larger) for larger in budgets]
    mixtures = [_mix(overload, setting) for setting in settings]
    if are_many:
        i = max(range(len(mixtures)), key=lambda i: mixtures[i].results)
        mixtures.append(_mix(overload, improve_by_exchanges(directions, budgets[i], settings[i])))
    return mixtures


def _mix(overload: Overload, setting: HarvestSetting) -> Proposal:
    """The best division of probes over hops that probe only the ages of a setting."""
    net = build_network(overload.directions, setting)
    grants = solve_grants(net, overload.budget)
    ages = allow_setting(overload.directions, setting, overload.basic_window)
    shares = convert_grants(net, grants)
    allowance = replace(ages, probes={**shares.probes, **ages.probes}, choose=shares.choose)
    return Proposal("jaqpot and harvest", allowance, compute_flow(net, grants).results)


_AUTO = Strategy(_choose_best, uses_ages=True)
