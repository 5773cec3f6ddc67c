"""Window harvesting: the figures of Gedik et al. 2007 that follow by hand, and what holds for any mjoin."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir import QueryError
from weir.plan.tree import Join, Leaf, join
from weir.query.windows import RowWindow
from weir.shed.expected import ShedForecast
from weir.shed.harvest import allow_setting, harvest
from weir.shed.harvest_model import (
    Direction,
    HarvestSetting,
    HopHarvest,
    compute_cost,
    compute_output,
    full_setting,
)
from weir.shed.harvest_moves import add_basic_window, remove_basic_window
from weir.shed.harvest_setting import find_best_setting, greedy, greedy_reverse, improve_by_exchanges
from weir.stats.hop import Hop
from weir.stats.join_graph import JoinGraph
from weir.stats.lag_histogram import LagHistogram, LagHistograms
from weir.stats.unit_costs import UnitCosts

NODE = "(s1 s2 s3)"


def normal(mean: float, deviation: float, window: float, buckets: int = 200) -> LagHistogram:
    """A bell over all lags that windows of one length allow."""
    edges = np.linspace(-window, window, buckets + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    return LagHistogram(-window, window, tuple(np.exp(-(((middles - mean) / deviation) ** 2) / 2).tolist()))


def mass(mean: float, deviation: float, first: float, last: float) -> float:
    """The probability that a normal variable lies between two values."""
    return (math.erf((last - mean) / deviation / 2**0.5) - math.erf((first - mean) / deviation / 2**0.5)) / 2


def lagged(streams: int = 3) -> tuple[JoinGraph, Join, LagHistograms]:
    names = [f"s{i + 1}" for i in range(streams)]
    edges = dict.fromkeys(itertools.combinations(names, 2), 0.002)
    graph = JoinGraph.of(dict.fromkeys(names, 100.0), 10.0, edges, UnitCosts(compare=1.0))
    orders = tuple(tuple(j for j in range(streams) if j != i) for i in range(streams))
    lags = {name: normal(i + 2.0, 0.5, 10) for i, name in enumerate(names[1:])}
    return graph, Join(tuple(map(Leaf, names)), orders), LagHistograms("s1", lags)


def test_figure_3() -> None:
    """R_1 = {3, 2}, ranks 4, 3, 5 in W_3 and 3, 2 in W_2, fractions 0.6 and 0.4 of five basic windows."""
    hops = (
        HopHarvest(Hop("s1", NODE, "s3"), 100.0, 0.1, (0.05, 0.10, 0.25, 0.40, 0.20)),
        HopHarvest(Hop("s1", NODE, "s2"), 100.0, 0.1, (0.10, 0.30, 0.35, 0.15, 0.10)),
    )
    assert [k + 1 for k in hops[0].ranking[:3]] == [4, 3, 5]
    allowed = allow_setting([Direction("s1", 1.0, hops)], ((3, 2),), basic_window=2.0)
    kept = {hop.partner: {k + 1 for k in ages.kept} for hop, ages in allowed.ages.items()}
    assert kept == {"s3": {3, 4, 5}, "s2": {2, 3}}


def test_without_lags_the_share_of_matches_is_the_harvest_fraction() -> None:
    graph = JoinGraph.of({"a": 10, "b": 20}, 8.0, {("a", "b"): 0.1})
    for direction in ShedForecast(graph, None, 0.5).directions(join("a", "b")):
        for hop in direction.hops:
            assert hop.match_shares == pytest.approx(np.arange(17) / 16)


@pytest.mark.parametrize(("driver", "partner", "mean", "deviation"), [
    ("s1", "s2", -4.0, 1.0),  # equation 2: A_(1,2) = -A_(2,1)
    ("s2", "s1", 4.0, 1.0),
    ("s3", "s2", 2.0, 2**0.5),  # equation 4: A_(3,1) - A_(2,1), which are independent here
    ("s2", "s3", -2.0, 2**0.5),
])  # fmt: skip
def test_scores_from_histograms_are_those_of_the_densities(
    driver: str, partner: str, mean: float, deviation: float
) -> None:
    rng = np.random.default_rng(2)
    edges = np.linspace(-10, 10, 101)
    counts = {s: np.histogram(rng.normal(m, 1, 50_000), edges)[0] for s, m in (("s2", 4.0), ("s3", 6.0))}
    lags = LagHistograms(
        "s1", {s: LagHistogram(-10, 10, tuple(map(float, count))) for s, count in counts.items()}
    )
    scores = lags.age_shares(driver, partner, np.arange(0.0, 11.0))
    expected = [mass(mean, deviation, k, k + 1) for k in range(10)]
    assert scores == pytest.approx(expected, abs=0.01)


def test_ageing_lets_a_changed_correlation_show() -> None:
    known = LagHistograms("a", {"b": LagHistogram(0, 2, (1000.0, 0.0))})
    for _ in range(20):
        known = known.decay_and_add(LagHistograms("a", {"b": LagHistogram(0, 2, (0.0, 100.0))}), kept=0.7)
    assert float(known.lags["b"].share(1, 2)) > 0.99


@st.composite
def problems(draw: st.DrawFn, most: int = 3, basic_windows: int = 4) -> tuple[Direction, ...]:
    """An mjoin of a few streams whose windows have a few basic windows of any score."""
    names = [f"s{i + 1}" for i in range(draw(st.integers(2, most)))]
    scores = st.lists(st.floats(0, 1), min_size=basic_windows, max_size=basic_windows)

    def hop(driver: str, partner: str) -> HopHarvest:
        rows = draw(st.floats(10, 1000))
        selectivity = draw(st.floats(0, 0.05))
        return HopHarvest(
            Hop(driver, "m", partner),
            rows,
            selectivity,
            tuple(draw(scores)),
            compare=rows,
            match=draw(st.floats(0, 2)),
        )

    return tuple(
        Direction(name, draw(st.floats(0, 100)), tuple(hop(name, other) for other in names if other != name))
        for name in names
    )


def every_setting(directions: Sequence[Direction]) -> list[HarvestSetting]:
    counts = [list(itertools.product(*(range(n + 1) for n in one.full_counts))) for one in directions]
    return list(itertools.product(*counts))


@settings(max_examples=40, deadline=None)
@given(problems(most=2), st.floats(0.01, 1))
def test_searches_find_no_more_than_the_best_of_all_settings(
    directions: tuple[Direction, ...], throttle: float
) -> None:
    budget = throttle * compute_cost(directions, full_setting(directions))
    fitting = (s for s in every_setting(directions) if compute_cost(directions, s) <= budget * (1 + 1e-6))
    best = max(compute_output(directions, setting) for setting in fitting)
    for search in (greedy, greedy_reverse, find_best_setting):
        setting = search(directions, budget)
        assert compute_cost(directions, setting) <= budget * (1 + 1e-6)
        assert compute_output(directions, setting) <= best * (1 + 1e-6) + 1e-9


@settings(max_examples=60, deadline=None)
@given(problems(), st.floats(0.01, 1))
def test_exchanges_fit_and_never_make_worse(directions: tuple[Direction, ...], throttle: float) -> None:
    budget = throttle * compute_cost(directions, full_setting(directions))
    start = greedy(directions, budget)
    better = improve_by_exchanges(directions, budget, start)
    assert compute_cost(directions, better) <= budget * (1 + 1e-6)
    assert compute_output(directions, start) <= compute_output(directions, better) * (1 + 1e-9)


def test_an_exchange_pays_for_a_basic_window_that_greedy_steps_cannot() -> None:
    """All but one of the second hop's basic windows give little, yet are taken first: they are cheap."""
    hops = (
        HopHarvest(Hop("s1", NODE, "s2"), 100.0, 0.01, (0.5, 0.5), compare=100.0),
        HopHarvest(Hop("s1", NODE, "s3"), 100.0, 0.01, (0.4, 0.2, 0.2, 0.2), compare=100.0),
    )
    directions = (Direction("s1", 1.0, hops),)
    budget = compute_cost(directions, ((2, 2),))
    assert greedy(directions, budget) == ((1, 4),)
    assert improve_by_exchanges(directions, budget, ((1, 4),)) == ((2, 2),)


