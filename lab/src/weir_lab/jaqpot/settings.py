"""Streams and plans of the experiments of Mukherji et al. 2011, drawn from its table 3.

With σ ≥ 0.01 and windows of 200 rows and more, a probe finds at least two rows, and what joins bring forth
grows from level to level; at the upper end, 10¹¹ results came each second. Settings are drawn with even
logarithms from the whole table, every rate, window and selectivity for itself. Those that are played have
shorter windows of streams, and an engine that skips nothing would store and find few enough rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from weir.plan.space import Space
from weir.plan.tree import Join, JTree, Leaf, join
from weir.query.windows import RowWindow, TimeWindow
from weir.shed.flow import Flow, compute_flow
from weir.shed.hop_network import HopNetwork, HopNetworkBuilder
from weir.stats.join_graph import JoinGraph

Shape = Literal["linear", "bushy"]
SHAPES: tuple[Shape, ...] = ("linear", "bushy")
STREAMS = "ABCD"
RATES = (300.0, 1200.0)
WINDOWS = (200.0, 5000.0)
PLAYED_WINDOWS = (200.0, 1000.0)
SELECTIVITIES = (0.01, 0.1)
FACTORS = (1.5, 3.0, 5.0)
# Batches in a stream's shortest window.
BATCHES = 16
# At saturation, rows a second into all intermediate states, and results a second.
_MOST_STORED, _MOST_RESULTS = 20_000, 400_000

CORNER = (
    f"rates {RATES[0]:g}–{RATES[1]:g} rows/s, selectivities {SELECTIVITIES[0]}–{SELECTIVITIES[1]}, windows "
    f"over joins {WINDOWS[0]:g}–{WINDOWS[1]:g} rows (all of it), windows of streams {PLAYED_WINDOWS[0]:g}–"
    f"{PLAYED_WINDOWS[1]:g} rows (its lower part), each drawn for itself; freshness {FACTORS[0]:g}x–"
    f"{FACTORS[-1]:g}x; played if at saturation at most {_MOST_STORED:,} rows/s enter intermediate states "
    f"and {_MOST_RESULTS:,} results/s leave"
)


@dataclass(frozen=True)
class Setting:
    """Streams, a plan with a window for each of its states, and freshness in multiples of windows."""

    shape: Shape
    number: int
    graph: JoinGraph
    tree: Join
    factor: float
    batches: int = BATCHES

    @cached_property
    def net(self) -> HopNetwork:
        """The plan's hops."""
        return HopNetworkBuilder(Space(self.graph), self.tree).network()

    @cached_property
    def full(self) -> Flow:
        """What flows when nothing is skipped; its probes are the saturation resources."""
        return compute_flow(self.net, [math.inf] * len(self.net.links))

    def fresh_seconds(self, factor: float) -> dict[str, float]:
        """The freshness of every stream."""
        return {name: factor * self.graph.window_seconds(name) for name in self.graph.streams}

    @property
    def longest(self) -> float:
        """Seconds of the longest window of a stream."""
        return max(map(self.graph.window_seconds, self.graph.streams))

    @property
    def renewal(self) -> float:
        """Seconds until no state over a join holds what it held before, if nothing is skipped."""
        times = []
        for node in self.tree.inner():
            if isinstance(node.window, RowWindow):
                times.append(node.window.rows / self.full.inserts[str(node)])
            elif isinstance(node.window, TimeWindow):
                times.append(node.window.microseconds / 1e6)
        return sum(times)

    @property
    def every(self) -> float:
        """Seconds between batches: small beside the shortest window.

        Of two rows of one batch only the one that comes later in the driver order can find the other; if that
        one is skipped, the model's tuple at a time would have found what a batch does not. With 8 batches a
        window, and the second selectivities of figure 6, JAQPOT had a third less than predicted, GlobalHJPR
        half as much again; with 16, as much as predicted, and a third more.
        """
        return min(map(self.graph.window_seconds, self.graph.streams)) / self.batches


def draw_settings(shape: Shape, count: int, seed: int = 5) -> list[Setting]:
    """The first settings that can be run, numbered."""
    chosen: list[Setting] = []
    for setting in draw_any_settings(shape, seed, PLAYED_WINDOWS):
        if len(chosen) == count:
            break
        if _is_playable(setting):
            number = len(chosen)
            chosen.append(replace(setting, number=number, factor=FACTORS[number % len(FACTORS)]))
    return chosen


def _is_playable(setting: Setting) -> bool:
    return sum(setting.full.inserts.values()) <= _MOST_STORED and setting.full.results <= _MOST_RESULTS


def draw_any_settings(shape: Shape, seed: int, rows: tuple[float, float] = WINDOWS) -> Iterator[Setting]:
    """Settings without end, whether they can be run or not, whose streams have windows of so many rows."""
    rng = np.random.default_rng([seed, SHAPES.index(shape)])
    number = 0
    while True:
        rates = {name: _between(rng, *RATES) for name in STREAMS}
        windows = {name: RowWindow(round(_between(rng, *rows))) for name in STREAMS}
        selectivities = tuple(_between(rng, *SELECTIVITIES) for _ in range(3))
        inner = [round(_between(rng, *WINDOWS)) for _ in range(2)]
        graph = JoinGraph.of(rates, windows, build_edges(shape, selectivities))
        yield Setting(shape, number, graph, build_tree(shape, inner), FACTORS[number % len(FACTORS)])
        number += 1


def build_edges(shape: Shape, selectivities: tuple[float, ...]) -> Mapping[tuple[str, ...], float]:
    """The chain A–B–C–D, so that the joins of a plan have these selectivities, the root's last."""
    first, two, root = selectivities
    if shape == "linear":
        return {("A", "B"): first, ("B", "C"): two, ("C", "D"): root}
    return {("A", "B"): first, ("C", "D"): two, ("B", "C"): root}


def build_tree(shape: Shape, windows: list[int]) -> Join:
    """The plans of Mukherji et al. 2011, figures 5.b and 5.c, with windows over the joins below the root."""
    pair = with_row_window(join("A", "B"), windows[0])
    if shape == "linear":
        return join(with_row_window(join(pair, "C"), windows[1]), "D")
    return join(pair, with_row_window(join("C", "D"), windows[1]))


def with_time_windows(setting: Setting) -> Setting:
    """The same streams with windows of time, as long as theirs; over joins, as long as the longest."""
    graph, window = setting.graph, TimeWindow(round(1e6 * setting.longest))
    lasting = {name: graph.window_seconds(name) for name in graph.streams}

    def lengthened(node: JTree) -> JTree:
        if isinstance(node, Leaf):
            return node
        return Join(tuple(map(lengthened, node.inputs)), node.orders, window)

    inputs = tuple(map(lengthened, setting.tree.inputs))
    return replace(setting, graph=replace(graph, windows=lasting), tree=Join(inputs, setting.tree.orders))


def with_row_window(node: JTree, rows: int) -> Join:
    """The same join with a window of its own over what it puts out."""
    assert not isinstance(node, Leaf)
    return Join(node.inputs, node.orders, RowWindow(rows))


def _between(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(math.log(low), math.log(high))))
