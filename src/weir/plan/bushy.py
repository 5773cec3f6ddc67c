"""The best tree of binary joins: exact for a dozen streams, greedy beyond."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weir.plan.sketch import Sketch, joined, leaf, leaves
from weir.plan.space import Mask, Orders, Space, bits

EXACT_STREAMS = 12
# Where all streams share a key every set of them is connected, and a dozen have too many.
_MOST_SETS = 1100
_BINARY = ((1,), (0,))


def bushy(space: Space) -> Sketch:
    """The binary tree with the least CPU, of any shape, without products of unconnected streams."""
    if len(space.names) > EXACT_STREAMS:
        return _greedy(space)
    return _exact(space) if space.connected_sets <= _MOST_SETS else _greedy(space)


def binary(space: Space, one: Sketch, other: Sketch) -> Sketch:
    """One binary join, of which there is one order."""
    masks = (one.mask, other.mask)
    seconds = sum(
        space.turnover(mine) * space.step(mine, theirs) for mine, theirs in (masks, reversed(masks))
    )
    return joined(space, (one, other), Orders(_BINARY, seconds + space.fixed(masks)))


def _exact(space: Space) -> Sketch:
    """Dynamic programming over connected sets; all ways to cut a set in two are weighed at once."""
    size = 1 << len(space.names)
    connected = np.array([bool(mask) and space.is_connected(mask) for mask in range(size)])
    rows, narrowing, turnover = space.table, space.narrowing_table, space.turnover_table
    costs = space.graph.costs
    fresh, visited, hop, upkeep = np.zeros((4, size))
    for mask in np.flatnonzero(connected).tolist():
        state = space.slicing(mask)
        fresh[mask], visited[mask] = state.fresh / space.graph.batch, state.visited
        hop[mask], upkeep[mask] = space.hop(mask), space.upkeep(mask)
    probes = rows * turnover
    best, cut = np.zeros(size), np.zeros(size, dtype=np.int64)
    for mask in sorted(np.flatnonzero(connected).tolist(), key=int.bit_count):
        if mask.bit_count() == 1:
            continue
        ones = _halves(mask)
        ones = ones[connected[ones] & connected[mask ^ ones]]
        others = mask ^ ones
        pairs = rows[ones] * rows[others] * (narrowing[mask] / (narrowing[ones] * narrowing[others]))
        probe = costs.probe + costs.seek * space.by_value(ones, others)
        seconds = (
            best[ones] + best[others] + upkeep[ones] + upkeep[others]
            + turnover[mask] * (costs.match * rows[mask] + costs.compare * pairs)
            + probe * probes[ones] * visited[others] + fresh[ones] * hop[others]
            + probe * probes[others] * visited[ones] + fresh[others] * hop[ones]
        )  # fmt: skip
        least = int(seconds.argmin())
        best[mask], cut[mask] = seconds[least], ones[least]
    return _cut_up(space, cut, space.everything)


def _cut_up(space: Space, cut: NDArray[np.int64], mask: Mask) -> Sketch:
    if mask.bit_count() == 1:
        return leaf(mask)
    one = int(cut[mask])
    return binary(space, _cut_up(space, cut, one), _cut_up(space, cut, mask ^ one))


def _halves(mask: Mask) -> NDArray[np.int64]:
    """The proper subsets of a set that hold its lowest stream: each way to cut it in two, once."""
    low, *others = bits(mask)
    subsets = np.array([1 << low])
    for i in others:
        subsets = np.concatenate([subsets, subsets | 1 << i])
    return subsets[:-1]


def _greedy(space: Space) -> Sketch:
    """Again and again join the two connected trees that cost the least together."""
    trees = list(leaves(space.everything))
    while len(trees) > 1:
        pairs = [
            (one, other)
            for i, one in enumerate(trees)
            for other in trees[:i]
            if space.neighbours(one.mask) & other.mask
        ]
        one, other = min(pairs, key=lambda pair: space.rate(pair[0].mask | pair[1].mask))
        trees = [tree for tree in trees if tree is not one and tree is not other]
        trees.append(binary(space, one, other))
    return trees[0]