@pytest.mark.parametrize("throttle", [0.05, 0.3, 1.0])
def test_a_harvest_costs_what_it_may_and_gives_more_than_its_share(throttle: float) -> None:
    graph, plan, lags = lagged()
    directions = ShedForecast(graph, lags, 1.0).directions(plan)
    full = full_setting(directions)
    budget = throttle * compute_cost(directions, full)
    best = harvest(directions, budget, 1.0)
    assert best.cost <= budget * (1 + 1e-9)
    assert best.results >= throttle * compute_output(directions, full)
    assert bool(best.allowance.ages or best.allowance.probes) == (throttle < 1)


@pytest.mark.parametrize("throttle", [0.001, 0.01])
def test_where_not_one_basic_window_fits_a_share_of_the_rows_probes(throttle: float) -> None:
    graph, plan, lags = lagged()
    directions = ShedForecast(graph, lags, 1.0).directions(plan)
    budget = throttle * compute_cost(directions, full_setting(directions))
    best = harvest(directions, budget, 1.0)
    assert best.cost == pytest.approx(budget)
    assert best.results > 0
    shares = [share for share in best.allowance.probes.values() if 0 < share < 1]
    assert shares and best.allowance.choose == "hash"


def test_candidates_of_an_index_have_the_ages_of_the_matches() -> None:
    """A band narrows to what matches; what else it lets through may have any age."""
    pair = frozenset({"a", "b"})
    graph = JoinGraph.of({"a": 10, "b": 10}, 10.0, {("a", "b"): 0.1}, UnitCosts(compare=1.0))
    lags = LagHistograms("a", {"b": normal(-4, 1, 10)})
    for narrowing, expected in ((0.1, 0.0), (0.3, 0.2)):
        narrowed = replace(graph, narrowing={pair: narrowing})
        hop = ShedForecast(narrowed, lags, 1.0).directions(join("a", "b"))[0].hops[0]
        assert hop.costs == pytest.approx(100 * expected * np.arange(11) / 10 + hop.partials)


