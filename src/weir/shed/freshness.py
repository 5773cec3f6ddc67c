"""Freshness (Mukherji et al. 2011, section 4.2): refresh rates of intermediate states, and their cost.

A row of stream I stays in the plan for as long as it stays in its own window, and then, joined with others,
in every intermediate state above it: at most size / refresh rate each. Lemma 1: the sum of these may not be
longer than the freshness of I. Streams' own windows are refreshed by their streams, so only intermediate
states, the *staleness susceptible* ones, need a share of the budget.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weir.errors import QueryError, unknown
from weir.shed.grepp import FreshnessError, Grants, check_budget, check_refresh, grepp
from weir.shed.hop_network import HopNetwork, Path
from weir.stats.join_graph import JoinGraph

# What exceeds a budget by less is rounding.
_HAIR = 1 + 1e-6


@dataclass(frozen=True, slots=True)
class Cover:
    """What each stream's path must get so that all states stay fresh."""

    resources: Mapping[str, float]

    @property
    def cost(self) -> float:
        """What that costs in all."""
        return sum(self.resources.values())

    def grants(self, net: HopNetwork) -> list[float]:
        """The same, link by link."""
        grants = [0.0] * len(net.links)
        for path in net.paths:
            for i, probes in zip(path.links, path.divided(self.resources.get(path.stream, 0.0)), strict=True):
                grants[i] += probes
        return grants


def refresh_rates(graph: JoinGraph, net: HopNetwork, fresh: Mapping[str, float]) -> dict[str, float]:
    """Rows a second that must enter each intermediate state, for freshness in seconds per stream (lemma 1).

    What a stream's freshness leaves beside its window is divided over the states on its path so that
    refreshing them costs the least.
    """
    rates = dict.fromkeys(net.states, 0.0)
    cheapest = _cheapest(net)
    for stream, seconds in fresh.items():
        path = _path(net, stream)
        window = graph.window_seconds(stream)
        slack = seconds - window
        if not math.isfinite(seconds) or slack < 0:
            raise QueryError(
                f"the freshness of stream '{stream}' must be at least its window of {window:g} seconds; "
                f"got {seconds:g}"
            )
        states = [state for state in path.feeds if state is not None]
        if not states:
            continue
        if not slack:
            raise FreshnessError(
                f"the freshness of stream '{stream}' equals its window, so that its rows would have to leave "
                f"the states {', '.join(states)} at once; allow a little more"
            )
        costs = [cheapest[state] * net.sizes[state] for state in states]
        for state, weight in zip(states, _weights(costs), strict=True):
            rates[state] = max(rates[state], net.sizes[state] / (slack * weight))
    return rates


def _weights(costs: Sequence[float]) -> list[float]:
    """The share of a path's slack that each of its states gets, for what one refill of each costs.

    With residence times d_j that add up to the slack, refreshing costs Σ c_j |S_j| / d_j, which is least for
    d_j in the ratio of √(c_j |S_j|) (Lagrange), c_j the cheapest way to one row more in S_j.
    """
    whole = sum(map(math.sqrt, costs))
    return [math.sqrt(cost) / whole if whole else 1 / len(costs) for cost in costs]


def _cheapest(net: HopNetwork) -> dict[str, float]:
    """What one row more in each state costs along the best path; nothing where no path brings any."""
    found = dict.fromkeys(net.states, math.inf)
    for path in net.paths:
        for state, entered in path.inserted(1.0).items():
            found[state] = min(found[state], 1 / entered if entered > 0 else math.inf)
    return {state: 0.0 if math.isinf(cost) else cost for state, cost in found.items()}


