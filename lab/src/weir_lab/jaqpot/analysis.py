"""Mukherji et al. 2011, section 5.4: time of an analysis, and cost of the greedy cover against the least."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from time import process_time
from typing import TypeVar

import numpy as np

from weir.errors import QueryError
from weir.plan.space import Space
from weir.plan.tree import Join, JTree, Leaf, join
from weir.query.windows import RowWindow
from weir.shed.freshness import compute_refresh_rates, greedy_cover, least_cover
from weir.shed.hop_network import HopNetworkBuilder
from weir.shed.jaqpot import jaqpot
from weir.stats.join_graph import JoinGraph

SIZES = (5, 10, 20, 50)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Analysis:
    """One random plan: the greedy cover over the least one, and milliseconds for cover and allocation.

    `network_ms` is what it takes to work out the hops of the plan before that.
    """

    streams: int
    plan: int
    excess: float
    analysis_ms: float
    network_ms: float


def time_analyses(streams: int, count: int, seed: int = 7) -> list[Analysis]:
    """As many random plans whose freshness can be held."""
    rng = np.random.default_rng([seed, streams])
    timings: list[Analysis] = []
    while len(timings) < count:
        graph, tree = draw_plan(rng, streams)
        timing = _analysed(graph, tree, float(rng.uniform(1.5, 5)), len(timings))
        if timing is not None:
            timings.append(timing)
    return timings


def draw_plan(rng: np.random.Generator, streams: int) -> tuple[JoinGraph, Join]:
    """A chain of streams with rates and windows of table 3, and a random binary tree over it.

    Between two streams a probe finds about 1 to 3 rows: with table 3's own selectivities, twenty streams
    would bring forth more rows than there are numbers for.
    """
    names = [f"s{i}" for i in range(streams)]
    rates = {name: float(rng.uniform(300, 1200)) for name in names}
    windows = {name: int(rng.integers(200, 5000)) for name in names}
    chain = {
        (left, right): float(rng.uniform(1, 3)) / math.sqrt(windows[left] * windows[right])
        for left, right in pairwise(names)
    }
    tree = _tree(rng, names)
    assert isinstance(tree, Join)
    graph = JoinGraph.of(rates, {name: RowWindow(rows) for name, rows in windows.items()}, chain)
    return graph, Join(tree.inputs, tree.orders)


def _tree(rng: np.random.Generator, names: list[str]) -> JTree:
    if len(names) == 1:
        return Leaf(names[0])
    place = int(rng.integers(1, len(names)))
    node = join(_tree(rng, names[:place]), _tree(rng, names[place:]))
    return Join(node.inputs, node.orders, RowWindow(int(rng.integers(200, 5000))))


def _analysed(graph: JoinGraph, tree: Join, factor: float, number: int) -> Analysis | None:
    net, network_ms = _timed(lambda: HopNetworkBuilder(Space(graph), tree).network())
    fresh = {name: factor * graph.window_seconds(name) for name in graph.streams}
    try:
        refresh = compute_refresh_rates(graph, net, fresh)
        greedy, least = (sum(cover(net, refresh).values()) for cover in (greedy_cover, least_cover))
    except QueryError:
        return None
    budget = 2 * greedy
    _, analysis_ms = _timed(lambda: jaqpot(net, budget, compute_refresh_rates(graph, net, fresh)))
    return Analysis(len(graph.streams), number, greedy / least - 1, analysis_ms, network_ms)


def _timed(what: Callable[[], T]) -> tuple[T, float]:
    """The result, and the median of three times in milliseconds."""
    times = []
    for _ in range(3):
        started = process_time()
        result = what()
        times.append(1e3 * (process_time() - started))
    return result, median(times)
