"""The searches of Zhu et al. 2010 exactly as printed, where the product's differ.

JTree-Finder lists every qualified plan; state-selection ends at the first state that saves CPU and breaks the
memory limit; the two-layer search gives up when the best bjtree is over the CPU limit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import product

from weir.plan.bushy import find_bushy_tree
from weir.plan.hill_climb import state_removal, store_pairs
from weir.plan.jtree_finder import list_sets, reserved_for_others
from weir.plan.limits import Limits
from weir.plan.plan_candidate import PlanCandidate, join_candidates, make_leaf, make_mjoin
from weir.plan.probing_orders import find_best_orders
from weir.plan.space import Space
from weir.plan.stream_sets import Mask


def find_all_qualified(space: Space, limits: Limits) -> list[PlanCandidate]:
    """Algorithm 1: every partition of every set of streams, every sub-plan that fits.

    For up to six or seven streams.
    """
    plans: dict[Mask, list[PlanCandidate]] = {}
    for mask in list_sets(space):
        if mask.bit_count() == 1:
            plans[mask] = [make_leaf(mask)]
        elif fitting := [plan for plan in _plans_of(space, mask, plans) if _fits(space, limits, plan)]:
            plans[mask] = fitting
    return plans.get(space.everything, [])


def _plans_of(space: Space, mask: Mask, plans: dict[Mask, list[PlanCandidate]]) -> Iterator[PlanCandidate]:
    for parts in _partitions(mask, plans):
        if len(parts) > 1:
            orders = find_best_orders(space, parts)
            for inputs in product(*(plans[part] for part in parts)):
                yield join_candidates(space, inputs, orders)


def _fits(space: Space, limits: Limits, plan: PlanCandidate) -> bool:
    """True if the plan of some streams fits beside what the other streams need at least."""
    cpu, memory = reserved_for_others(space, plan.mask)
    return limits.allow(plan.cpu + cpu, plan.memory + memory)


def _partitions(mask: Mask, known: Collection[Mask]) -> Iterator[list[Mask]]:
    """Every way to cut a set into sets that have plans."""
    if not mask:
        yield []
        return
    for first in _parts(mask, known):
        yield from ([first, *others] for others in _partitions(mask ^ first, known))


def _parts(mask: Mask, known: Collection[Mask]) -> Iterator[Mask]:
    """The subsets with plans that hold a set's lowest stream."""
    low = mask & -mask
    rest = mask ^ low
    subset = rest
    while True:
        part = subset | low
        if part in known:
            yield part
        if not subset:
            return
        subset = (subset - 1) & rest


def select_states(space: Space, limits: Limits, mjoin: PlanCandidate) -> PlanCandidate | None:
    """Algorithm 3."""
    plan = mjoin
    while plan.cpu > limits.cpu and plan.memory < limits.memory:
        cheaper = next((longer for longer in store_pairs(space, plan) if longer.cpu < plan.cpu), None)
        if cheaper is None or cheaper.memory > limits.memory:
            return None
        plan = cheaper
    return plan if limits.allow(plan.cpu, plan.memory) else None


def search_two_layers(space: Space, limits: Limits) -> PlanCandidate | None:
    """Algorithm 2: mjoin, bjtree, state-selection, state-removal, in that order."""
    mjoin, bjtree = make_mjoin(space), find_bushy_tree(space)
    if mjoin.memory > limits.memory:
        return None
    if mjoin.cpu <= limits.cpu:
        return mjoin
    if bjtree.cpu > limits.cpu:
        return None
    if bjtree.memory <= limits.memory:
        return bjtree
    return select_states(space, limits, mjoin) or state_removal(space, limits, bjtree)
