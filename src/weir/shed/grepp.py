"""How scarce probes are divided over the hops of a plan.

Each policy takes a network and a budget, and grants every link some probes a second. The
first four are the rivals in Mukherji et al. 2011 (table 4), which look at one half-way join at a time; the
others look at whole paths.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from weir.errors import QueryError, unknown
from weir.shed.hop_network import HopNetwork, Path

Grants = tuple[float, ...]
ProbePolicy = Callable[[HopNetwork, float], Grants]
# Results for each row of a path's stream are taken as fractions with denominators up to this.
_FINEST = 100


class FreshnessError(QueryError):
    """The states of a plan cannot be kept as fresh as asked."""


def equal_hj(net: HopNetwork, budget: float) -> Grants:
    """Equally among half-way joins."""
    check_budget(budget)
    return tuple(budget / len(net.links) / link.cost for link in net.links)


def global_hjpr(net: HopNetwork, budget: float) -> Grants:
    """Among half-way joins in the ratio of their productivities."""
    check_budget(budget)
    whole = sum(link.productivity for link in net.links)
    return tuple(budget * link.productivity / whole / link.cost if whole else 0.0 for link in net.links)


def ebest_hjp(net: HopNetwork, budget: float) -> Grants:
    """Equally among joins; within a join the most productive half-way join first."""
    check_budget(budget)
    nodes = dict.fromkeys(link.hop.node for link in net.links)
    return _best_within(net, {node: budget / len(nodes) for node in nodes})


def sbest_hjp(net: HopNetwork, budget: float) -> Grants:
    """Among joins in the ratio of their selectivities; within a join the most productive first."""
    check_budget(budget)
    shares = {node: math.prod(found) for node, found in net.selectivities.items()}
    whole = sum(shares.values())
    return _best_within(net, {node: budget * s / whole if whole else 0.0 for node, s in shares.items()})


def best_hjp(net: HopNetwork, budget: float) -> Grants:
    """BestHJP of a single join (Mukherji et al. 2011, section 2): the most productive half-way join first."""
    check_budget(budget)
    nodes = {link.hop.node for link in net.links}
    if len(nodes) > 1:
        raise QueryError(f"BestHJP divides the probes of a single join; this plan has {len(nodes)}")
    return _best_within(net, dict.fromkeys(nodes, budget))


def grepp(net: HopNetwork, budget: float) -> Grants:
    """GrePP (Mukherji et al. 2011, section 4.1): the most productive path first, up to its stream's rate.

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
        taken[path.stream] = min(left // unit.probes, _most(path, unit))
        left -= taken[path.stream] * unit.probes
    return _of_units(net, table, taken)


def knapsack(net: HopNetwork, budget: float) -> Grants:
    """The best whole units (Mukherji et al. 2011, equations 9, 10), by dynamic programming."""
    check_budget(budget)
    table = productivity_table(net)
    wanted = sum(_most(path, table[path.stream]) * table[path.stream].probes for path in net.paths)
    room = min(math.floor(budget), wanted)
    best = [0] * (room + 1)
    chosen: list[dict[str, int]] = [{} for _ in best]
    for path in net.paths:
        unit = table[path.stream]
        # 1, 2, 4, .. units at a time make up every number of them, and each lot is taken or not.
        for lot in _lots(min(room // unit.probes, _most(path, unit))):
            cost, gain = lot * unit.probes, lot * unit.results
            for left in range(room, cost - 1, -1):
                if best[left - cost] + gain > best[left]:
                    best[left] = best[left - cost] + gain
                    before = chosen[left - cost]
                    chosen[left] = {**before, path.stream: before.get(path.stream, 0) + lot}
    return _of_units(net, table, chosen[room])


def _lots(count: int) -> Iterator[int]:
    lot = 1
    while count > 0:
        yield min(lot, count)
        count, lot = count - lot, 2 * lot


def _most(path: Path, unit: Unit) -> int:
    """The units that a stream has rows for."""
    return math.floor(path.rate / unit.rows)


def _of_units(net: HopNetwork, table: Mapping[str, Unit], taken: Mapping[str, int]) -> Grants:
    grants = [0.0] * len(net.links)
    for path in net.paths:
        rows = taken.get(path.stream, 0) * table[path.stream].rows
        for i, probes in zip(path.links, (rows, *(rows * p for p in path.cardinalities[:-1])), strict=True):
            grants[i] += probes
    return tuple(grants)


POLICIES: Mapping[str, ProbePolicy] = {
    "EqualHJ": equal_hj,
    "GlobalHJPR": global_hjpr,
    "EBestHJP": ebest_hjp,
    "SBestHJP": sbest_hjp,
    "GrePP": grepp,
    "whole units": whole_units,
    "knapsack": knapsack,
}


def check_refresh(net: HopNetwork, refresh: Mapping[str, float]) -> Mapping[str, float]:
    """Refuse refresh rates of states that a plan does not have, and what is no rate."""
    for state, rate in refresh.items():
        if state not in net.states:
            raise unknown("state", state, net.states, where=" in the refresh rates")
        if not (math.isfinite(rate) and rate >= 0):
            raise QueryError(f"the refresh rate of {state} must be zero or more rows a second; got {rate}")
    return refresh


def check_budget(budget: float) -> None:
    """Refuse a budget that buys nothing."""
    if not (math.isfinite(budget) and budget > 0):
        raise QueryError(f"the budget must be above zero; got {budget}")


def _best_within(net: HopNetwork, budgets: Mapping[str, float]) -> Grants:
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
