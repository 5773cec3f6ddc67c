"""Tables 2 and 3 of Zhu et al. 2010: four parameter sets, the cost of their plans, and the case of figure 5.

With CPU c and memory m, the mjoin and the best bjtree are: both qualified (a), only the bjtree (b), only the
mjoin (c), neither but some jtree (d), or nothing is (e).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from weir.plan.bushy import find_bushy_tree
from weir.plan.jtree_finder import find_frontier
from weir.plan.limits import Limits
from weir.plan.plan_candidate import PlanCandidate, make_mjoin, to_tree
from weir.plan.products import list_products
from weir.plan.space import Space
from weir.plan.tree import Join
from weir.stats.join_graph import JoinGraph
from weir.stats.unit_costs import UnitCosts

Situation = Literal["a", "b", "c", "d", "e"]
# Table 3, in seconds: joining a pair, inserting and deleting a row.
TABLE_3 = UnitCosts.per_match(2.2e-6, 2.0e-7, 2.0e-7)
# Section 4.1.4: what a second has.
CPU_AVAILABLE = 1.0
# M_a is a Java heap, and Java's M is 2^20.
MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class ParameterSet:
    """One column of table 2, and the situation that it is meant to show."""

    number: int
    megabytes: int
    rates: tuple[float, ...]
    selectivities: tuple[float, ...]
    window: float
    meant: Situation

    @property
    def graph(self) -> JoinGraph:
        """The chain A-B-C(-D) with the unit costs of table 3."""
        names = "ABCD"[: len(self.rates)]
        edges = zip(pairwise(names), self.selectivities, strict=True)
        return JoinGraph.of(dict(zip(names, self.rates, strict=True)), self.window, dict(edges), TABLE_3)


SETS = (
    ParameterSet(1, 300, (20, 20, 20), (0.05, 0.5), 5, "a"),
    ParameterSet(2, 300, (20, 20, 50), (0.02, 0.5), 15, "b"),
    ParameterSet(3, 30, (10, 10, 10, 10), (0.1, 0.15, 0.1), 15, "c"),
    ParameterSet(4, 30, (20, 20, 20, 20), (0.02, 0.2, 0.05), 50, "d"),
)


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan with its CPU (seconds each second) and its memory (tuples)."""

    kind: Literal["mjoin", "bjtree", "jtree"]
    tree: Join
    cpu: float
    memory: float


@dataclass(frozen=True, slots=True)
class Region:
    """Budgets: CPU and memory from the first number up to, not including, the second."""

    cpu: tuple[float, float]
    memory: tuple[float, float]

    @property
    def middle(self) -> Limits:
        """A budget well inside; twice the lower end where there is no upper one."""
        return Limits(
            *(2 * low if math.isinf(high) else (low + high) / 2 for low, high in (self.cpu, self.memory))
        )

    def tuple_bytes(self, megabytes: int) -> tuple[float, float]:
        """The sizes of a tuple, above one and up to the other, at which this much memory lies within."""
        low, high = self.memory
        return (0.0 if math.isinf(high) else megabytes * MEGABYTE / high, megabytes * MEGABYTE / low)


@dataclass(frozen=True, slots=True)
class Plans:
    """The mjoin, the bjtree with the least CPU, and every other plan that none beats in both resources."""

    mjoin: Plan
    bjtree: Plan
    jtrees: tuple[Plan, ...]

    @staticmethod
    def of(graph: JoinGraph) -> Plans:
        """Found by the exhaustive search, products of unconnected streams included."""
        space = Space(graph)
        mjoin, bjtree = make_mjoin(space), find_bushy_tree(space)
        known = {str(to_tree(space, plan)) for plan in (mjoin, bjtree)}
        frontier = find_frontier(Space(graph, products=list_products(graph)))
        others = [plan for plan in frontier if str(to_tree(space, plan)) not in known]
        return Plans(
            _plan(space, "mjoin", mjoin),
            _plan(space, "bjtree", bjtree),
            tuple(_plan(space, "jtree", plan) for plan in others),
        )

    @property
    def all(self) -> tuple[Plan, ...]:
        """Least memory first."""
        return tuple(sorted((self.mjoin, *self.jtrees, self.bjtree), key=lambda plan: plan.memory))

    def situation(self, limits: Limits) -> Situation:
        """Which of figure 5's situations arises."""
        mjoin, bjtree, *jtrees = (
            limits.allow(plan.cpu, plan.memory) for plan in (self.mjoin, self.bjtree, *self.jtrees)
        )
        if mjoin or bjtree:
            return "a" if mjoin and bjtree else "c" if mjoin else "b"
        return "d" if any(jtrees) else "e"

    def region(self, situation: Situation) -> Region | None:
        """The budgets at which a situation arises, or None if it cannot; of (d), those of the first jtree."""
        mjoin, bjtree = self.mjoin, self.bjtree
        dear, large = max(mjoin.cpu, bjtree.cpu), max(mjoin.memory, bjtree.memory)
        region: Region | None = None
        if situation == "a":
            region = Region((dear, math.inf), (large, math.inf))
        elif situation == "b":
            region = Region((bjtree.cpu, mjoin.cpu), (bjtree.memory, math.inf))
        elif situation == "c":
            region = Region((mjoin.cpu, math.inf), (mjoin.memory, bjtree.memory))
        elif situation == "d" and self.jtrees:
            region = Region((self.jtrees[0].cpu, mjoin.cpu), (self.jtrees[0].memory, bjtree.memory))
        return (
            region
            if region and region.cpu[0] < region.cpu[1] and region.memory[0] < region.memory[1]
            else None
        )


def _plan(space: Space, kind: Literal["mjoin", "bjtree", "jtree"], plan: PlanCandidate) -> Plan:
    tree = to_tree(space, plan)
    assert isinstance(tree, Join)
    return Plan(kind, tree, plan.cpu, plan.memory)
