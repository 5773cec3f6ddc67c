"""The strategies that `shed=` chooses from: skip probes, ages or rows of an mjoin to keep within a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from weir.errors import QueryError
from weir.plan.tree import Join
from weir.shed.allowance import Allowance
from weir.shed.drop import random_drop
from weir.shed.expected import ShedForecast
from weir.shed.flow import check_budget
from weir.shed.harvest import Harvest, harvest
from weir.shed.harvest_model import Direction, HarvestSetting, compute_output, full_setting
from weir.shed.harvest_setting import find_greedy_setting
from weir.shed.mixtures import mix, propose_mixtures

# For type checkers; what exists is in STRATEGIES.
ShedName = Literal["auto", "jaqpot", "harvest", "random-drop"]
_MIXED = "jaqpot and harvest"
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
    return _propose("jaqpot", mix(directions, full_setting(directions), budget, basic_window))


def shed_ages(
    directions: Sequence[Direction], budget: float, basic_window: float, setting: HarvestSetting | None = None
) -> Proposal:
    """Skip the ages that are least likely to match (Gedik et al. 2007)."""
    return _propose("harvest", harvest(directions, budget, basic_window, setting))


def shed_rows(directions: Sequence[Direction], budget: float, basic_window: float) -> Proposal:
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
    if roughly and shed in ("auto", "harvest"):
        rough = [shed_ages(directions, budget, basic_window, find_greedy_setting(directions, budget))]
        rough += [shed_probes(directions, budget, basic_window)] if shed == "auto" else []
        mixtures = propose_mixtures(directions, budget, basic_window, roughly) if mixes else []
        return _best((*rough, *(_propose(_MIXED, mixture) for mixture in mixtures)))
    best = _best(
        strategy(directions, budget, basic_window)
        for name, strategy in STRATEGIES.items()
        if shed in (name, "auto")
    )
    mixtures = propose_mixtures(directions, budget, basic_window) if mixes else []
    better = [mixture for mixture in mixtures if mixture.results > _WORTH_MIXING * best.results]
    return _best(_propose(_MIXED, mixture) for mixture in better) if better else best


def _propose(name: str, harvested: Harvest) -> Proposal:
    return Proposal(name, harvested.allowance, harvested.results)


def _best(proposals: Iterable[Proposal]) -> Proposal:
    return max(proposals, key=lambda proposal: proposal.results)
