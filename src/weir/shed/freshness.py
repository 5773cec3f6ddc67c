"""Freshness (Mukherji et al. 2011, section 4.2): refresh rates of intermediate states, and what they cost.

A row of stream I stays in the plan for as long as it stays in its own window, and then, joined with others,
in every intermediate state above it: at most size / refresh rate each. Lemma 1: the sum of these may not be
longer than the freshness of I. Streams refresh their own windows, so only intermediate states, the *staleness
susceptible* ones, need a share of the budget. A *cover* is what paths must get to bring all those rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from weir.errors import QueryError, unknown_name
from weir.shed.hop_network import HopNetwork, InputPath
from weir.stats.join_graph import JoinGraph

# The part of the budget that each stream's path must get so that all states stay fresh.
Cover = dict[str, float]
# A cost above the budget by no more than this factor is rounding.
ROUNDING = 1 + 1e-6
# Freshness is loosened up to this factor, which is found as precisely as this ratio.
_LOOSEST, _PRECISION = 1e9, 1.05


class FreshnessError(QueryError):
    """The states of a plan cannot be kept as fresh as asked."""


def compute_refresh_rates(
    graph: JoinGraph,
    net: HopNetwork,
    fresh: Mapping[str, float],
    residences: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """Rows a second that must enter each intermediate state, for freshness in seconds per stream (lemma 1).

    A stream's slack, its freshness minus its window, is divided over the states on its path so that
    refreshing them costs the least. States with `residences`, in which rows stay for so many seconds whatever
    feeds them, use up slack and need no refreshing.
    """
    residences = residences or {}
    rates = dict.fromkeys(net.states, 0.0)
    row_costs, paths = _find_row_costs(net), {path.stream: path for path in net.paths}
    for stream, seconds in fresh.items():
        if stream not in paths:
            raise unknown_name("stream", stream, list(paths), where=" in fresh")
        window = graph.window_seconds(stream)
        if not math.isfinite(seconds) or seconds < window:
            raise QueryError(
                f"the freshness of stream '{stream}' must be at least its window of {window:g} seconds; "
                f"got {seconds:g}"
            )
        passed = paths[stream].count_inserts(1.0)
        states = [state for state in passed if state not in residences]
        slack = seconds - window - sum(residences.get(state, 0.0) for state in passed)
        if not states:
            continue
        if slack <= 0:
            raise FreshnessError(
                f"rows of stream '{stream}' stay in windows of time for {seconds - slack:g} seconds and its "
                f"freshness is {seconds:g}, so that they would have to leave the states {', '.join(states)} "
                "at once; allow a little more"
            )
        # With residence times d_j that add up to the slack, refreshing costs Σ c_j |S_j| / d_j, which is
        # least for d_j in the ratio of √(c_j |S_j|) (Lagrange), c_j the cheapest way to one more row in S_j.
        ratios = [math.sqrt(row_costs[state] * net.sizes[state]) for state in states]
        for state, ratio in zip(states, ratios, strict=True):
            weight = ratio / sum(ratios) if any(ratios) else 1 / len(ratios)
            rates[state] = max(rates[state], net.sizes[state] / (slack * weight))
    return rates


def _find_row_costs(net: HopNetwork) -> dict[str, float]:
    """The cost of one more row in each state along its cheapest path; zero where no path brings any."""
    costs = dict.fromkeys(net.states, math.inf)
    for path in net.paths:
        for state, inserts in path.count_inserts(1.0).items():
            costs[state] = min(costs[state], 1 / inserts if inserts > 0 else math.inf)
    return {state: 0.0 if math.isinf(cost) else cost for state, cost in costs.items()}


def greedy_cover(net: HopNetwork, refresh: Mapping[str, float]) -> Cover:
    """GH-WMSCP, a greedy set cover: repeatedly take the path that brings the most missing rows for its cost.

    Multiples are real numbers here (Mukherji et al. 2011, section 4.1, lets cycles be taken together): a path
    is taken until one of its states has all it needs, or its stream has no more rows.
    """
    missing = {state: rate for state, rate in check_refresh(net, refresh).items() if rate > 0}
    left = {path.stream: path.rate * path.cost for path in net.paths}
    inserts = {path.stream: path.count_inserts(1.0) for path in net.paths}
    resources = dict.fromkeys(left, 0.0)
    while missing:
        offers = [
            (sum(rows for state, rows in inserts[path.stream].items() if state in missing), path)
            for path in net.paths
            if left[path.stream] > 0
        ]
        gain, path = max(offers, key=lambda offer: offer[0], default=(0.0, None))
        if path is None or gain <= 0:
            raise _infeasible(net, refresh)
        brought = {s: rows for s, rows in inserts[path.stream].items() if s in missing and rows > 0}
        spent = min(left[path.stream], *(missing[state] / rows for state, rows in brought.items()))
        resources[path.stream] += spent
        left[path.stream] -= spent
        for state, rows in brought.items():
            missing[state] -= spent * rows
        missing = {state: rate for state, rate in missing.items() if rate > 1e-9 * refresh[state]}
    return resources


def least_cover(net: HopNetwork, refresh: Mapping[str, float]) -> Cover:
    """The cheapest cover (Mukherji et al. 2011, equations 11 and 12), as a linear program."""
    from scipy.optimize import LinearConstraint, milp

    states = [state for state, rate in check_refresh(net, refresh).items() if rate > 0]
    costs = np.array([path.cost for path in net.paths])
    # The solver's tolerances are absolute, so inserts are given as shares of the refresh rates.
    inserts = np.array([[_inserts_per_row(path, s) / refresh[s] for path in net.paths] for s in states])
    solution = milp(
        costs / (costs.max() or 1.0),
        constraints=LinearConstraint(inserts, lb=np.ones(len(states))) if states else (),
        bounds=(0, np.array([path.rate for path in net.paths])),
    )
    if not solution.success:
        raise _infeasible(net, refresh)
    rows = zip(net.paths, solution.x, costs, strict=True)
    return {path.stream: float(count * cost) for path, count, cost in rows}


def find_loosening_factor(
    fresh: Mapping[str, float], solve: Callable[[Mapping[str, float]], object]
) -> float:
    """The least factor, to a twentieth, by which freshness must be loosened for `solve` to keep it.

    `solve` raises a FreshnessError where it cannot. The factor is 1 if it can already, and infinite if no
    freshness can be kept, because some state gets no rows at all.
    """

    def suffices(factor: float) -> bool:
        try:
            solve({stream: seconds * factor for stream, seconds in fresh.items()})
        except FreshnessError:
            return False
        return True

    low, high = 1.0, 1.0
    while not suffices(high):
        low, high = high, high * 2
        if high > _LOOSEST:
            return math.inf
    while high > low * _PRECISION:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def check_refresh(net: HopNetwork, refresh: Mapping[str, float]) -> Mapping[str, float]:
    """Refuse refresh rates of unknown states, and rates that are not numbers of zero or more."""
    for state, rate in refresh.items():
        if state not in net.states:
            raise unknown_name("state", state, net.states, where=" in the refresh rates")
        if not (math.isfinite(rate) and rate >= 0):
            raise QueryError(f"the refresh rate of {state} must be zero or more rows a second; got {rate}")
    return refresh


def _inserts_per_row(path: InputPath, state: str) -> float:
    """Rows that enter a state for each row of a path's stream."""
    return path.count_inserts(path.cost).get(state, 0.0)


def _infeasible(net: HopNetwork, refresh: Mapping[str, float]) -> FreshnessError:
    """Name a state that even all rows of all streams do not refresh fast enough."""
    inserts = {s: sum(path.rate * _inserts_per_row(path, s) for path in net.paths) for s in refresh}
    state = max(refresh, key=lambda s: refresh[s] - inserts[s])
    return FreshnessError(
        f"the state {state} would need {refresh[state]:.3g} rows a second to stay fresh, and its streams "
        f"bring {inserts[state]:.3g}, whatever the CPU; allow older results"
    )
