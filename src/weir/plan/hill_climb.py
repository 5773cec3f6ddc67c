"""Hill-climbing searches for a plan that fits both limits (Zhu et al. 2010, sections 5.2 and 5.3).

From a plan over one limit, step by step: store one more intermediate state to save CPU, or remove one to save
memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from weir.plan.bushy import join_two
from weir.plan.limits import Limits
from weir.plan.plan_candidate import PlanCandidate, join_candidates
from weir.plan.space import ProbingOrders, Space
from weir.plan.stream_sets import Mask


def state_selection(space: Space, limits: Limits, mjoin: PlanCandidate) -> PlanCandidate | None:
    """Zhu et al. 2010, algorithm 3: store the output of one more join while CPU is short and memory is left.

    As printed, the first state that saves CPU but breaks the memory limit ends the search; here the next
    candidate is tried.
    """
    plan = mjoin
    while plan.cpu > limits.cpu and plan.memory < limits.memory:
        for longer in store_pairs(space, plan):
            if longer.cpu < plan.cpu and longer.memory <= limits.memory:
                plan = longer
                break
        else:
            return None
    return plan if limits.allow(plan.cpu, plan.memory) else None


def store_pairs(space: Space, plan: PlanCandidate) -> Iterator[PlanCandidate]:
    """Yield the plan with two connected inputs of its root joined first, for each two, promising ones first.

    Promising are pairs that many probing orders use and whose join is small.
    """
    if len(plan.inputs) < 3:
        return
    uses = _count_edge_uses(space, plan)
    masks = [child.mask for child in plan.inputs]

    def promise(pair: tuple[int, int]) -> float:
        size = space.memory(masks[pair[0]] | masks[pair[1]])
        return uses[pair] / size if size else float("inf")

    linked = space.edge_matrices(masks)[2]
    pairs = [(i, j) for i in range(len(masks)) for j in range(i) if linked[i, j]]
    for i, j in sorted(pairs, key=promise, reverse=True):
        rest = [child for k, child in enumerate(plan.inputs) if k not in (i, j)]
        yield join_candidates(space, [*rest, _join_or_flatten(space, plan.inputs[i], plan.inputs[j])])


def _count_edge_uses(space: Space, plan: PlanCandidate) -> Counter[tuple[int, int]]:
    """How often each edge is used (Zhu et al. 2010, figure 9): a probe takes its most selective edge."""
    masks = np.array([child.mask for child in plan.inputs])
    selectivity, _, linked = space.edge_matrices(masks.tolist())
    selectivity = selectivity * space.class_matrix(masks, masks)
    uses: Counter[tuple[int, int]] = Counter()
    for driver, order in enumerate(plan.orders):
        bound = [driver]
        for i in order:
            near = [j for j in bound if linked[i, j]]
            if near:
                j = min(near, key=lambda j: selectivity[i, j])
                uses[max(i, j), min(i, j)] += 1
            bound.append(i)
    return uses


def _join_or_flatten(space: Space, left: PlanCandidate, right: PlanCandidate) -> PlanCandidate:
    """Join two inputs, or in one join what they are made of where that saves CPU and memory."""
    best = join_two(space, left, right)
    for lefts in {(left,), left.inputs or (left,)}:
        for rights in {(right,), right.inputs or (right,)}:
            if len(lefts) + len(rights) > 2:
                flat = join_candidates(space, (*lefts, *rights))
                if flat.cpu < best.cpu and flat.memory < best.memory:
                    best = flat
    return best


def state_removal(space: Space, limits: Limits, bjtree: PlanCandidate) -> PlanCandidate | None:
    """Zhu et al. 2010, algorithm 4: remove the state that costs least CPU for its memory, until both fit."""
    plan = bjtree
    while not limits.allow(plan.cpu, plan.memory):
        shorter = [(fewer.cpu - plan.cpu, state, fewer) for state, fewer in remove_each_state(space, plan)]
        if not shorter:
            return None
        *_, plan = min(shorter, key=lambda removed: removed[0] / space.memory(removed[1].mask))
    return plan


def remove_each_state(space: Space, plan: PlanCandidate) -> Iterator[tuple[PlanCandidate, PlanCandidate]]:
    """Yield each intermediate state, and the plan without it: its join is merged into the one it feeds."""
    for i, child in enumerate(plan.inputs):
        if child.inputs:
            before, after = plan.inputs[:i], plan.inputs[i + 1 :]
            yield child, join_candidates(space, (*before, *child.inputs, *after))
            orders = ProbingOrders(plan.orders, plan.seconds)
            for state, shorter in remove_each_state(space, child):
                yield state, join_candidates(space, (*before, shorter, *after), orders)


def add_each_state(space: Space, plan: PlanCandidate) -> Iterator[PlanCandidate]:
    """Yield plans with one more state: two connected inputs of a join of three or more are joined first."""
    for i, child in enumerate(plan.inputs):
        orders = ProbingOrders(plan.orders, plan.seconds)
        for longer in add_each_state(space, child):
            yield join_candidates(space, (*plan.inputs[:i], longer, *plan.inputs[i + 1 :]), orders)
    if len(plan.inputs) > 2:
        for i, left in enumerate(plan.inputs):
            for right in plan.inputs[:i]:
                if space.neighbours(left.mask) & right.mask:
                    rest = [child for child in plan.inputs if child is not left and child is not right]
                    yield join_candidates(space, [*rest, join_two(space, left, right)])


def local_search(space: Space, limits: Limits, plans: list[PlanCandidate]) -> PlanCandidate:
    """From the best of these plans, add or remove states as long as the excess over the limits falls."""

    def excess(plan: PlanCandidate) -> float:
        return limits.excess(plan.cpu, plan.memory)

    plan = min(plans, key=excess)
    while excess(plan) > 1:
        fewer = [shorter for _, shorter in remove_each_state(space, plan)]
        longer = [other for start in (plan, *fewer) for other in add_each_state(space, start)]
        best = min((*fewer, *longer), key=excess, default=plan)
        if excess(best) >= excess(plan):
            break
        plan = best
    return plan


def least_cpu(space: Space) -> float:
    """The CPU that every plan needs at least: for the streams' own states, one probe per row, the results."""
    costs = space.graph.costs
    streams: list[Mask] = [1 << i for i in range(len(space.names))]
    # A state that holds few rows may have no slice to visit.
    visited = 0.0 if space.graph.basic else space.graph.slices
    probes = costs.probe * visited * sum(space.rate(mask) for mask in streams)
    results = (costs.match + space.output_seconds(space.everything)) * space.rate(space.everything)
    hops = costs.fixed / space.graph.batch * sum(space.slice_model(mask).new_slices for mask in streams)
    return sum(space.maintenance_seconds(mask) for mask in streams) + probes + results + hops
