"""How scarce probes are divided over the hops of a plan.

Each policy takes a network and a budget, and grants every link some probes a second. The
first four are the rivals of 000 (table 4), which look at one half-way join at a time; the others look at
whole paths.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from weir.errors import QueryError
from weir.shed.network import Network

Grants = tuple[float, ...]
Policy = Callable[[Network, float], Grants]


def equal_hj(net: Network, budget: float) -> Grants:
    """Equally among half-way joins."""
    check_budget(budget)
    return tuple(budget / len(net.links) / link.cost for link in net.links)


def global_hjpr(net: Network, budget: float) -> Grants:
    """Among half-way joins in the ratio of their productivities."""
    check_budget(budget)
    whole = sum(link.productivity for link in net.links)
    return tuple(budget * link.productivity / whole / link.cost if whole else 0.0 for link in net.links)


def ebest_hjp(net: Network, budget: float) -> Grants:
    """Equally among joins; within a join the most productive half-way join first."""
    check_budget(budget)
    nodes = dict.fromkeys(link.hop.node for link in net.links)
    return _best_within(net, {node: budget / len(nodes) for node in nodes})


def sbest_hjp(net: Network, budget: float) -> Grants:
    """Among joins in the ratio of their selectivities; within a join the most productive first."""
    check_budget(budget)
    shares = {node: math.prod(found) for node, found in net.selectivities.items()}
    whole = sum(shares.values())
    return _best_within(net, {node: budget * s / whole if whole else 0.0 for node, s in shares.items()})


def best_hjp(net: Network, budget: float) -> Grants:
    """BestHJP of a single join (000, section 2): the most productive half-way join first."""
    check_budget(budget)
    nodes = {link.hop.node for link in net.links}
    if len(nodes) > 1:
        raise QueryError(f"BestHJP divides the probes of a single join; this plan has {len(nodes)}")
    return _best_within(net, dict.fromkeys(nodes, budget))


def grepp(net: Network, budget: float) -> Grants:
    """GrePP (000, section 4.1): the most productive path first, each up to what its stream brings.

    The paper's paths have no end; here what a path cannot use flows to the next one.
    """
    check_budget(budget)
    grants = [0.0] * len(net.links)
    for path in sorted(net.paths, key=lambda path: path.productivity, reverse=True):
        given = min(budget, path.rate * path.cost) if path.productivity else 0.0
        budget -= given
        for i, probes in zip(path.links, path.divided(given), strict=True):
            grants[i] += probes
    return tuple(grants)


def whole_units(budget: int, units: Mapping[str, tuple[int, int]]) -> dict[str, int]:
    """The greedy policy with whole units of paths only (000, section 4.1), which may leave a lot unused.

    `units` says for each stream's path how many probes a unit takes, and how many results it gives (table 2).
    """
    taken = {}
    for stream in sorted(units, key=lambda stream: units[stream][1] / units[stream][0], reverse=True):
        taken[stream], budget = divmod(budget, units[stream][0])
    return taken


def knapsack(budget: int, units: Mapping[str, tuple[int, int]]) -> dict[str, int]:
    """The best choice of whole units (000, equations 9 and 10), by dynamic programming over the budget."""
    best = [0] * (budget + 1)
    last: list[str | None] = [None] * (budget + 1)
    for room in range(1, budget + 1):
        best[room] = best[room - 1]
        for stream, (cost, gain) in units.items():
            if cost <= room and best[room - cost] + gain > best[room]:
                best[room], last[room] = best[room - cost] + gain, stream
    taken, room = dict.fromkeys(units, 0), budget
    while room > 0:
        chosen = last[room]
        if chosen is None:
            room -= 1
        else:
            taken[chosen] += 1
            room -= units[chosen][0]
    return taken


POLICIES: Mapping[str, Policy] = {
    "EqualHJ": equal_hj,
    "GlobalHJPR": global_hjpr,
    "EBestHJP": ebest_hjp,
    "SBestHJP": sbest_hjp,
    "GrePP": grepp,
}


def check_budget(budget: float) -> None:
    """Refuse a budget that buys nothing."""
    if not (math.isfinite(budget) and budget > 0):
        raise QueryError(f"the budget must be above zero; got {budget}")


def _best_within(net: Network, budgets: Mapping[str, float]) -> Grants:
    """In every join, the most productive half-way join first, up to the rows that reach it.

    Links stand inputs first, so what reaches a join is known before its own turn; within a join of many
    inputs, a later hop waits for those before it.
    """
    grants, left = [0.0] * len(net.links), dict(budgets)
    waiting = set(range(len(net.links)))
    while waiting:
        ready = [i for i in waiting if not waiting.intersection(net.links[i].sources)]
        node = net.links[min(ready)].hop.node
        first = max(
            (i for i in ready if net.links[i].hop.node == node), key=lambda i: net.links[i].productivity
        )
        link = net.links[first]
        reached = link.rate + sum(grants[j] * net.links[j].productivity for j in link.sources)
        grants[first] = min(left[node] / link.cost, reached)
        left[node] -= grants[first] * link.cost
        waiting.remove(first)
    return tuple(grants)
