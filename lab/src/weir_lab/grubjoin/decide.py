"""Figures 7 to 10: how good the greedy settings are, and how long they take.

A problem has rates uniform in [100, 500] as in the paper, which does not say how selectivities and
correlations are drawn. Here selectivities are spread evenly on a logarithmic scale from 1e-4 to 1e-2; a
stream's lag against the first one is a bell with a mean uniform over all lags that the windows allow, and a
deviation spread on a logarithmic scale from a twentieth of the window to the window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from time import process_time
from typing import get_args

import numpy as np

from weir.plan.tree import Join, Leaf
from weir.shed.expected import ShedForecast
from weir.shed.harvest_model import Direction, HarvestSetting, compute_cost, compute_output, full_setting
from weir.shed.harvest_setting import find_best_setting, greedy, greedy_reverse
from weir.stats.join_graph import JoinGraph
from weir.stats.lag_histogram import LagHistogram, LagHistograms
from weir.stats.unit_costs import UnitCosts
from weir_lab.grubjoin.search import Metric, brute_force, double_sided, greedy_by

WINDOW = 10.0
RATES = (100.0, 500.0)
SELECTIVITIES = (1e-4, 1e-2)
WIDTHS = (0.05, 1.0)
BETTER = "both ways, and exchanges"
METRICS: tuple[Metric, ...] = get_args(Metric)
_BUCKETS = 128

Search = Callable[[Sequence[Direction], float], HarvestSetting]
SEARCHES: dict[str, Search] = {
    "greedy": greedy,
    "greedy reverse": greedy_reverse,
    "double-sided": double_sided,
    "exhaustive": brute_force,
    BETTER: find_best_setting,
}


@dataclass(frozen=True, slots=True)
class Optimality:
    """The mean and the least share of the best output, over all problems at one throttle fraction."""

    throttle: float
    metric: str
    mean: float
    least: float
    problems: int


@dataclass(frozen=True, slots=True)
class Timing:
    """The median of the CPU time that a search takes."""

    figure: str
    search: str
    streams: int
    ranges: int
    throttle: float
    milliseconds: float


def draw_problem(rng: np.random.Generator, streams: int, ranges: int) -> tuple[Direction, ...]:
    """A random mjoin with so many ranges in a window, its orders by low selectivity first."""
    names = [f"s{i + 1}" for i in range(streams)]
    edges = {pair: _spread(rng, *SELECTIVITIES) for pair in combinations(names, 2)}
    rates = {name: float(rng.uniform(*RATES)) for name in names}
    graph = JoinGraph.of(rates, WINDOW, edges, UnitCosts(compare=1.0))
    orders = tuple(_order(names, edges, i) for i in range(streams))
    lags = {name: _bell(rng) for name in names[1:]}
    plan = Join(tuple(map(Leaf, names)), orders)
    return ShedForecast(graph, LagHistograms(names[0], lags), WINDOW / ranges).directions(plan)


def measure_optimality(count: int, throttles: Sequence[float], seed: int = 7) -> Iterator[Optimality]:
    """Figure 7: three streams, ten ranges."""
    problems = [draw_problem(np.random.default_rng([seed, i]), 3, 10) for i in range(count)]
    for throttle in throttles:
        shares: dict[str, list[float]] = {metric: [] for metric in (*METRICS, BETTER)}
        for directions in problems:
            budget = throttle * compute_cost(directions, full_setting(directions))
            best = compute_output(directions, brute_force(directions, budget))
            if best <= 0:
                continue
            for metric in METRICS:
                setting = greedy_by(directions, budget, metric)
                shares[metric].append(compute_output(directions, setting) / best)
            setting = find_best_setting(directions, budget)
            shares[BETTER].append(compute_output(directions, setting) / best)
        for name, of_best in shares.items():
            yield Optimality(throttle, name, float(np.mean(of_best)), min(of_best), len(of_best))


def measure_timings(repeats: int, ranges: Sequence[int], throttles: Sequence[float]) -> Iterator[Timing]:
    """Figures 8, 9 and 10."""
    for streams in (3, 4, 5):
        for count in ranges:
            yield _timed("8", "greedy", streams, count, 0.25, repeats)
            if streams == 3:
                yield _timed("8", "exhaustive", streams, count, 0.25, max(1, repeats // 4))
        for throttle in throttles:
            yield _timed("9", "greedy", streams, 20, throttle, repeats)
            yield _timed("9", "double-sided", streams, 20, throttle, repeats)
            if streams == 5:
                yield _timed("9", BETTER, streams, 20, throttle, repeats)
    for throttle in throttles:
        for search in ("greedy", "greedy reverse", "double-sided"):
            yield _timed("10", search, 3, 20, throttle, repeats)


def _timed(figure: str, search: str, streams: int, ranges: int, throttle: float, repeats: int) -> Timing:
    took = []
    for i in range(repeats):
        directions = draw_problem(np.random.default_rng([8, i]), streams, ranges)
        # This also makes the tables that a direction keeps.
        budget = throttle * compute_cost(directions, full_setting(directions))
        started = process_time()
        SEARCHES[search](directions, budget)
        took.append(1000 * (process_time() - started))
    return Timing(figure, search, streams, ranges, throttle, median(took))


def _order(names: Sequence[str], edges: Mapping[tuple[str, str], float], i: int) -> tuple[int, ...]:
    others = (j for j in range(len(names)) if j != i)
    return tuple(sorted(others, key=lambda j: edges[_pair(names, i, j)]))


def _pair(names: Sequence[str], i: int, j: int) -> tuple[str, str]:
    return (names[i], names[j]) if i < j else (names[j], names[i])


def _bell(rng: np.random.Generator) -> LagHistogram:
    edges = np.linspace(-WINDOW, WINDOW, _BUCKETS + 1)
    away = ((edges[1:] + edges[:-1]) / 2 - rng.uniform(-WINDOW, WINDOW)) / (WINDOW * _spread(rng, *WIDTHS))
    return LagHistogram(-WINDOW, WINDOW, tuple((np.exp(-(away**2) / 2) + 1e-12).tolist()))


def _spread(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))
