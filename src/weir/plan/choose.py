"""Choose the plan to run: by exact search for few streams, else by the two-layer search.

The two layers (Zhu et al. 2010, section 5.1, algorithm 2) are for graphs with too many plans to try. First
layer: the mjoin, with the least memory, and the best bjtree. Second layer, if neither fits: state-selection
from the mjoin, then state-removal from the bjtree.

As printed, the search gives up as soon as the best bjtree is over the CPU limit. That takes this tree for the
plan with the least CPU, which it need not be once a stored row costs about as much as a match; here only a
proven lower bound ends the search early, and a local search has the last word.

Plans may also join streams that no condition connects. For few streams all such products are searched; for
more, the few smallest ones, and beyond the exact search only if no plan fits without them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from weir.plan.bushy import find_bushy_tree
from weir.plan.hill_climb import least_cpu, local_search, state_removal, state_selection
from weir.plan.jtree_finder import find_cheapest_plan, find_frontier
from weir.plan.limits import NO_LIMITS, Limits
from weir.plan.plan_candidate import PlanCandidate, make_mjoin, to_tree
from weir.plan.products import Pair, find_small_products, list_products
from weir.plan.space import Space, check_plannable
from weir.plan.tree import Join
from weir.stats.join_graph import JoinGraph

# The exact search takes milliseconds up to six streams, and for more where few sets of them are connected.
_ALWAYS_SMALL, _EXACT_STREAMS, _EXACT_SETS = 6, 8, 64
# Up to this many streams all products are searched. Beyond, each would add about as many sets as there are
# without it, so at most so many are, the smallest ones, and none where they would rule out the exact search.
_ALL_PRODUCTS_STREAMS, _MOST_PRODUCTS = 5, 3
# Sums in another order differ by less.
_BETTER = 1 - 1e-9
# When the hill-climbing searches fail, the exact search may take a second.
SEARCHED_STREAMS, _SEARCHED_SETS = 10, 255
# In a hurry, only where the best plan is at most this many times over its limits.
_NEAR = 1.2


@dataclass(frozen=True, slots=True)
class RankedPlan:
    """A plan with its CPU (seconds per second) and its memory."""

    plan: Join
    cpu: float
    memory: float


@dataclass(frozen=True, slots=True)
class Choice:
    """The plan chosen, whether it qualifies, which search found it, and mjoin and bjtree for comparison.

    `excess` is the plan's use of the tighter limit, as a multiple of it: at most 1 if it fits.
    """

    plan: Join
    limits: Limits
    excess: float
    qualified: bool
    found_by: str
    mjoin: RankedPlan
    bjtree: RankedPlan


def choose(graph: JoinGraph, limits: Limits = NO_LIMITS, quick: bool = False) -> Choice:
    """Choose the plan with the most headroom, or the least over the limits if none fits.

    For many streams, the first plan that the two-layer search finds to fit is taken. See `search_two_layers`
    for `quick`.
    """
    check_plannable(graph)
    space, products = Space(graph), _list_products(graph)
    if _is_small(space, _EXACT_STREAMS, _EXACT_SETS):
        wider = Space(graph, products=products)
        space = wider if _is_small(wider, _EXACT_STREAMS, _EXACT_SETS) else space
        mjoin, bjtree = make_mjoin(space), find_bushy_tree(space)
        plan, found_by = _search_exactly(space, limits), "exhaustive search"
    else:
        mjoin, bjtree = make_mjoin(space), find_bushy_tree(space)
        plan, found_by = search_two_layers(space, limits, mjoin, bjtree, quick)
        if products and _may_fit(space, limits, mjoin, plan):
            wider = Space(graph, products=products)
            other, how = search_two_layers(wider, limits, mjoin, find_bushy_tree(wider), quick)
            if limits.excess(other.cpu, other.memory) < _BETTER * limits.excess(plan.cpu, plan.memory):
                plan, found_by = other, f"{how}, with products of small streams"
    excess, qualified = limits.excess(plan.cpu, plan.memory), limits.allow(plan.cpu, plan.memory)
    taken, *others = (_rank(space, candidate) for candidate in (plan, mjoin, bjtree))
    return Choice(taken.plan, limits, excess, qualified, found_by, *others)


def _list_products(graph: JoinGraph) -> list[Pair]:
    if len(graph.streams) <= _ALL_PRODUCTS_STREAMS:
        return list_products(graph)
    return find_small_products(graph, _MOST_PRODUCTS)


def _may_fit(space: Space, limits: Limits, mjoin: PlanCandidate, found: PlanCandidate) -> bool:
    """True if the plan found does not fit, and nothing proves that no other one does."""
    return not limits.allow(found.cpu, found.memory) and limits.allow(least_cpu(space), mjoin.memory)


def _rank(space: Space, plan: PlanCandidate) -> RankedPlan:
    tree = to_tree(space, plan)
    assert isinstance(tree, Join)
    return RankedPlan(tree, plan.cpu, plan.memory)


def _is_small(space: Space, streams: int, sets: int) -> bool:
    """True if all plans can be searched: the work grows with the connected sets, not with the streams."""
    count = len(space.names)
    return count <= _ALWAYS_SMALL or (count <= streams and space.connected_count <= sets)


def _search_exactly(space: Space, limits: Limits) -> PlanCandidate:
    cheapest = find_cheapest_plan(space)
    assert cheapest is not None, "without a limit there is a plan"
    # If CPU is the tighter limit of the plan with the least CPU, no plan has more headroom.
    by_cpu, by_memory = limits.excess(cheapest.cpu, 0.0), limits.excess(0.0, cheapest.memory)
    if by_cpu >= by_memory if by_cpu else cheapest.memory <= limits.memory:
        return cheapest
    if fitting := find_frontier(space, limits):
        return most_headroom(fitting, limits)
    return min(find_frontier(space), key=lambda plan: limits.excess(plan.cpu, plan.memory))


def most_headroom(plans: Sequence[PlanCandidate], limits: Limits) -> PlanCandidate:
    """Choose the plan furthest below the tighter limit, or with the least CPU if that is not limited."""
    if math.isinf(limits.cpu):
        return min(plans, key=lambda plan: (plan.cpu, plan.memory))
    return min(plans, key=lambda plan: (limits.excess(plan.cpu, plan.memory), plan.cpu))


def search_two_layers(
    space: Space, limits: Limits, mjoin: PlanCandidate, bjtree: PlanCandidate, quick: bool = False
) -> tuple[PlanCandidate, str]:
    """Find a plan that fits, or the one that is least over the limits; and say which step found it.

    The search starts from the mjoin and the best bjtree. With `quick`, what the layers do not find is
    searched for exactly only where that is likely to succeed.
    """
    if mjoin.memory > limits.memory:
        return mjoin, "first layer: no plan needs less memory than the mjoin"
    bjtree_fits = limits.allow(bjtree.cpu, bjtree.memory)
    if mjoin.cpu <= limits.cpu:
        return most_headroom([mjoin, bjtree] if bjtree_fits else [mjoin], limits), "first layer"
    if least_cpu(space) > limits.cpu:
        plan = _least_over(space, limits, [mjoin, bjtree], quick)
        return plan, "first layer: no plan needs less CPU than the results themselves"
    if bjtree_fits:
        return bjtree, "first layer"
    if (selected := state_selection(space, limits, mjoin)) is not None:
        return selected, "state-selection"
    if (shorter := state_removal(space, limits, bjtree)) is not None:
        return shorter, "state-removal"
    return _least_over(space, limits, [mjoin, bjtree], quick), "local search"


def _least_over(space: Space, limits: Limits, plans: list[PlanCandidate], quick: bool) -> PlanCandidate:
    """The plan that is least over the limits, or fits after all."""
    small = _is_small(space, SEARCHED_STREAMS, _SEARCHED_SETS)
    if not quick:
        fitting = _best_fitting(space, limits) if small else None
        return local_search(space, limits, plans if fitting is None else [fitting])
    plan = local_search(space, limits, plans)
    over = limits.excess(plan.cpu, plan.memory)
    # Steps from plan to plan get stuck where both limits are tight, hardly ever where one is.
    if small and not math.isinf(limits.memory) and 1 < over <= _NEAR:
        return _best_fitting(space, limits) or plan
    return plan


def _best_fitting(space: Space, limits: Limits) -> PlanCandidate | None:
    """Of all plans the one that fits best, if any does."""
    if math.isinf(limits.memory):
        return find_cheapest_plan(space, limits.cpu)
    plans = find_frontier(space, limits)
    return min(plans, key=lambda plan: limits.excess(plan.cpu, plan.memory), default=None)
