"""Probing orders of one join: in which order each input that drives visits the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from weir.plan.space import ProbingOrders, Space
from weir.plan.stream_sets import Mask

# Dynamic programming over all subsets of more inputs takes too long.
_MAX_EXACT_INPUTS = 6
# `Space.extension_seconds`, or a table of it.
ExtensionSeconds = Callable[[Mask, Mask], float]


def choose_probing_orders(space: Space, inputs: Sequence[Mask]) -> ProbingOrders:
    """Choose the orders of a join: the best ones for few inputs, greedy ones for many. Cached in `space`."""
    key = tuple(inputs)
    if key not in space.orders_cache:
        find = find_best_orders if len(key) <= _MAX_EXACT_INPUTS else find_greedy_orders
        space.orders_cache[key] = find(space, key)
    return space.orders_cache[key]


def find_greedy_orders(space: Space, inputs: Sequence[Mask]) -> ProbingOrders:
    """Visit the input that leaves the fewest matches next, and connected inputs before all others.

    The orders of all drivers are built at once: row i of every array belongs to driver i.
    """
    costs, count = space.graph.costs, len(inputs)
    drivers = np.arange(count)
    rows = np.array([space.rows(mask) for mask in inputs])
    visited = np.array([space.slice_model(mask).visited_slices for mask in inputs])
    edge_selectivity, edge_compared, linked = space.edge_matrices(inputs)
    partials, masks = rows.copy(), np.array(inputs)
    bound = masks.copy()
    growth, compared, near = rows * edge_selectivity, edge_compared.copy(), linked.copy()
    remaining = ~np.eye(count, dtype=bool)
    seconds = np.zeros(count)
    visits = []
    for _ in range(count - 1):
        shared = space.class_matrix(bound, masks)
        grown = growth * shared * space.correction_matrix(bound, masks)
        candidates = remaining & (near | ~(remaining & near).any(axis=1, keepdims=True))
        chosen = np.where(candidates, grown, np.inf).argmin(axis=1)
        matches = partials * grown[drivers, chosen]
        comparisons = partials * rows[chosen] * (compared * shared)[drivers, chosen]
        probe = costs.probe + costs.seek * space.searches_range(bound, masks[chosen])
        seconds += probe * visited[chosen] * partials + costs.compare * comparisons + costs.match * matches
        partials, growth = matches, growth * edge_selectivity[chosen]
        compared = compared * edge_compared[chosen]
        near |= linked[chosen]
        bound |= masks[chosen]
        remaining[drivers, chosen] = False
        visits.append(chosen)
    seconds += space.output_seconds(sum(inputs)) * partials
    renewal = np.array([space.renewal_rate(mask) for mask in inputs])
    orders = tuple(tuple(int(i) for i in order) for order in np.array(visits).T)
    return ProbingOrders(orders, float(seconds @ renewal) + space.join_overhead(inputs))


def find_best_orders(
    space: Space, inputs: Sequence[Mask], extension_seconds: ExtensionSeconds | None = None
) -> ProbingOrders:
    """Find the orders with the least work, by dynamic programming over subsets of the inputs.

    A search that asks about many joins gives its own table of `extension_seconds`.
    """
    extension_seconds = extension_seconds or space.extension_seconds
    count = len(inputs)
    whole = (1 << count) - 1
    masks = [0]
    for mask in inputs:
        masks += [union | mask for union in masks]
    remaining_seconds, next_input = [0.0] * (whole + 1), [0] * (whole + 1)
    # From large subsets to small: the work that remains does not depend on which input drove.
    for subset in range(whole - 1, 0, -1):
        least = float("inf")
        for i in range(count):
            if not subset >> i & 1:
                seconds = extension_seconds(masks[subset], inputs[i]) + remaining_seconds[subset | 1 << i]
                if seconds < least:
                    least, next_input[subset] = seconds, i
        remaining_seconds[subset] = least
    orders = tuple(_follow(next_input, 1 << i, whole) for i in range(count))
    seconds = sum(space.renewal_rate(mask) * remaining_seconds[1 << i] for i, mask in enumerate(inputs))
    return ProbingOrders(orders, seconds + space.join_overhead(inputs))


def path_seconds(space: Space, inputs: Sequence[Mask], driver: int, order: Sequence[int]) -> float:
    """Seconds per second of the hops that one input of a join drives, in a given order."""
    bound, seconds = inputs[driver], 0.0
    for i in order:
        seconds += space.extension_seconds(bound, inputs[i])
        bound |= inputs[i]
    return seconds * space.renewal_rate(inputs[driver])


def _follow(next_input: Sequence[int], subset: int, whole: int) -> tuple[int, ...]:
    order = []
    while subset != whole:
        order.append(next_input[subset])
        subset |= 1 << order[-1]
    return tuple(order)
