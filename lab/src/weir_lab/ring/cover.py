"""Which nodes to ask, so that every segment is asked for once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Set
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


def cheapest_cover(
    sizes: Mapping[Key, float], held: Mapping[int, Set[Key]], weights: Mapping[int, float]
) -> dict[int, list[Key]]:
    """A cheap set of nodes that together hold all segments, each segment given to one of them.

    Greedy weighted set cover: again and again the node with the least weight for what it adds.

    >>> cheapest_cover({"x": 5, "y": 5, "z": 1}, {0: {"x", "y"}, 1: {"y", "z"}, 2: {"z"}}, {0: 1, 1: 1, 2: 1})
    {0: ['x', 'y'], 1: ['z']}
    """
    missing = set(sizes)
    chosen: dict[int, list[Key]] = {}
    while missing:
        gains = {node: sum(sizes[key] for key in keys & missing) for node, keys in held.items()}
        node = min((n for n in gains if gains[n] > 0), key=lambda n: (weights[n] / gains[n], n))
        # In the order of `sizes`, so that equal runs are equal.
        chosen[node] = [key for key in sizes if key in held[node] and key in missing]
        missing -= held[node]
    return chosen
