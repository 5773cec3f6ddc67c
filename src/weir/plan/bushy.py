"""The best tree of binary joins: exact for a dozen streams, greedy beyond."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weir.plan.plan_candidate import PlanCandidate, joined, leaf, leaves
from weir.plan.space import Mask, Orders, Space

EXACT_STREAMS = 12
# Where all streams share a key every set of them is connected, and a dozen have too many.
_MOST_SETS = 1100
_BINARY = ((1,), (0,))


def bushy(space: Space) -> PlanCandidate:
    """The binary tree with the least CPU, of any shape, without products of unconnected streams."""
    if len(space.names) > EXACT_STREAMS:
        return _greedy(space)
    return _exact(space) if space.connected_sets <= _MOST_SETS else _greedy(space)


def binary(space: Space, one: PlanCandidate, other: PlanCandidate) -> PlanCandidate:
    """One binary join, of which there is one order."""
    masks = (one.mask, other.mask)
    seconds = sum(
        space.turnover(mine) * space.step(mine, theirs) for mine, theirs in (masks, reversed(masks))
    )
    return joined(space, (one, other), Orders(_BINARY, seconds + space.fixed(masks)))


def _exact(space: Space) -> PlanCandidate:
    """Dynamic programming over connected sets; all ways to cut sets of one size are weighed at once."""
    connected = space.connected
    rows, narrowing, turnover = space.table, space.narrowing_table, space.turnover_table
    costs = space.graph.costs
    fresh, visited, hop, upkeep = space.state_tables
    probes = rows * turnover
    best, cut = np.zeros(len(rows)), np.zeros(len(rows), dtype=np.int64)
    sizes = np.bitwise_count(np.arange(len(rows)))
    for size in range(2, len(space.names) + 1):
        masks = np.flatnonzero(connected & (sizes == size))
        ones = _halves(masks, size)
        others = masks[:, None] ^ ones
        pairs = (
            rows[ones] * rows[others] * (narrowing[masks][:, None] / (narrowing[ones] * narrowing[others]))
        )
        probe = costs.probe + costs.seek * space.by_value(ones, others)
        whole = turnover[masks][:, None] * (costs.match * rows[masks][:, None] + costs.compare * pairs)
        seconds = (
            best[ones] + best[others] + upkeep[ones] + upkeep[others] + whole
            + probe * probes[ones] * visited[others] + fresh[ones] * hop[others]
            + probe * probes[others] * visited[ones] + fresh[others] * hop[ones]
        )  # fmt: skip
        seconds[~(connected[ones] & connected[others])] = np.inf
        least = seconds.argmin(axis=1)[:, None]
        best[masks] = np.take_along_axis(seconds, least, axis=1)[:, 0]
        cut[masks] = np.take_along_axis(ones, least, axis=1)[:, 0]
    return _cut_up(space, cut, space.everything)


def _cut_up(space: Space, cut: NDArray[np.int64], mask: Mask) -> PlanCandidate:
    if mask.bit_count() == 1:
        return leaf(mask)
    one = int(cut[mask])
    return binary(space, _cut_up(space, cut, one), _cut_up(space, cut, mask ^ one))


def _halves(masks: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Of each of some sets of one size, the proper subsets that hold its lowest stream.

    These are all ways to cut it in two, each once.
    """
    left = masks.copy()
    subsets = np.zeros((len(masks), 1), dtype=np.int64)
    for i in range(size):
        stream = (left & -left)[:, None]
        subsets = subsets | stream if i == 0 else np.hstack([subsets, subsets | stream])
        left ^= stream[:, 0]
    return subsets[:, :-1]


def _greedy(space: Space) -> PlanCandidate:
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
