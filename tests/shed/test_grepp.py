"""GrePP and JAQPOT as Mukherji et al. 2011 print them: the numbers of the figures, and what always holds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.plan.space import Space
from weir.plan.tree import Join
from weir.shed.flow import compute_flow
from weir.shed.freshness import ROUNDING, FreshnessError, compute_refresh_rates, greedy_cover, least_cover
from weir.shed.hop_network import HopNetwork, HopNetworkBuilder, InputPath, Link
from weir.shed.jaqpot import grepp, jaqpot, jaqpot_printed
from weir.shed.linear_program import solve_grants
from weir.stats.hop import Hop
from weir.stats.join_graph import JoinGraph

from .test_hop_network import plans


def two_joins(a: float, b: float, ab: float, c: float, rate: float = 10_000.0) -> HopNetwork:
    """((A B) C) with the productivities of its four half-way joins."""
    low, top = "(A B)", "((A B) C)"
    links = (
        Link(Hop("A", low, "B"), a, rate, (), low, False),
        Link(Hop("B", low, "A"), b, rate, (), low, False),
        Link(Hop(low, top, "C"), ab, 0.0, (0, 1), None, True),
        Link(Hop("C", top, low), c, rate, (), None, True),
    )
    paths = (
        InputPath("A", rate, {0: links[0], 2: links[2]}),
        InputPath("B", rate, {1: links[1], 2: links[2]}),
        InputPath("C", rate, {3: links[3]}),
    )
    return HopNetwork(links, paths, {})


def test_figure_2a_one_join() -> None:
    a, b = 0.005 * 500, 0.001 * 5000
    links = (
        Link(Hop("A", "(A B)", "B"), a, 500, (), None, True),
        Link(Hop("B", "(A B)", "A"), b, 700, (), None, True),
    )
    net = HopNetwork(
        links=links,
        paths=(InputPath("A", 500, {0: links[0]}), InputPath("B", 700, {1: links[1]})),
        sizes={},
    )
    # A single join has one-hop paths, whose productivity is that of the half-way join.
    grants = grepp(net, 300)
    assert grants == (0, 300)
    assert compute_flow(net, grants).results == 1500
    # Beyond what stream B brings, the rest goes to A.
    assert grepp(net, 1000) == (300, 700)


def test_figure_2b_division_within_path_b() -> None:
    assert two_joins(0.5, 5, 5, 1).divide({"B": 600}) == pytest.approx((0, 100, 500, 0))


def test_figure_4() -> None:
    net = two_joins(4 / 11, 5 / 11, 1, 0.1)
    assert [path.productivity for path in net.paths] == pytest.approx([0.2667, 0.3125, 0.1], abs=1e-4)
    grants = grepp(net, 30)
    assert grants == pytest.approx((0, 20.625, 9.375, 0))
    assert compute_flow(net, grants).results == pytest.approx(9.375)


def three_joins(a: float, b: float, ab: float, c: float, abc: float, d: float) -> HopNetwork:
    """(((A B) C) D) with the productivities of its six half-way joins."""
    low, middle, top = "(A B)", "((A B) C)", "(((A B) C) D)"
    links = (
        Link(Hop("A", low, "B"), a, 100.0, (), low, False),
        Link(Hop("B", low, "A"), b, 100.0, (), low, False),
        Link(Hop(low, middle, "C"), ab, 0.0, (0, 1), middle, False),
        Link(Hop("C", middle, low), c, 100.0, (), middle, False),
        Link(Hop(middle, top, "D"), abc, 0.0, (2, 3), None, True),
        Link(Hop("D", top, middle), d, 100.0, (), None, True),
    )
    numbers = {"A": (0, 2, 4), "B": (1, 2, 4), "C": (3, 4), "D": (5,)}
    paths = tuple(InputPath(name, 100.0, {i: links[i] for i in own}) for name, own in numbers.items())
    return HopNetwork(links, paths, {})


def test_jaqpot_as_printed_covers_greedily_then_takes_the_most_productive_path() -> None:
    net, refresh = three_joins(0.5, 1, 2, 4, 1, 0.1), {"(A B)": 5.0, "((A B) C)": 20.0}
    # A row of C costs 1 + 4 and brings 4; one of B costs 1 + 1 + 2 and brings 1 and 2. So C covers the upper
    # state, then B the lower one, although B brings half of the upper state's rows anyway.
    assert greedy_cover(net, refresh) == pytest.approx({"A": 0.0, "B": 20.0, "C": 25.0, "D": 0.0})
    assert least_cover(net, refresh) == pytest.approx({"A": 0.0, "B": 20.0, "C": 12.5, "D": 0.0})
    grants = jaqpot_printed(net, 60.0, refresh)
    # The other 15 probes go to C, whose productivity of 4/5 is the highest.
    assert grants == pytest.approx(net.divide({"B": 20.0, "C": 40.0}))
    assert compute_flow(net, grants).spent == pytest.approx(60.0)
    with pytest.raises(FreshnessError, match="costs 45 and the budget is 44"):
        jaqpot_printed(net, 44.0, refresh)
    assert compute_flow(net, jaqpot(net, 44.0, refresh)).spent == pytest.approx(44.0)


@settings(max_examples=80, deadline=None)
@given(plans(), st.floats(1.2, 5), st.floats(0.5, 2.0))
def test_jaqpot_as_printed_gives_up_where_the_greedy_cover_does_not_fit(
    plan: tuple[JoinGraph, Join], times: float, share: float
) -> None:
    graph, tree = plan
    net = HopNetworkBuilder(Space(graph), tree).network()
    fresh = {stream: times * graph.window_seconds(stream) for stream in graph.streams}
    rates = compute_refresh_rates(graph, net, fresh)
    try:
        cost = sum(greedy_cover(net, rates).values())
    except FreshnessError:
        return
    budget = max(1e-3, share * cost)
    if cost > budget * ROUNDING:
        with pytest.raises(FreshnessError, match="the budget is"):
            jaqpot_printed(net, budget, rates)
        return
    flow = compute_flow(net, jaqpot_printed(net, budget, rates))
    assert flow.spent <= budget * (1 + 1e-6)
    assert all(flow.inserts[state] >= rate * (1 - 1e-6) for state, rate in rates.items())
    # The linear program finds at least as many results.
    assert flow.results <= compute_flow(net, solve_grants(net, budget, rates)).results * (1 + 1e-6) + 1e-9
