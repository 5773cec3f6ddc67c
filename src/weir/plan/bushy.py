"""The best bjtree: the tree of binary joins, of any shape, with the least CPU."""

from __future__ import annotations

import numpy as np

from weir.plan.plan_candidate import PlanCandidate, join_candidates, make_leaf
from weir.plan.space import ProbingOrders, Space
from weir.plan.stream_sets import Mask, Masks, bits

_MAX_EXACT_STREAMS = 12
# Where all streams share a key every set of them is connected, and a dozen streams have too many sets.
_MAX_EXACT_SETS = 1100
_BINARY_ORDERS = ((1,), (0,))


def find_bushy_tree(space: Space) -> PlanCandidate:
    """Find the binary tree with the least CPU, without products of unconnected streams.

    Exact for up to a dozen streams, greedy beyond.
    """
    exact = len(space.names) <= _MAX_EXACT_STREAMS and space.connected_count <= _MAX_EXACT_SETS
    return _search_exactly(space) if exact else _search_greedily(space)


def join_two(space: Space, left: PlanCandidate, right: PlanCandidate) -> PlanCandidate:
    """Join two trees, for which there is one probing order."""
    masks = (left.mask, right.mask)
    seconds = sum(
        space.renewal_rate(driver) * space.extension_seconds(driver, partner)
        for driver, partner in (masks, reversed(masks))
    )
    orders = ProbingOrders(_BINARY_ORDERS, seconds + space.join_overhead(masks))
    return join_candidates(space, (left, right), orders)


def _search_exactly(space: Space) -> PlanCandidate:
    """Dynamic programming over connected sets; all splits of all sets of one size are costed at once."""
    connected, costs = space.connected_table, space.graph.costs
    rows, compared, renewal = space.rows_table, space.compared_table, space.renewal_table
    new_slices, visited, overhead, maintenance = space.state_tables
    probes = rows * renewal
    best, split = np.zeros(len(rows)), np.zeros(len(rows), dtype=np.int64)
    sizes = np.bitwise_count(np.arange(len(rows)))
    for size in range(2, len(space.names) + 1):
        masks = np.flatnonzero(connected & (sizes == size))
        lefts = _left_parts(masks, size)
        rights = masks[:, None] ^ lefts
        pairs = rows[lefts] * rows[rights] * (compared[masks][:, None] / (compared[lefts] * compared[rights]))
        probe = costs.probe + costs.seek * space.searches_range(lefts, rights)
        whole = renewal[masks][:, None] * (costs.match * rows[masks][:, None] + costs.compare * pairs)
        seconds = (
            best[lefts] + best[rights] + maintenance[lefts] + maintenance[rights] + whole
            + probe * probes[lefts] * visited[rights] + new_slices[lefts] * overhead[rights]
            + probe * probes[rights] * visited[lefts] + new_slices[rights] * overhead[lefts]
        )  # fmt: skip
        seconds[~(connected[lefts] & connected[rights])] = np.inf
        least = seconds.argmin(axis=1)[:, None]
        best[masks] = np.take_along_axis(seconds, least, axis=1)[:, 0]
        split[masks] = np.take_along_axis(lefts, least, axis=1)[:, 0]
    return _build(space, split, space.everything)


def _build(space: Space, split: Masks, mask: Mask) -> PlanCandidate:
    if mask.bit_count() == 1:
        return make_leaf(mask)
    left = int(split[mask])
    return join_two(space, _build(space, split, left), _build(space, split, mask ^ left))


def _left_parts(masks: Masks, size: int) -> Masks:
    """For each set, its proper subsets with its lowest stream: all ways to split it in two, each once."""
    rest = masks.copy()
    subsets = np.zeros((len(masks), 1), dtype=np.int64)
    for i in range(size):
        stream = (rest & -rest)[:, None]
        subsets = subsets | stream if i == 0 else np.hstack([subsets, subsets | stream])
        rest ^= stream[:, 0]
    return subsets[:, :-1]


def _search_greedily(space: Space) -> PlanCandidate:
    """Join the two connected trees with the fewest results next."""
    trees = [make_leaf(1 << i) for i in bits(space.everything)]
    while len(trees) > 1:
        pairs = [
            (left, right)
            for i, left in enumerate(trees)
            for right in trees[:i]
            if space.neighbours(left.mask) & right.mask
        ]
        left, right = min(pairs, key=lambda pair: space.rate(pair[0].mask | pair[1].mask))
        trees = [tree for tree in trees if tree is not left and tree is not right]
        trees.append(join_two(space, left, right))
    return trees[0]
