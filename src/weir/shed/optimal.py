"""The best division of probes there is, as one linear program.

Of every link, the probes a second `x`: none below zero, and none above what reaches it; together at most the
budget; into every state at least what keeps it fresh; and the most results.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from weir.errors import QueryError
from weir.plan import Join
from weir.shed.flow import flow
from weir.shed.network import Network, network, resized
from weir.shed.policies import Grants, check_budget
from weir.stats import JoinGraph

# Sizes and allocations are solved for in turns; half-way each time, so that they do not swing.
_ROUNDS = 40
_CLOSE = 1e-4


def optimal(net: Network, budget: float, refresh: Mapping[str, float] | None = None) -> Grants:
    """The grants with the most results for states of fixed sizes; refused if no grants keep states fresh."""
    check_budget(budget)
    # Not at the top: most queries never run short.
    from scipy.optimize import linprog

    count = len(net.links)
    reached, arriving = np.eye(count), np.zeros(count)
    for i, link in enumerate(net.links):
        arriving[i] = link.rate
        for j in link.sources:
            reached[i, j] -= net.links[j].productivity
    wanted = dict(refresh or {})
    inserted = np.zeros((len(wanted), count))
    for row, state in enumerate(wanted):
        for i, link in enumerate(net.links):
            if link.feeds == state:
                inserted[row, i] = -link.productivity
    gain = [-link.productivity if link.is_last else 0.0 for link in net.links]
    found = linprog(
        gain,
        A_ub=np.vstack([reached, [[link.cost for link in net.links]], inserted]),
        b_ub=np.concatenate([arriving, [budget], [-rate for rate in wanted.values()]]),
        method="highs",
    )
    if found.status == 2:
        raise QueryError(
            f"a budget of {budget:g} cannot keep the states of this plan as fresh as asked; allow older "
            "results, or give more CPU"
        )
    if not found.success:
        raise RuntimeError(f"the linear program was not solved: {found.message}")
    return tuple(max(0.0, float(x)) for x in found.x)


def steady(
    graph: JoinGraph,
    tree: Join,
    budget: float,
    refresh: Mapping[str, float] | None = None,
    in_seconds: bool = False,
) -> tuple[Network, Grants]:
    """The same where a state's size follows from the allowances that feed it: a fixed point over programs.

    With windows of time, a state that is starved is small, and probing it gives little; the sizes that
    belong to a division are put into the next program until both agree. The best division met is kept.
    """
    net = network(graph, tree, in_seconds=in_seconds)
    best: tuple[float, Network, Grants] | None = None
    for _ in range(_ROUNDS):
        grants = optimal(net, budget, refresh)
        settled = resized(graph, tree, net, flow(net, grants).inserts, in_seconds)
        results = flow(settled, grants).results
        if best is None or results > best[0] * (1 + _CLOSE):
            best = (results, settled, grants)
        sizes = {name: (net.sizes[name] + settled.sizes[name]) / 2 for name in net.sizes}
        if all(abs(sizes[name] - net.sizes[name]) <= _CLOSE * net.sizes[name] for name in sizes):
            break
        net = network(graph, tree, sizes, in_seconds)
    assert best is not None
    return best[1], best[2]
