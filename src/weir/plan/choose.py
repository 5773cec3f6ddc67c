"""Choose the plan to run: by exact search for few streams, else by the two-layer search."""

from __future__ import annotations

from dataclasses import dataclass

from weir.plan.bushy import find_bushy_tree
from weir.plan.cheapest_plan import find_cheapest_plan
from weir.plan.jtree_finder import find_frontier
from weir.plan.limits import NO_LIMITS, Limits
from weir.plan.plan_candidate import PlanCandidate, make_mjoin, to_tree
from weir.plan.space import Space, check_plannable
from weir.plan.tree import Join
from weir.plan.two_layer import is_small, most_headroom, search_two_layers
from weir.stats.join_graph import JoinGraph

# The exact search takes milliseconds where there are at most so many streams and connected sets of them.
_EXACT_STREAMS, _EXACT_SETS = 8, 64


@dataclass(frozen=True, slots=True)
class RankedPlan:
    """A plan with its CPU (seconds per second) and its memory."""

    plan: Join
    cpu: float
    memory: float


@dataclass(frozen=True, slots=True)
class Choice:
    """The plan chosen, whether it qualifies, which search found it, and mjoin and bjtree for comparison."""

    taken: RankedPlan
    limits: Limits
    qualified: bool
    found_by: str
    mjoin: RankedPlan
    bjtree: RankedPlan

    @property
    def plan(self) -> Join:
        """The join tree."""
        return self.taken.plan

    @property
    def excess(self) -> float:
        """The plan's use of the tighter limit, as a multiple of it: at most 1 if it fits."""
        return self.limits.excess(self.taken.cpu, self.taken.memory)


def choose(graph: JoinGraph, limits: Limits = NO_LIMITS, quick: bool = False) -> Choice:
    """Choose the plan with the most headroom, or the least over the limits if none fits.

    For many streams, the first plan that the two-layer search finds to fit is taken. See `search_two_layers`
    for `quick`.
    """
    check_plannable(graph)
    space = Space(graph)
    mjoin, bjtree = make_mjoin(space), find_bushy_tree(space)
    if is_small(space, _EXACT_STREAMS, _EXACT_SETS):
        plan, found_by = _search_exactly(space, limits), "exhaustive search"
    else:
        plan, found_by = search_two_layers(space, limits, mjoin, bjtree, quick)
    return Choice(
        taken=_rank(space, plan),
        limits=limits,
        qualified=limits.allow(plan.cpu, plan.memory),
        found_by=found_by,
        mjoin=_rank(space, mjoin),
        bjtree=_rank(space, bjtree),
    )


def _search_exactly(space: Space, limits: Limits) -> PlanCandidate:
    cheapest = find_cheapest_plan(space)
    assert cheapest is not None, "without a limit there is a plan"
    if _is_best(cheapest, limits):
        return cheapest
    if fitting := find_frontier(space, limits):
        return most_headroom(fitting, limits)
    return min(find_frontier(space), key=lambda plan: limits.excess(plan.cpu, plan.memory))


def _is_best(cheapest: PlanCandidate, limits: Limits) -> bool:
    """True if CPU is the tighter limit of the plan with the least CPU: no plan has more headroom."""
    by_cpu = limits.excess(cheapest.cpu, 0.0)
    if not by_cpu:
        return cheapest.memory <= limits.memory
    return by_cpu >= limits.excess(0.0, cheapest.memory)


def _rank(space: Space, plan: PlanCandidate) -> RankedPlan:
    tree = to_tree(space, plan)
    assert isinstance(tree, Join)
    return RankedPlan(tree, plan.cpu, plan.memory)
