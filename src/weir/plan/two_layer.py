"""The two-layer search (Zhu et al. 2010, section 5.1, algorithm 2), where there are too many plans to try.

First layer: the mjoin, with the least memory, and the best bjtree. Second layer, if neither fits:
state-selection from the mjoin, then state-removal from the bjtree.

As printed, the search gives up as soon as the best bjtree is over the CPU limit. That takes this tree for the
plan with the least CPU, which it need not be once a stored row costs about as much as a match; here only a
proven lower bound ends the search early, and a local search has the last word.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from weir.plan.cheapest_plan import find_cheapest_plan
from weir.plan.hill_climb import local_search, lower_bound, state_removal, state_selection
from weir.plan.jtree_finder import find_frontier
from weir.plan.limits import Limits
from weir.plan.plan_candidate import PlanCandidate
from weir.plan.space import Space

# The exact search takes milliseconds up to six streams, and for more where few sets of them are connected.
_ALWAYS_SMALL = 6
# When the hill-climbing searches fail, the exact search may take a second.
SEARCHED_STREAMS, _SEARCHED_SETS = 10, 255
# In a hurry, only where the best plan is at most this many times over its limits.
_NEAR = 1.2


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
    if lower_bound(space).cpu > limits.cpu:
        plan = _least_over(space, limits, [mjoin, bjtree], quick)
        return plan, "first layer: no plan needs less CPU than the results themselves"
    if bjtree_fits:
        return bjtree, "first layer"
    if (selected := state_selection(space, limits, mjoin)) is not None:
        return selected, "state-selection"
    if (shorter := state_removal(space, limits, bjtree)) is not None:
        return shorter, "state-removal"
    return _least_over(space, limits, [mjoin, bjtree], quick), "local search"


def most_headroom(plans: Sequence[PlanCandidate], limits: Limits) -> PlanCandidate:
    """Choose the plan furthest below the tighter limit, or with the least CPU if that is not limited."""
    if math.isinf(limits.cpu):
        return min(plans, key=lambda plan: (plan.cpu, plan.memory))
    return min(plans, key=lambda plan: (limits.excess(plan.cpu, plan.memory), plan.cpu))


def is_small(space: Space, streams: int, sets: int) -> bool:
    """True if all plans can be searched: the work grows with the connected sets, not with the streams."""
    count = len(space.names)
    return count <= _ALWAYS_SMALL or (count <= streams and space.connected_count <= sets)


def _least_over(space: Space, limits: Limits, plans: list[PlanCandidate], quick: bool) -> PlanCandidate:
    """The plan that is least over the limits, or fits after all."""
    small = is_small(space, SEARCHED_STREAMS, _SEARCHED_SETS)
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
