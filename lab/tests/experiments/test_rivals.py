"""The rivals of Mukherji et al. 2011: the numbers that it prints, and no rival beats the linear program."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import weir
from weir import QueryError
from weir.plan.space import Space
from weir.plan.tree import join
from weir.shed.expected import ShedForecast
from weir.shed.flow import compute_flow
from weir.shed.hop_network import HopNetwork, HopNetworkBuilder, InputPath, Link, Sizes
from weir.shed.jaqpot import grepp
from weir.shed.linear_program import solve_grants
from weir.shed.strategies import STRATEGIES, choose_strategy, find_strategy
from weir.stats.hop import Hop
from weir.stats.join_graph import JoinGraph
from weir.stats.unit_costs import UnitCosts
from weir_lab.jaqpot.analysis import draw_plan
from weir_lab.jaqpot.rivals import (
    POLICIES,
    RIVALS,
    Unit,
    best_hjp,
    ebest_hjp,
    equal_hj,
    global_hjpr,
    knapsack,
    productivity_table,
    register_rivals,
    sbest_hjp,
    whole_units,
)

PLENTY = 10_000.0
_SCHEMA = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64()})


def two_joins(
    a: float, b: float, ab: float, c: float, sizes: Sizes | None = None, rate: float = PLENTY
) -> HopNetwork:
    """((A B) C) with the productivities of its four half-way joins, and the rows of its states."""
    low, top = "(A B)", "((A B) C)"

    def link(
        driver: str, node: str, partner: str, productivity: float, sources: tuple[int, ...] = ()
    ) -> Link:
        return Link(
            hop=Hop(driver, node, partner),
            productivity=productivity,
            rate=0.0 if sources else rate,
            sources=sources,
            feeds=low if node == low else None,
            is_last=node == top,
        )

    links = (
        link("A", low, "B", a),
        link("B", low, "A", b),
        link(low, top, "C", ab, (0, 1)),
        link("C", top, low, c),
    )
    paths = (
        InputPath("A", rate, {0: links[0], 2: links[2]}),
        InputPath("B", rate, {1: links[1], 2: links[2]}),
        InputPath("C", rate, {3: links[3]}),
    )
    return HopNetwork(links, paths, sizes or {})


def test_figure_2a_one_join() -> None:
    a, b = 0.005 * 500, 0.001 * 5000
    assert (a, b) == (2.5, 5)
    hops = Hop("A", "(A B)", "B"), Hop("B", "(A B)", "A")
    links = (Link(hops[0], a, 500, (), None, True), Link(hops[1], b, 700, (), None, True))
    net = HopNetwork(
        links=links,
        paths=(InputPath("A", 500, {0: links[0]}), InputPath("B", 700, {1: links[1]})),
        sizes={},
    )
    grants = best_hjp(net, 300)
    assert grants == (0, 300)
    assert compute_flow(net, grants).results == 1500
    # A single join has one-hop paths, whose productivity is that of the half-way join.
    assert grepp(net, 300) == grants
    # Beyond what stream B brings, the rest goes to A.
    assert best_hjp(net, 1000) == (300, 700)


def test_table_2_and_figure_4() -> None:
    net = two_joins(4 / 11, 5 / 11, 1, 0.1)
    assert productivity_table(net) == {"A": Unit(11, 15, 4), "B": Unit(11, 16, 5), "C": Unit(10, 10, 1)}
    assert compute_flow(net, whole_units(net, 30)).results == pytest.approx(6)
    assert compute_flow(net, knapsack(net, 30)).results == pytest.approx(8)
    assert compute_flow(net, grepp(net, 30)).results == pytest.approx(9.375)


# Figure 10: a finds 0.5 partners, b 5, ab 5, c 1; so the joins' selectivities are 0.001 and 0.005.
FIGURE_10 = two_joins(0.5, 5, 5, 1, {"A": 5000, "B": 500, "C": 1000, "(A B)": 200})


def test_table_4_equal_hj() -> None:
    flowing = compute_flow(FIGURE_10, equal_hj(FIGURE_10, 300))
    assert flowing.probes == (75, 75, 75, 75)
    assert flowing.inserts == {"(A B)": 412.5}
    assert flowing.results == 450


def test_table_4_global_hjpr() -> None:
    grants = global_hjpr(FIGURE_10, 300)
    assert [round(probes) for probes in grants] == [13, 130, 130, 26]
    flowing = compute_flow(FIGURE_10, grants)
    # The paper rounds the grants to 13, 130, 130 and 27 first, and so prints 656.5 and 677.
    assert flowing.inserts["(A B)"] == pytest.approx(656.5, rel=0.005)
    assert flowing.results == pytest.approx(677, rel=0.005)


def test_table_4_ebest_hjp() -> None:
    flowing = compute_flow(FIGURE_10, ebest_hjp(FIGURE_10, 300))
    assert flowing.probes == (0, 150, 150, 0)
    assert flowing.inserts == {"(A B)": 750}
    assert flowing.results == 750


def test_table_4_sbest_hjp() -> None:
    """Here the table contradicts its own figure: 50 rows of b that find 5 partners make 250 ab, not 150.

    So all of the 250 probes of the root are used, none is wasted, and there are 1250 results, not 750.
    """
    flowing = compute_flow(FIGURE_10, sbest_hjp(FIGURE_10, 300))
    assert flowing.probes == pytest.approx((0, 50, 250, 0))
    assert flowing.inserts == pytest.approx({"(A B)": 250})
    assert flowing.results == pytest.approx(1250)


@pytest.mark.parametrize("seed", range(6))
def test_no_policy_beats_the_linear_program(seed: int) -> None:
    graph, tree = draw_plan(np.random.default_rng(seed), 4)
    net = HopNetworkBuilder(Space(graph), tree).network()
    budget = 0.3 * compute_flow(net, [PLENTY] * len(net.links)).spent
    best = compute_flow(net, solve_grants(net, budget))
    for policy in POLICIES.values():
        rival = compute_flow(net, policy(net, budget))
        assert rival.spent <= budget * (1 + 1e-9)
        assert rival.results <= best.results * (1 + 1e-6)


@pytest.mark.parametrize("rate", [0.0, 10.0])
def test_streams_that_bring_nothing_give_nothing(rate: float) -> None:
    graph = JoinGraph.of({"a": rate, "b": 20, "c": 5}, 2, {("a", "b"): 0.0, ("b", "c"): 0.1})
    for tree in (join(join("a", "b"), "c"), join("a", "b", "c")):
        net = HopNetworkBuilder(Space(graph), tree).network()
        for policy in POLICIES.values():
            assert compute_flow(net, policy(net, 10)).results == 0


@pytest.fixture
def own_strategies() -> Iterator[list[str]]:
    """The names in the table before a test, which are also those after it."""
    before = dict(STRATEGIES)
    yield list(before)
    STRATEGIES.clear()
    STRATEGIES.update(before)


def test_rivals_can_be_chosen_once_they_are_registered(own_strategies: list[str]) -> None:
    with pytest.raises(QueryError, match=r"unknown strategy 'EqualHJ' in shed="):
        find_strategy("EqualHJ")
    register_rivals()
    assert list(STRATEGIES) == [*own_strategies, *RIVALS]
    with pytest.raises(QueryError, match="'EqualHJ' already"):
        register_rivals()
    graph = JoinGraph.of({"a": 10, "b": 20}, 5.0, {("a", "b"): 0.1}, UnitCosts(compare=1.0))
    forecast, plan = ShedForecast(graph), join("a", "b")
    budget = 0.3 * forecast.estimate_exact(plan)[1]
    best = choose_strategy(forecast, plan, budget, "jaqpot").results
    for name in RIVALS:
        rival = choose_strategy(forecast, plan, budget, name)
        assert rival.name == name
        assert 0 < rival.results <= best * (1 + 1e-9)
    asked = weir.join(
        streams=dict.fromkeys("ab", _SCHEMA), on="a.k = b.k", within="5 seconds", plan="mjoin", shed="EqualHJ"
    )
    assert asked.query.names == ("a", "b")
