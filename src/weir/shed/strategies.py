"""The ways to skip work in an mjoin for one budget: fewer probes, fewer ages, fewer rows, or mixtures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from weir.errors import QueryError
from weir.plan.tree import Join
from weir.shed.allowance import Allowance
from weir.shed.directions import Direction, Setting, cost, everything, output
from weir.shed.drop import random_drop
from weir.shed.expected import ShedForecast
from weir.shed.flow import allowance, flow
from weir.shed.grepp import check_budget
from weir.shed.harvest import best_setting, good_setting, harvested, looking
from weir.shed.harvest_setting import exchanged
from weir.shed.hop_network import HopNetwork, Link
from weir.shed.linear_program import optimal
from weir.stats.join_graph import JoinGraph
from weir.stats.lag_histogram import LagHistograms

ShedName = Literal["auto", "jaqpot", "harvest", "random-drop"]
# How many ways are tried between looking at little with every row and at everything with few.
_BETWEEN = 6
# Fewer with many streams, for which each try takes long.
_FEW, _BETWEEN_MANY = 6, 2
# A mixture must be worth it.
_BETTER = 1.01


@dataclass(frozen=True, slots=True)
class Strategy:
    """What is skipped, by what name, and the results each second that are expected of it."""

    name: str
    allowance: Allowance
    results: float


def best_way(
    graph: JoinGraph,
    plan: Join,
    budget: float,
    shed: ShedName = "auto",
    correlations: LagHistograms | None = None,
    basic: float | None = None,
) -> Strategy:
    """The way with the most results within a budget; `auto` tries all, and mixtures of probes and ages.

    The budget is in the unit of the graph's costs, each second, for what can be skipped.
    """
    return best_within(ShedForecast(graph, correlations, basic), plan, budget, shed)


def best_within(
    outlook: ShedForecast, plan: Join, budget: float, shed: ShedName = "auto", roughly: bool = False
) -> Strategy:
    """The same by what is known of a plan already; `roughly`, what takes long is left out."""
    check_shed(shed)
    check_budget(budget)
    every = outlook.basic_window(plan)
    found = outlook.directions(plan, every)
    has_lags = outlook.correlations is not None
    if roughly and shed in ("auto", "harvest"):
        by_ages = _by_ages(found, budget, every, good_setting(found, budget))
        rough = [_both(found, one, budget, every) for one, _ in _middles(found, budget)] if has_lags else []
        others = [_by_probes(found, budget, every), *rough] if shed == "auto" else []
        return max([by_ages, *others], key=_results)
    tried = [way(found, budget, every) for name, way in _WAYS.items() if shed in (name, "auto")]
    best = max(tried, key=_results)
    # As long as all ages are alike, there is nothing to mix.
    mixed = _mixed(found, budget, every) if shed == "auto" and has_lags else ()
    return max((one for one in mixed if one.results > _BETTER * best.results), key=_results, default=best)


def _results(one: Strategy) -> float:
    return one.results


def check_shed(shed: str) -> None:
    """Refuse a way that does not exist."""
    if shed not in get_args(ShedName):
        raise QueryError(f"shed is one of {', '.join(map(repr, get_args(ShedName)))}; got {shed!r}")


def _by_probes(found: Sequence[Direction], budget: float, every: float) -> Strategy:
    return replace(_both(found, everything(found), budget, every), name="jaqpot")


def _by_ages(
    found: Sequence[Direction], budget: float, every: float, setting: Setting | None = None
) -> Strategy:
    best = harvested(found, budget, every, setting)
    return Strategy("harvest", best.allowance, best.results)


def _by_rows(found: Sequence[Direction], budget: float, every: float) -> Strategy:
    drop = random_drop(found, budget)
    kept = float(np.prod([1 - share for share in drop.values()]))
    return Strategy("random-drop", Allowance(drop=drop), kept * output(found, everything(found)))


_WAYS: Mapping[str, Callable[[Sequence[Direction], float, float], Strategy]] = {
    "jaqpot": _by_probes,
    "harvest": _by_ages,
    "random-drop": _by_rows,
}


def _mixed(found: Sequence[Direction], budget: float, every: float) -> Iterator[Strategy]:
    """Ages for more than the budget, and then as many probes as it pays for."""
    full = cost(found, everything(found))
    if budget >= full:
        return
    if len(found) <= _FEW:
        for middle in np.geomspace(budget, full, _BETWEEN + 2)[1:-1].tolist():
            yield _both(found, best_setting(found, middle), budget, every)
        return
    # Exchanges take long then, so only the best mixture is made better by them.
    tried = [(_both(found, one, budget, every), one, middle) for one, middle in _middles(found, budget)]
    _, setting, middle = max(tried, key=lambda one: one[0].results)
    yield from (way for way, *_ in tried)
    yield _both(found, exchanged(found, middle, setting), budget, every)


def _middles(found: Sequence[Direction], budget: float) -> list[tuple[Setting, float]]:
    """Settings for more than the budget, and how much that is."""
    full = cost(found, everything(found))
    middles = np.geomspace(budget, full, _BETWEEN_MANY + 2)[1:-1].tolist() if budget < full else []
    return [(good_setting(found, middle), middle) for middle in middles]


def _both(found: Sequence[Direction], setting: Setting, budget: float, every: float) -> Strategy:
    """The best division of probes over hops that look at the ages of a setting."""
    net = _network(found, setting)
    grants = optimal(net, budget)
    ages = looking(found, setting, every)
    shares = allowance(net, grants).probes
    return Strategy(
        "jaqpot and harvest", replace(ages, probes={**shares, **ages.probes}), flow(net, grants).results
    )


def _network(found: Sequence[Direction], setting: Setting) -> HopNetwork:
    """The hops of an mjoin that looks at some ages only, as JAQPOT's program takes them."""
    links: list[Link] = []
    for one, taken in zip(found, setting, strict=True):
        for place, (look, (gives, takes), count) in enumerate(zip(one.looks, one.menus, taken, strict=True)):
            links.append(
                Link(
                    hop=look.hop,
                    productivity=gives[count],
                    selectivity=look.selectivity,
                    rate=0.0 if place else one.rate,
                    sources=(len(links) - 1,) if place else (),
                    feeds=None,
                    is_last=place == len(one.looks) - 1,
                    cost=takes[count],
                )
            )
    return HopNetwork(tuple(links), (), {})
