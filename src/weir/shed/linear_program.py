"""The grants with the most results for a budget, as one linear program.

The variables are the probes a second of each link: at least zero, and at most the rows that reach the link;
their cost is at most the budget; the inserts into every state are at least its refresh rate; the results are
the most.

Without refresh rates, GrePP solves it. What passes a link has one path to the root, and of two links on it
the later one gives more results for its cost: rows worth one probe are worth all that follow. So rows are
skipped at the leaves or not at all, and the most productive streams go first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from weir.shed.flow import check_budget, compute_flow
from weir.shed.freshness import FreshnessError, check_refresh
from weir.shed.hop_network import Grants, HopNetwork, HopNetworkBuilder

# Sizes and grants are computed in turns; sizes move half-way each time, so that they do not oscillate.
_ROUNDS = 40
_CLOSE = 1e-4


def solve_grants(net: HopNetwork, budget: float, refresh: Mapping[str, float] | None = None) -> Grants:
    """The grants with the most results for states of fixed sizes; refused if no grants keep states fresh."""
    check_budget(budget)
    rates = {state: rate for state, rate in check_refresh(net, refresh or {}).items() if rate > 0}
    return _solve_program(net, budget, rates) if rates else _grant_most_productive(net, budget)


def _grant_most_productive(net: HopNetwork, budget: float) -> Grants:
    """The best grants without freshness: GrePP (Mukherji et al. 2011, section 4.1), link by link."""
    results, costs = [0.0] * len(net.links), [0.0] * len(net.links)
    for i in range(len(net.links) - 1, -1, -1):
        link = net.links[i]
        # Later links have stored here, at their sources, the results and the cost of one partial.
        results[i] = link.productivity * (1.0 if link.is_last else results[i])
        costs[i] = link.cost + link.productivity * costs[i]
        for j in link.sources:
            results[j], costs[j] = results[i], costs[i]
    entering = [0.0] * len(net.links)
    first = [i for i, link in enumerate(net.links) if link.rate > 0 and results[i] > 0]
    for i in sorted(first, key=lambda i: results[i] / costs[i], reverse=True):
        entering[i] = min(net.links[i].rate, budget / costs[i])
        budget = max(0.0, budget - entering[i] * costs[i])
    grants: list[float] = []
    for i, link in enumerate(net.links):
        grants.append(entering[i] + sum(grants[j] * net.links[j].productivity for j in link.sources))
    return tuple(grants)


def _solve_program(net: HopNetwork, budget: float, refresh: Mapping[str, float]) -> Grants:
    # Not at the top: most queries never run short of CPU.
    from scipy.optimize import linprog

    # The solver's tolerances are absolute, and probes, costs and rates may be of any size: so each link's
    # probes are shares of the rows that would reach it if nothing were skipped, and all rows of the matrix
    # are scaled to about 1.
    most = np.array(compute_flow(net, [math.inf] * len(net.links)).arriving)
    scale = np.where(most > 0, most, 1.0)
    arriving = np.array([link.rate for link in net.links]) / scale
    reached = np.eye(len(net.links))
    for i, link in enumerate(net.links):
        for j in link.sources:
            reached[i, j] -= net.links[j].productivity * scale[j] / scale[i]
    spent = np.array([link.cost for link in net.links]) * scale / budget
    feeding = [[link.productivity * (link.feeds == state) for link in net.links] for state in refresh]
    inserts = np.array(feeding) * -scale / np.array(list(refresh.values()))[:, None]
    gain = np.array([link.productivity if link.is_last else 0.0 for link in net.links]) * scale
    solution = linprog(
        -gain / (gain.max() or 1.0),
        A_ub=np.vstack([reached, spent[None, :], inserts]),
        b_ub=np.concatenate([arriving, [1.0], -np.ones(len(refresh))]),
        method="highs",
    )
    if solution.status == 2:
        raise _infeasible(budget)
    if not solution.success:
        raise RuntimeError(f"the linear program was not solved: {solution.message}")
    return tuple(np.maximum(solution.x * scale, 0.0).tolist())


def solve_steady_grants(
    builder: HopNetworkBuilder, budget: float, refresh: Mapping[str, float] | None = None
) -> tuple[HopNetwork, Grants]:
    """The best grants where the size of a state follows from the inserts that they cause: a fixed point.

    A state with a time window shrinks when little is inserted, and then probing it gives little. So each
    round solves the program for the sizes that the grants of the last round lead to. Returns the best grants
    met, and the network with the sizes that they lead to; refused if no grants met keep states fresh then.
    """
    net = builder.network()
    best: tuple[bool, float, HopNetwork, Grants] | None = None
    for _ in range(_ROUNDS):
        try:
            grants = solve_grants(net, budget, refresh)
        except FreshnessError:
            if best is None:
                raise
            break
        after = builder.resize(net, compute_flow(net, grants).inserts)
        steady = compute_flow(after, grants)
        is_fresh = all(steady.inserts[s] >= rate * (1 - 10 * _CLOSE) for s, rate in (refresh or {}).items())
        if best is None or (is_fresh, steady.results) > (best[0], best[1] * (1 + _CLOSE)):
            best = (is_fresh, steady.results, after, grants)
        sizes = {name: (net.sizes[name] + after.sizes[name]) / 2 for name in net.sizes}
        if all(abs(sizes[name] - net.sizes[name]) <= _CLOSE * net.sizes[name] for name in sizes):
            break
        net = builder.network(sizes)
    assert best is not None
    if not best[0]:
        raise _infeasible(budget)
    return best[2], best[3]


def _infeasible(budget: float) -> FreshnessError:
    return FreshnessError(
        f"a budget of {budget:g} cannot keep the states of this plan as fresh as asked; allow older results, "
        "or give more CPU"
    )
