"""GrubJoin as printed: throttle fractions, and searches that only experiments need."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest

from weir import QueryError
from weir.plan.tree import Join, Leaf
from weir.shed.harvest_model import compute_cost, compute_output, full_setting
from weir.shed.harvest_setting import find_best_setting, greedy_reverse
from weir.stats.hop import Hop
from weir.stats.join_graph import JoinGraph
from weir.stats.lag_histogram import LagHistogram, LagHistograms
from weir.stats.unit_costs import UnitCosts
from weir_lab.grubjoin.decide import draw_problem
from weir_lab.grubjoin.search import Metric, brute_force, double_sided, greedy_by
from weir_lab.grubjoin.throttle import measured_directions, throttled_harvest, update_throttle

PLAN = Join((Leaf("s1"), Leaf("s2"), Leaf("s3")), ((1, 2), (2, 0), (1, 0)))
EDGES = {("s2", "s3"): 0.0001, ("s1", "s2"): 0.0002, ("s1", "s3"): 0.0003}
GRAPH = JoinGraph.of({"s1": 300, "s2": 100, "s3": 150}, 10.0, EDGES, UnitCosts(compare=1.0))


def normal(mean: float, deviation: float) -> LagHistogram:
    middles = np.linspace(-9.95, 9.95, 200)
    return LagHistogram(-10, 10, tuple(np.exp(-(((middles - mean) / deviation) ** 2) / 2).tolist()))


LAGS = LagHistograms("s1", {"s2": normal(4, 4), "s3": normal(5, 4)})


def test_throttle() -> None:
    assert update_throttle(1.0, consumed=30, arrived=60) == 0.5
    assert update_throttle(0.5, consumed=60, arrived=60, boost=1.2) == 0.6
    assert update_throttle(0.9, consumed=60, arrived=60, boost=1.2) == 1.0
    assert update_throttle(0.5, consumed=0, arrived=0) == 0.6
    assert 0 < update_throttle(0.5, consumed=0, arrived=60) < 0.01
    with pytest.raises(QueryError, match="boost"):
        update_throttle(0.5, 1, 1, boost=1.0)


def test_figure_4() -> None:
    """λ = 300, 100, 150, windows of 10, basic windows of 2, half of the cost, S_2 4 and S_3 5 seconds behind.

    The selectivities and the widths of the densities stand only in the picture. Those here fit the text: low
    selectivity first gives R_1 = {2, 3}, R_2 = {3, 1}, R_3 = {2, 1}, and lags spread by four seconds.
    """
    directions = measured_directions(GRAPH, PLAN, 2.0, LAGS)
    best = brute_force(directions, 0.5 * compute_cost(directions, full_setting(directions)))
    assert best[2] == (5, 5)
    assert best[0] != (5, 5) and best[1] != (5, 5)


@pytest.mark.parametrize("throttle", [0.02, 0.2, 0.7])
@pytest.mark.parametrize("seed", range(4))
def test_searches_fit_and_find_no_more_than_brute_force(seed: int, throttle: float) -> None:
    directions = draw_problem(np.random.default_rng(seed), 3, 5)
    budget = throttle * compute_cost(directions, full_setting(directions))
    best = compute_output(directions, brute_force(directions, budget))
    settings = [search(directions, budget) for search in (greedy_reverse, double_sided, find_best_setting)]
    settings += [greedy_by(directions, budget, metric) for metric in get_args(Metric)]
    for setting in settings:
        assert compute_cost(directions, setting) <= budget * (1 + 1e-6)
        assert compute_output(directions, setting) <= best * (1 + 1e-6)


@pytest.mark.parametrize("throttle", [0.05, 0.3, 1.0])
def test_a_throttled_harvest_costs_what_it_may(throttle: float) -> None:
    full = throttled_harvest(GRAPH, PLAN, 1.0, LAGS)
    assert not full.allowance.ages and not full.allowance.probes
    harvest = throttled_harvest(GRAPH, PLAN, throttle, LAGS, sample=0.1)
    assert harvest.cost <= throttle * full.cost * (1 + 1e-9)
    assert harvest.results >= throttle * full.results
    assert harvest.allowance.sample == pytest.approx(0.1 * throttle)


def test_measured_selectivities_replace_those_of_the_graph() -> None:
    hop = Hop("s1", str(PLAN), "s2")
    hops = [
        other
        for direction in measured_directions(GRAPH, PLAN, 1.0, LAGS, {hop: 0.5})
        for other in direction.hops
    ]
    assert [other.selectivity for other in hops if other.hop == hop] == [0.5]
    assert all(other.selectivity < 0.1 for other in hops if other.hop != hop)


@pytest.mark.parametrize("throttle", [0.0, 1.1, math.nan])
def test_throttle_fractions_and_samples_are_checked(throttle: float) -> None:
    with pytest.raises(QueryError, match="above 0 and at most 1"):
        throttled_harvest(GRAPH, PLAN, throttle)
    with pytest.raises(QueryError, match="a share from 0 to 1"):
        throttled_harvest(GRAPH, PLAN, 0.5, sample=throttle - 1.5)
