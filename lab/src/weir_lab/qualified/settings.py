"""Random join graphs as in Zhu et al. 2010, section 6; with their limits some have a qualified plan.

Rates are uniform in [1, 100] rows a second. Which streams are joined is said to be random: here by a random
tree, so that the graph is connected, and every further pair with a chance of 1 / 2N. Selectivities are
uniform in (0, s); the paper has s = 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from weir.plan.bushy import find_bushy_tree
from weir.plan.choose import search_two_layers
from weir.plan.limits import Limits
from weir.plan.plan_candidate import PlanCandidate, make_mjoin
from weir.plan.space import Space
from weir.stats.join_graph import JoinGraph
from weir_lab.qualified.table2 import CPU_AVAILABLE, TABLE_3

Design = Literal["printed", "tuned", "between"]
_NAMES = "ABCDEFGHIJKLMNOPQRST"
_MEAN_RATE = 50.5
# No window is printed. The printed ranges are shown with one second, the kindest of whole seconds.
PRINTED_WINDOW = 1.0
TUNED_WINDOW = 10.0
# Rows that fit, in units of what the streams' own windows hold on average.
_ROOM = 1.5
_MAGNITUDES = 2.0


@dataclass(frozen=True, slots=True)
class Ranges:
    """What settings of N streams are drawn from: the window (seconds), s, and what the machine has."""

    streams: int
    window: float
    selectivity: float
    limits: Limits


@dataclass(frozen=True, slots=True)
class Setting:
    """One join graph and one machine."""

    number: int
    graph: JoinGraph
    limits: Limits


def printed_ranges(streams: int) -> Ranges:
    """The paper's own ranges; it prints no memory limit."""
    return Ranges(streams, PRINTED_WINDOW, 1.0, Limits(CPU_AVAILABLE))


def tune_ranges(streams: int, tries: int) -> Ranges:
    """Selectivities so small that about half of the settings have a qualified plan, found by bisection."""
    low, high = -6.0, 0.0
    for _ in range(8):
        middle = (low + high) / 2
        share = qualified_share(draw_settings("tuned", _tuned(streams, 10**middle), tries))
        low, high = (middle, high) if share > 0.5 else (low, middle)
        if 0.4 <= share <= 0.6:
            break
    return _tuned(streams, 10**middle)


def qualified_share(drawn: Sequence[Setting]) -> float:
    """The share of settings with a plan that fits, as far as the two-layer search can tell."""
    return sum(search_layers(setting) is not None for setting in drawn) / len(drawn)


def search_layers(setting: Setting) -> PlanCandidate | None:
    """Run the product's two-layer search, however few streams there are; None if nothing it finds fits."""
    space = Space(setting.graph)
    plan, _ = search_two_layers(space, setting.limits, make_mjoin(space), find_bushy_tree(space))
    return plan if setting.limits.allow(plan.cpu, plan.memory) else None


def draw_settings(design: Design, ranges: Ranges, count: int) -> list[Setting]:
    """The first settings; with `between`, each has limits of its own (see `_between`)."""
    drawn: list[Setting] = []
    number = 0
    while len(drawn) < count:
        rng = np.random.default_rng([ranges.streams, number])
        graph = _graph(rng, ranges)
        limits = _between(graph, rng) if design == "between" else ranges.limits
        if limits is not None:
            drawn.append(Setting(number, graph, limits))
        number += 1
    return drawn


def _tuned(streams: int, selectivity: float) -> Ranges:
    room = _ROOM * _MEAN_RATE * TUNED_WINDOW * streams
    return Ranges(streams, TUNED_WINDOW, selectivity, Limits(CPU_AVAILABLE, room))


def _graph(rng: np.random.Generator, ranges: Ranges) -> JoinGraph:
    names, count = _NAMES[: ranges.streams], ranges.streams
    rates = {name: float(rng.uniform(1, 100)) for name in names}
    order = rng.permutation(count)
    edges = {frozenset((int(order[i]), int(order[rng.integers(i)]))) for i in range(1, count)}
    edges |= {frozenset((i, j)) for i in range(count) for j in range(i) if rng.random() < 0.5 / count}
    shares = {
        tuple(names[i] for i in edge): ranges.selectivity * float(1 - rng.random())
        for edge in sorted(map(sorted, edges))
    }
    return JoinGraph.of(rates, ranges.window, shares, TABLE_3)


def _between(graph: JoinGraph, rng: np.random.Generator) -> Limits | None:
    """Limits between what the mjoin and what the best bjtree take, so that neither of them fits.

    None where the mjoin takes less of both: there is nothing between.
    """
    space = Space(graph)
    mjoin, bjtree = make_mjoin(space), find_bushy_tree(space)
    if bjtree.cpu >= mjoin.cpu:
        return None
    # Sizes differ by orders of magnitude, so the way is measured in them: all of it down to a hundredth.
    cpu, memory = (float(10**-share) for share in rng.uniform(0, _MAGNITUDES, 2))
    return Limits(
        bjtree.cpu + cpu * (mjoin.cpu - bjtree.cpu),
        mjoin.memory + memory * (bjtree.memory - mjoin.memory),
    )
