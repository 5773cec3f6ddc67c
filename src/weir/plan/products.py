"""Products: pairs of streams that no condition connects, and that a plan may join all the same.

In a star join, a row of the hub that probes the product of two small dimensions makes one hop instead of two,
and no partial in between. Such a product pays while it is small; most pairs never pay.
"""

from __future__ import annotations

from itertools import combinations

from weir.plan.stream_sets import StreamSets
from weir.stats.join_graph import JoinGraph

Pair = frozenset[str]


def list_products(graph: JoinGraph) -> list[Pair]:
    """All pairs of streams that no condition connects."""
    sets = StreamSets(graph)
    pairs = (frozenset(pair) for pair in combinations(graph.streams, 2))
    return [pair for pair in pairs if not _are_connected(sets, pair)]


def find_small_products(graph: JoinGraph, most: int) -> list[Pair]:
    """The products that are smallest compared with what they save; at most so many.

    Two streams qualify if a third one, the hub, is connected with both, and the product has no more rows
    than the hub's window: these are the rows that need one hop less.

    >>> edges = {("hub", "d1"): 0.5, ("hub", "d2"): 0.5, ("hub", "big"): 0.5}
    >>> graph = JoinGraph.of({"hub": 100, "d1": 1, "d2": 1, "big": 1000}, 5, edges)
    >>> [sorted(pair) for pair in find_small_products(graph, 3)]
    [['d1', 'd2']]
    """
    sets = StreamSets(graph)
    sizes: dict[Pair, float] = {}
    for pair in list_products(graph):
        left, right = (sets.mask([stream]) for stream in pair)
        hubs = sets.streams(sets.neighbours(left) & sets.neighbours(right))
        hub_rows = max((graph.window_rows(hub) for hub in hubs), default=0.0)
        rows = sets.rows(left) * sets.rows(right)
        if rows <= hub_rows:
            sizes[pair] = rows / hub_rows if hub_rows else 0.0
    return sorted(sizes, key=lambda pair: sizes[pair])[:most]


def _are_connected(sets: StreamSets, pair: Pair) -> bool:
    first, second = (sets.mask([stream]) for stream in pair)
    return bool(sets.neighbours(first) & second)
