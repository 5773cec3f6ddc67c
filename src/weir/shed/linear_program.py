"""The best division of probes there is.

It is one linear program. Of every link, the probes a second `x`: none below zero, and none above what reaches
it; together at most the budget; into every state at least what keeps it fresh; and the most results.

Where no state has to be kept fresh, nobody has to solve it. What passes a link has one way to the root, and
of two links on it the later one gives more results for what it costs: what is worth a probe is worth all that
follow. So rows are skipped at the leaves or not at all, and the most productive streams go first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from weir.plan.space import Space
from weir.plan.tree import Join
from weir.shed.flow import flow
from weir.shed.grepp import FreshnessError, Grants, check_budget, check_refresh
from weir.shed.hop_network import HopNetwork, Wiring
from weir.stats.join_graph import JoinGraph

# Sizes and allocations are solved for in turns; half-way each time, so that they do not swing.
_ROUNDS = 40
_CLOSE = 1e-4


def optimal(net: HopNetwork, budget: float, refresh: Mapping[str, float] | None = None) -> Grants:
    """The grants with the most results for states of fixed sizes; refused if no grants keep states fresh."""
    check_budget(budget)
    wanted = {state: rate for state, rate in check_refresh(net, refresh or {}).items() if rate > 0}
    return _program(net, budget, wanted) if wanted else _most_productive(net, budget)


def _most_productive(net: HopNetwork, budget: float) -> Grants:
    """The best grants without freshness: GrePP (Mukherji et al. 2011, section 4.1), link by link."""
    results, costs = [0.0] * len(net.links), [0.0] * len(net.links)
    for i in range(len(net.links) - 1, -1, -1):
        link = net.links[i]
        # What the links after it, which know it as a source, have left here: results and cost of one partial.
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


def _program(net: HopNetwork, budget: float, wanted: Mapping[str, float]) -> Grants:
    """The best grants that bring so many rows a second into some states."""
    # Not at the top: most queries never run short.
    from scipy.optimize import linprog

    # The solver's tolerances are absolute, and probes, costs and rates may be of any size: so each link's
    # probes are shares of what would reach it if nothing were skipped, and each row is made to be about 1.
    most = np.array(flow(net, [math.inf] * len(net.links)).arriving)
    scale = np.where(most > 0, most, 1.0)
    reached, arriving = np.eye(len(net.links)), np.zeros(len(net.links))
    for i, link in enumerate(net.links):
        arriving[i] = link.rate / scale[i]
        for j in link.sources:
            reached[i, j] -= net.links[j].productivity * scale[j] / scale[i]
    spent = np.array([link.cost for link in net.links]) * scale / budget
    inserted = np.zeros((len(wanted), len(net.links)))
    for row, (state, rate) in enumerate(wanted.items()):
        for i, link in enumerate(net.links):
            if link.feeds == state:
                inserted[row, i] = -link.productivity * scale[i] / rate
    gain = np.array([link.productivity if link.is_last else 0.0 for link in net.links]) * scale
    found = linprog(
        -gain / (gain.max() or 1.0),
        A_ub=np.vstack([reached, spent[None, :], inserted]),
        b_ub=np.concatenate([arriving, [1.0], -np.ones(len(wanted))]),
        method="highs",
    )
    if found.status == 2:
        raise FreshnessError(
            f"a budget of {budget:g} cannot keep the states of this plan as fresh as asked; allow older "
            "results, or give more CPU"
        )
    if not found.success:
        raise RuntimeError(f"the linear program was not solved: {found.message}")
    return tuple(np.maximum(found.x * scale, 0.0).tolist())


def steady(graph: JoinGraph, tree: Join, budget: float) -> tuple[HopNetwork, Grants]:
    """The same where a state's size follows from the allowances that feed it: a fixed point over programs.

    With windows of time, a state that is starved is small, and probing it gives little; the sizes that
    belong to a division are put into the next program until both agree. The best division met that keeps the
    states fresh once they have settled is kept.
    """
    return settled(Wiring(Space(graph), tree), budget)


def settled(
    wiring: Wiring, budget: float, refresh: Mapping[str, float] | None = None
) -> tuple[HopNetwork, Grants]:
    """The same for the links of a plan."""
    net = wiring.network()
    best: tuple[bool, float, HopNetwork, Grants] | None = None
    for _ in range(_ROUNDS):
        try:
            grants = optimal(net, budget, refresh)
        except FreshnessError:
            if best is None:
                raise
            break
        after = wiring.resized(net, flow(net, grants).inserts)
        found = flow(after, grants)
        fresh = all(found.inserts[state] >= rate * (1 - 1e-6) for state, rate in (refresh or {}).items())
        if best is None or (fresh, found.results) > (best[0], best[1] * (1 + _CLOSE)):
            best = (fresh, found.results, after, grants)
        sizes = {name: (net.sizes[name] + after.sizes[name]) / 2 for name in net.sizes}
        if all(abs(sizes[name] - net.sizes[name]) <= _CLOSE * net.sizes[name] for name in sizes):
            break
        net = wiring.network(sizes)
    assert best is not None
    return best[2], best[3]