def test_moves_change_the_output_and_cost_of_the_settings_they_lead_to() -> None:
    edges = {("a", "b"): 0.02, ("b", "c"): 0.03}
    graph = JoinGraph.of({"a": 30, "b": 20, "c": 10}, 5.0, edges, UnitCosts(probe=1.0, match=0.5))
    lags = LagHistograms("a", {"b": normal(1, 2, 5), "c": normal(-2, 1, 5)})
    for direction in ShedForecast(graph, lags, 1.0).directions(join("a", "b", "c")):
        for counts in itertools.product(range(1, 6), repeat=2):
            results, spent = direction.evaluate(counts)
            for find_moves, move_counts in (
                (direction.moves.additions, add_basic_window),
                (direction.moves.removals, remove_basic_window),
            ):
                moves = find_moves(counts)
                assert [move.ratio for move in moves] == sorted((move.ratio for move in moves), reverse=True)
                for move in moves:
                    after = direction.evaluate(move_counts(counts, move.hop))
                    assert (results + move.output, spent + move.cost) == pytest.approx(after)


@pytest.mark.parametrize(
    ("basic_window", "message"),
    [
        (11.0, "no longer than the longest window, 10 seconds"),
        (0.0, "above zero"),
        (0.001, "more than 1000"),
    ],
)
def test_basic_windows_that_cannot_divide_a_window_are_refused(basic_window: float, message: str) -> None:
    graph, plan, lags = lagged()
    with pytest.raises(QueryError, match=message):
        ShedForecast(graph, lags, basic_window).directions(plan)


def test_only_mjoins_over_time_windows_are_harvested() -> None:
    graph, _, lags = lagged()
    with pytest.raises(QueryError, match="in an mjoin, not in the tree"):
        ShedForecast(graph, lags).directions(join(join("s1", "s2"), "s3"))
    rows = JoinGraph.of({"a": 1, "b": 1}, RowWindow(10), {("a", "b"): 0.5})
    with pytest.raises(QueryError, match="a window of rows"):
        ShedForecast(rows).directions(join("a", "b"))
