"""The second layer (Zhu et al. 2010, sections 5.2, 5.3): from a plan over one limit, step by step, to one
that fits both: intermediate states are added to save CPU, or removed to save memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from weir.plan.bushy import binary
from weir.plan.limits import Limits
from weir.plan.plan_candidate import PlanCandidate, joined
from weir.plan.space import Mask, Orders, Space


def state_selection(
    space: Space, limits: Limits, mjoin: PlanCandidate, paper: bool = False
) -> PlanCandidate | None:
    """Algorithm 3: store the output of one more join while CPU is short and memory is left.

    As printed (`paper`), the first state that saves CPU but breaks the memory limit ends the search; here
    the next candidate is tried.
    """
    plan = mjoin
    while plan.cpu > limits.cpu and plan.memory < limits.memory:
        for one, other in _candidates(space, plan):
            rest = [child for child in plan.inputs if child is not one and child is not other]
            longer = joined(space, [*rest, _optimised(space, one, other)])
            if longer.cpu < plan.cpu:
                if longer.memory <= limits.memory:
                    plan = longer
                    break
                if paper:
                    return None
        else:
            return None
    return plan if limits.allow(plan.cpu, plan.memory) else None


def state_removal(space: Space, limits: Limits, bjtree: PlanCandidate) -> PlanCandidate | None:
    """Algorithm 4: give up the state that costs the least CPU for the memory it frees, until both fit."""
    plan = bjtree
    while not limits.allow(plan.cpu, plan.memory):
        shorter = [
            ((fewer.cpu - plan.cpu) / space.memory(state.mask), fewer)
            for state, fewer in without_one(space, plan)
        ]
        if not shorter:
            return None
        plan = min(shorter, key=lambda pair: pair[0])[1]
    return plan


def without_one(space: Space, plan: PlanCandidate) -> Iterator[tuple[PlanCandidate, PlanCandidate]]:
    """Each intermediate state, and the plan without it: its join is merged into the one it feeds."""
    for i, child in enumerate(plan.inputs):
        if child.inputs:
            before, after = plan.inputs[:i], plan.inputs[i + 1 :]
            yield child, joined(space, (*before, *child.inputs, *after))
            kept = Orders(plan.orders, plan.seconds)
            for state, shorter in without_one(space, child):
                yield state, joined(space, (*before, shorter, *after), kept)


def with_one_more(space: Space, plan: PlanCandidate) -> Iterator[PlanCandidate]:
    """The plans with one state more: two connected inputs of a join of three or more are joined first."""
    for i, child in enumerate(plan.inputs):
        kept = Orders(plan.orders, plan.seconds)
        for longer in with_one_more(space, child):
            yield joined(space, (*plan.inputs[:i], longer, *plan.inputs[i + 1 :]), kept)
    if len(plan.inputs) > 2:
        for i, one in enumerate(plan.inputs):
            for other in plan.inputs[:i]:
                if space.neighbours(one.mask) & other.mask:
                    rest = [child for child in plan.inputs if child is not one and child is not other]
                    yield joined(space, [*rest, binary(space, one, other)])


def local_search(space: Space, limits: Limits, plans: list[PlanCandidate]) -> PlanCandidate:
    """From the best of some plans, add or remove a state as long as the tighter limit gains by it."""

    def excess(plan: PlanCandidate) -> float:
        return limits.excess(plan.cpu, plan.memory)

    plan = min(plans, key=excess)
    while excess(plan) > 1:
        near = [fewer for _, fewer in without_one(space, plan)]
        near += with_one_more(space, plan)
        near += [longer for fewer in near[: len(plan.states)] for longer in with_one_more(space, fewer)]
        best = min(near, key=excess, default=plan)
        if excess(best) >= excess(plan):
            break
        plan = best
    return plan


def _candidates(space: Space, plan: PlanCandidate) -> Iterator[tuple[PlanCandidate, PlanCandidate]]:
    """Pairs of connected inputs, those first that appear often in the orders and whose join is small."""
    if len(plan.inputs) < 3:
        return
    often = _frequencies(space, plan)
    masks = [child.mask for child in plan.inputs]

    def worth(pair: tuple[int, int]) -> float:
        size = space.memory(masks[pair[0]] | masks[pair[1]])
        return often[pair] / size if size else float("inf")

    linked = space.between(masks)[2]
    pairs = [(i, j) for i in range(len(masks)) for j in range(i) if linked[i, j]]
    for i, j in sorted(pairs, key=worth, reverse=True):
        yield plan.inputs[i], plan.inputs[j]


def _frequencies(space: Space, plan: PlanCandidate) -> Counter[tuple[int, int]]:
    """How often each edge is used (Zhu et al. 2010, figure 9): a probe takes its most selective edge."""
    masks = np.array([child.mask for child in plan.inputs])
    selectivity, _, linked = space.between(masks.tolist())
    selectivity = selectivity * space.shared(masks, masks)
    often: Counter[tuple[int, int]] = Counter()
    for driver, order in enumerate(plan.orders):
        bound = [driver]
        for i in order:
            near = [j for j in bound if linked[i, j]]
            if near:
                j = min(near, key=lambda j: selectivity[i, j])
                often[max(i, j), min(i, j)] += 1
            bound.append(i)
    return often


def _optimised(space: Space, one: PlanCandidate, other: PlanCandidate) -> PlanCandidate:
    """The join of two inputs, or one join of what they are made of where that saves CPU and memory."""
    best = binary(space, one, other)
    for mine in {(one,), one.inputs or (one,)}:
        for theirs in {(other,), other.inputs or (other,)}:
            if len(mine) + len(theirs) > 2:
                flat = joined(space, (*mine, *theirs))
                if flat.cpu < best.cpu and flat.memory < best.memory:
                    best = flat
    return best


def floor(space: Space) -> Limits:
    """What no plan can do without: the streams' own states, one probe a row, and the results themselves."""
    costs = space.graph.costs
    singles: list[Mask] = [1 << i for i in range(len(space.names))]
    # A state that holds few rows may have no slice to visit.
    visited = 0.0 if space.graph.basic else space.graph.slices
    probes = costs.probe * visited * sum(space.rate(mask) for mask in singles)
    results = (costs.match + space.out(space.everything)) * space.rate(space.everything)
    hops = costs.fixed / space.graph.batch * sum(space.slicing(mask).fresh for mask in singles)
    return Limits(
        cpu=sum(space.upkeep(mask) for mask in singles) + probes + results + hops,
        memory=sum(space.memory(mask) for mask in singles),
    )
