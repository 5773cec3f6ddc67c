"""The best division of probes there is, as one linear program.

Of every link, the probes a second `x`: none below zero, and none above what reaches it; together at most the
budget; into every state at least what keeps it fresh; and the most results.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from weir.plan import Join
from weir.shed.flow import flow
from weir.shed.network import Network, network, resized
from weir.shed.policies import FreshnessError, Grants, check_budget, check_refresh
from weir.stats import JoinGraph

# Sizes and allocations are solved for in turns; half-way each time, so that they do not swing.
_ROUNDS = 40
_CLOSE = 1e-4


def optimal(net: Network, budget: float, refresh: Mapping[str, float] | None = None) -> Grants:
    """The grants with the most results for states of fixed sizes; refused if no grants keep states fresh."""
    check_budget(budget)
    wanted = {state: rate for state, rate in check_refresh(net, refresh or {}).items() if rate > 0}
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


def steady(
    graph: JoinGraph,
    tree: Join,
    budget: float,
    refresh: Mapping[str, float] | None = None,
    in_seconds: bool = False,
) -> tuple[Network, Grants]:
    """The same where a state's size follows from the allowances that feed it: a fixed point over programs.

    With windows of time, a state that is starved is small, and probing it gives little; the sizes that
    belong to a division are put into the next program until both agree. The best division met that keeps the
    states fresh once they have settled is kept.
    """
    net = network(graph, tree, in_seconds=in_seconds)
    best: tuple[bool, float, Network, Grants] | None = None
    for _ in range(_ROUNDS):
        try:
            grants = optimal(net, budget, refresh)
        except FreshnessError:
            if best is None:
                raise
            break
        settled = resized(graph, tree, net, flow(net, grants).inserts, in_seconds)
        found = flow(settled, grants)
        fresh = all(found.inserts[state] >= rate * (1 - 1e-6) for state, rate in (refresh or {}).items())
        if best is None or (fresh, found.results) > (best[0], best[1] * (1 + _CLOSE)):
            best = (fresh, found.results, settled, grants)
        sizes = {name: (net.sizes[name] + settled.sizes[name]) / 2 for name in net.sizes}
        if all(abs(sizes[name] - net.sizes[name]) <= _CLOSE * net.sizes[name] for name in sizes):
            break
        net = network(graph, tree, sizes, in_seconds)
    assert best is not None
    return best[2], best[3]
