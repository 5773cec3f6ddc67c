"""The rivals in Mukherji et al. 2011, and GrePP with whole units of paths.

Each policy takes a hop network and a budget, and grants every link some probes a second. The rivals of
table 4 look at one half-way join at a time; the policies with whole units (table 2, equations 9 and 10) at
whole paths.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from weir.errors import QueryError
from weir.shed.flow import check_budget
from weir.shed.hop_network import Grants, HopNetwork, InputPath
from weir.shed.jaqpot import grepp
from weir.shed.probes import ProbePolicy, shed_by_policy
from weir.shed.strategies import Strategy, register_strategy

# Results for each row of a path's stream are taken as fractions with denominators up to this.
_FINEST = 100


def equal_hj(net: HopNetwork, budget: float) -> Grants:
    """Equally among half-way joins."""
    check_budget(budget)
    return tuple(budget / len(net.links) / link.cost for link in net.links)


def global_hjpr(net: HopNetwork, budget: float) -> Grants:
    """Among half-way joins in the ratio of their productivities."""
    check_budget(budget)
    total = sum(link.productivity for link in net.links)
    return tuple(budget * link.productivity / total / link.cost if total else 0.0 for link in net.links)


def ebest_hjp(net: HopNetwork, budget: float) -> Grants:
    """Equally among joins; within a join the most productive half-way join first."""
    check_budget(budget)
    nodes = dict.fromkeys(link.hop.node for link in net.links)
    return _grant_best_first(net, {node: budget / len(nodes) for node in nodes})


def sbest_hjp(net: HopNetwork, budget: float) -> Grants:
    """Among joins in the ratio of their selectivities; within a join the most productive first."""
    check_budget(budget)
    shares = _selectivities(net)
    total = sum(shares.values())
    return _grant_best_first(net, {node: budget * s / total if total else 0.0 for node, s in shares.items()})


def best_hjp(net: HopNetwork, budget: float) -> Grants:
    """BestHJP of a single join (Mukherji et al. 2011, section 2): the most productive half-way join first."""
    check_budget(budget)
    nodes = {link.hop.node for link in net.links}
    if len(nodes) > 1:
        raise QueryError(f"BestHJP divides the probes of a single join; this plan has {len(nodes)}")
    return _grant_best_first(net, dict.fromkeys(nodes, budget))


@dataclass(frozen=True, slots=True)
class Unit:
    """The least rows of a path's stream for whole probes and results (Mukherji et al. 2011, table 2)."""

    rows: int
    probes: int
    results: int


def productivity_table(net: HopNetwork) -> dict[str, Unit]:
    """The path productivity table of a plan whose probes cost 1; fractions are rounded a little."""
    table = {}
    for path in net.paths:
        flows = [Fraction(partials).limit_denominator(_FINEST) for partials in path.cardinalities]
        rows = math.lcm(*(flow.denominator for flow in flows))
        probes = rows + sum(int(rows * flow) for flow in flows[:-1])
        table[path.stream] = Unit(rows, probes, int(rows * flows[-1]))
    return table


def whole_units(net: HopNetwork, budget: float) -> Grants:
    """GrePP with whole units of paths (Mukherji et al. 2011, section 4.1), which may leave a lot unused."""
    check_budget(budget)
    table, left = productivity_table(net), math.floor(budget)
    taken = {}
    for path in sorted(net.paths, key=lambda path: path.productivity, reverse=True):
        unit = table[path.stream]
        taken[path.stream] = min(left // unit.probes, _most_units(path, unit))
        left -= taken[path.stream] * unit.probes
    return _grant_units(net, table, taken)


def knapsack(net: HopNetwork, budget: float) -> Grants:
    """The best whole units (Mukherji et al. 2011, equations 9, 10), by dynamic programming."""
    check_budget(budget)
    table = productivity_table(net)
    wanted = sum(_most_units(path, table[path.stream]) * table[path.stream].probes for path in net.paths)
    room = min(math.floor(budget), wanted)
    best = [0] * (room + 1)
    chosen: list[dict[str, int]] = [{} for _ in best]
    for path in net.paths:
        unit = table[path.stream]
        # 1, 2, 4, .. units at a time make up every number of them, and each bundle is taken or not.
        for bundle in _bundles(min(room // unit.probes, _most_units(path, unit))):
            cost, gain = bundle * unit.probes, bundle * unit.results
            for left in range(room, cost - 1, -1):
                if best[left - cost] + gain > best[left]:
                    best[left] = best[left - cost] + gain
                    before = chosen[left - cost]
                    chosen[left] = {**before, path.stream: before.get(path.stream, 0) + bundle}
    return _grant_units(net, table, chosen[room])


# The policies that experiments compare by name.
RIVALS: Mapping[str, ProbePolicy] = {
    "EqualHJ": equal_hj,
    "GlobalHJPR": global_hjpr,
    "EBestHJP": ebest_hjp,
    "SBestHJP": sbest_hjp,
}
POLICIES: Mapping[str, ProbePolicy] = {
    **RIVALS,
    "GrePP": grepp,
    "whole units": whole_units,
    "knapsack": knapsack,
}


def register_rivals() -> None:
    """Let `shed=` choose the rivals of table 4, as in `weir.join(shed="EqualHJ")`."""
    for name, policy in RIVALS.items():
        register_strategy(name, Strategy(shed_by_policy(name, policy)))


def _selectivities(net: HopNetwork) -> dict[str, float]:
    """Of every join, the product of the selectivities along its first input's hops (equation 3, solved)."""
    products: dict[str, float] = {}
    drivers: dict[str, str] = {}
    for link in net.links:
        if drivers.setdefault(link.hop.node, link.hop.driver) == link.hop.driver:
            rows = net.sizes[link.hop.partner]
            selectivity = link.productivity / rows if rows else 0.0
            products[link.hop.node] = products.get(link.hop.node, 1.0) * selectivity
    return products


def _bundles(count: int) -> Iterator[int]:
    bundle = 1
    while count > 0:
        yield min(bundle, count)
        count, bundle = count - bundle, 2 * bundle


def _most_units(path: InputPath, unit: Unit) -> int:
    """The units that a stream has rows for."""
    return math.floor(path.rate / unit.rows)


def _grant_units(net: HopNetwork, table: Mapping[str, Unit], taken: Mapping[str, int]) -> Grants:
    grants = [0.0] * len(net.links)
    for path in net.paths:
        rows = taken.get(path.stream, 0) * table[path.stream].rows
        for i, probes in zip(path.links, (rows, *(rows * p for p in path.cardinalities[:-1])), strict=True):
            grants[i] += probes
    return tuple(grants)


def _grant_best_first(net: HopNetwork, budgets: Mapping[str, float]) -> Grants:
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
        arriving = link.rate + sum(grants[j] * net.links[j].productivity for j in link.sources)
        grants[first] = min(left[node] / link.cost, arriving)
        left[node] -= grants[first] * link.cost
        waiting.remove(first)
    return tuple(grants)