def greedy_cover(net: HopNetwork, refresh: Mapping[str, float]) -> Cover:
    """GH-WMSCP: again and again the path that brings the most rows still wanted for its probes.

    Multiples are real numbers here (Mukherji et al. 2011, section 4.1, lets cycles be taken together): a path
    is taken until one of its states has all it needs, or its stream has no more rows.
    """
    wanted = {state: rate for state, rate in check_refresh(net, refresh).items() if rate > 0}
    room = {path.stream: path.rate * path.cost for path in net.paths}
    brings = {path.stream: path.inserted(1.0) for path in net.paths}
    probes = dict.fromkeys(room, 0.0)
    while wanted:
        offers = [
            (sum(rows for state, rows in brings[path.stream].items() if state in wanted), path)
            for path in net.paths
            if room[path.stream] > 0
        ]
        gain, path = max(offers, key=lambda offer: offer[0], default=(0.0, None))
        if path is None or gain <= 0:
            raise _infeasible(net, refresh)
        entered = {s: rows for s, rows in brings[path.stream].items() if s in wanted and rows > 0}
        taken = min(room[path.stream], *(wanted[state] / rows for state, rows in entered.items()))
        probes[path.stream] += taken
        room[path.stream] -= taken
        for state, rows in entered.items():
            wanted[state] -= taken * rows
        wanted = {state: rate for state, rate in wanted.items() if rate > 1e-9 * refresh[state]}
    return Cover(probes)


def least_cover(net: HopNetwork, refresh: Mapping[str, float]) -> Cover:
    """The cheapest cover (Mukherji et al. 2011, equations 11 and 12), as a linear program."""
    from scipy.optimize import LinearConstraint, milp

    states = [state for state, rate in check_refresh(net, refresh).items() if rate > 0]
    costs = np.array([path.cost for path in net.paths])
    # The solver's tolerances are absolute: what enters is told as a share of what is wanted.
    entered = np.array([[_entered(path, state) / refresh[state] for path in net.paths] for state in states])
    found = milp(
        costs / (costs.max() or 1.0),
        constraints=LinearConstraint(entered, lb=np.ones(len(states))) if states else (),
        bounds=(0, np.array([path.rate for path in net.paths])),
    )
    if not found.success:
        raise _infeasible(net, refresh)
    return Cover({path.stream: float(x * c) for path, x, c in zip(net.paths, found.x, costs, strict=True)})


def jaqpot(net: HopNetwork, budget: float, refresh: Mapping[str, float]) -> Grants:
    """Algorithm 1 of Mukherji et al. 2011: the cover first, GrePP with the rest.

    Where the greedy cover is too dear, the least one is tried; Mukherji et al. 2011 give up.
    """
    check_budget(budget)
    cover = greedy_cover(net, refresh)
    if cover.cost > budget:
        cover = least_cover(net, refresh)
    if cover.cost > budget * _HAIR:
        raise FreshnessError(
            f"keeping this plan as fresh as asked takes {cover.cost:g}; the budget is {budget:g}, and "
            "weir.shed.tightest tells what it can hold"
        )
    grants = cover.grants(net)
    left = budget - cover.cost
    if left <= 0:
        return tuple(grants)
    more = grepp(net.without(cover.resources), left)
    return tuple(one + other for one, other in zip(grants, more, strict=True))


def tightest(graph: JoinGraph, net: HopNetwork, fresh: Mapping[str, float], budget: float) -> float:
    """The least factor by which all freshness must be loosened so that the budget can hold it; 1 if it does.

    Infinite if no freshness can be held, because some state gets no rows at all.
    """
    check_budget(budget)

    def holds(factor: float) -> bool:
        looser = {stream: seconds * factor for stream, seconds in fresh.items()}
        try:
            return least_cover(net, refresh_rates(graph, net, looser)).cost <= budget * _HAIR
        except FreshnessError:
            return False

    if holds(1.0):
        return 1.0
    low, high = 1.0, 2.0
    while not holds(high):
        low, high = high, high * 2
        if high > 1e9:
            return math.inf
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _entered(path: Path, state: str) -> float:
    """Rows that enter a state for each row of a path's stream."""
    return path.inserted(path.cost).get(state, 0.0)


def _path(net: HopNetwork, stream: str) -> Path:
    for path in net.paths:
        if path.stream == stream:
            return path
    raise unknown("stream", stream, [path.stream for path in net.paths], where=" in fresh")


def _infeasible(net: HopNetwork, refresh: Mapping[str, float]) -> FreshnessError:
    """Name a state that even all rows of all streams do not refresh fast enough."""
    brought = {s: sum(path.rate * _entered(path, s) for path in net.paths) for s in refresh}
    state = max(refresh, key=lambda s: refresh[s] - brought[s])
    return FreshnessError(
        f"the state {state} would need {refresh[state]:.3g} rows a second to stay fresh, and its streams "
        f"bring {brought[state]:.3g}, whatever the CPU; allow older results"
    )
