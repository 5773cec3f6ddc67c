"""Probing orders of one join: the least work first, or the least work of all orders."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from weir.plan.space import Mask, Orders, Space

# With more inputs the exact orders, one step per subset of them and input, take too long.
EXACT_INPUTS = 6
Step = Callable[[Mask, Mask], float]


def probing_orders(space: Space, inputs: Sequence[Mask]) -> Orders:
    """The best orders for few inputs, the usual good ones for many; each join is asked about once."""
    asked = tuple(inputs)
    if asked not in space.ordered:
        exact = len(asked) <= EXACT_INPUTS
        space.ordered[asked] = best_orders(space, asked) if exact else greedy_orders(space, asked)
    return space.ordered[asked]


def greedy_orders(space: Space, inputs: Sequence[Mask]) -> Orders:
    """Each time the input that leaves the fewest matches, unconnected ones only when no other is left."""
    costs, count = space.graph.costs, len(inputs)
    everyone = np.arange(count)
    rows = np.array([space.rows(mask) for mask in inputs])
    visited = np.array([space.slicing(mask).visited for mask in inputs])
    between, narrowing, linked = space.between(inputs)
    bound, masks = rows.copy(), np.array(inputs)
    reached = masks.copy()
    growth, narrowed, near = rows * between, narrowing.copy(), linked.copy()
    free = ~np.eye(count, dtype=bool)
    seconds = np.zeros(count)
    taken = []
    for _ in range(count - 1):
        shared = space.shared(reached, masks)
        grown = growth * shared * space.corrected(reached, masks)
        open_now = free & (near | ~(free & near).any(axis=1, keepdims=True))
        chosen = np.where(open_now, grown, np.inf).argmin(axis=1)
        matches = bound * grown[everyone, chosen]
        compared = bound * rows[chosen] * (narrowed * shared)[everyone, chosen]
        probe = costs.probe + costs.seek * space.by_value(reached, masks[chosen])
        seconds += probe * visited[chosen] * bound + costs.compare * compared + costs.match * matches
        bound, growth, narrowed = matches, growth * between[chosen], narrowed * narrowing[chosen]
        near |= linked[chosen]
        reached |= masks[chosen]
        free[everyone, chosen] = False
        taken.append(chosen)
    seconds += space.out(sum(inputs)) * bound
    turnover = np.array([space.turnover(mask) for mask in inputs])
    orders = tuple(tuple(int(i) for i in order) for order in np.array(taken).T)
    return Orders(orders, float(seconds @ turnover) + space.fixed(inputs))


def best_orders(space: Space, inputs: Sequence[Mask], step: Step | None = None) -> Orders:
    """The orders with the least work, by dynamic programming over subsets of the inputs.

    A search that asks about many joins gives its own table of what each `step` takes.
    """
    step = step or space.step
    count = len(inputs)
    whole = (1 << count) - 1
    masks = [0]
    for mask in inputs:
        masks += [union | mask for union in masks]
    togo, following = [0.0] * (whole + 1), [0] * (whole + 1)
    # From large subsets to small: what is left to do does not depend on who drove.
    for subset in range(whole - 1, 0, -1):
        best = float("inf")
        for i in range(count):
            if not subset >> i & 1:
                work = step(masks[subset], inputs[i]) + togo[subset | 1 << i]
                if work < best:
                    best, following[subset] = work, i
        togo[subset] = best
    orders = tuple(_followed(following, 1 << i, whole) for i in range(count))
    seconds = sum(space.turnover(mask) * togo[1 << i] for i, mask in enumerate(inputs))
    return Orders(orders, seconds + space.fixed(inputs))


def path_seconds(space: Space, inputs: Sequence[Mask], driver: int, order: Sequence[int]) -> float:
    """Seconds each second for what one input of a join drives, in a given order."""
    bound, work = inputs[driver], 0.0
    for i in order:
        work += space.step(bound, inputs[i])
        bound |= inputs[i]
    return work * space.turnover(inputs[driver])


def _followed(following: Sequence[int], subset: int, whole: int) -> tuple[int, ...]:
    order = []
    while subset != whole:
        order.append(following[subset])
        subset |= 1 << order[-1]
    return tuple(order)
