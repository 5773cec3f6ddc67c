"""The numbers that Mukherji et al. 2011 prints, on networks with the productivities of its figures."""

from __future__ import annotations

import pytest

from weir.shed.flow import flow
from weir.shed.grepp import (
    Unit,
    best_hjp,
    ebest_hjp,
    equal_hj,
    global_hjpr,
    grepp,
    knapsack,
    productivity_table,
    sbest_hjp,
    whole_units,
)
from weir.shed.hop_network import HopNetwork, Link, Path
from weir.stats.batch import Hop

PLENTY = 10_000.0


def two_joins(
    a: float, b: float, ab: float, c: float, shares: tuple[float, float] = (1, 1), rate: float = PLENTY
) -> HopNetwork:
    """((A B) C) with the productivities of its four half-way joins, and the selectivities of its joins."""
    low, top = "(A B)", "((A B) C)"

    def link(driver: str, node: str, partner: str, found: float, sources: tuple[int, ...] = ()) -> Link:
        return Link(
            hop=Hop(driver, node, partner),
            productivity=found,
            selectivity=shares[node == top],
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
        Path("A", rate, (0, 2), (a, ab), (low, None)),
        Path("B", rate, (1, 2), (b, ab), (low, None)),
        Path("C", rate, (3,), (c,), (None,)),
    )
    return HopNetwork(links, paths, {})


def test_figure_2a_one_join() -> None:
    a, b = 0.005 * 500, 0.001 * 5000
    assert (a, b) == (2.5, 5)
    hops = Hop("A", "(A B)", "B"), Hop("B", "(A B)", "A")
    net = HopNetwork(
        links=(
            Link(hops[0], a, 0.005, 500, (), None, True),
            Link(hops[1], b, 0.001, 700, (), None, True),
        ),
        paths=(Path("A", 500, (0,), (a,), (None,)), Path("B", 700, (1,), (b,), (None,))),
        sizes={},
    )
    grants = best_hjp(net, 300)
    assert grants == (0, 300)
    assert flow(net, grants).results == 1500
    # A single join has one-hop paths, whose productivity is that of the half-way join.
    assert grepp(net, 300) == grants
    # Beyond what stream B brings, the rest goes to A.
    assert best_hjp(net, 1000) == (300, 700)


def test_figure_2b_division_within_path_b() -> None:
    net = two_joins(0.5, 5, 5, 1)
    assert net.paths[1].divided(600) == pytest.approx((100, 500))


def test_table_2_and_figure_4() -> None:
    net = two_joins(4 / 11, 5 / 11, 1, 0.1)
    assert [path.productivity for path in net.paths] == pytest.approx([0.2667, 0.3125, 0.1], abs=1e-4)
    assert productivity_table(net) == {"A": Unit(11, 15, 4), "B": Unit(11, 16, 5), "C": Unit(10, 10, 1)}
    assert flow(net, whole_units(net, 30)).results == pytest.approx(6)
    assert flow(net, knapsack(net, 30)).results == pytest.approx(8)
    grants = grepp(net, 30)
    assert grants == pytest.approx((0, 20.625, 9.375, 0))
    assert flow(net, grants).results == pytest.approx(9.375)


# Figure 10: a finds 0.5 partners, b 5, ab 5, c 1; the joins' selectivities are 0.001 and 0.005.
FIGURE_10 = two_joins(0.5, 5, 5, 1, (0.001, 0.005))


def test_table_4_equal_hj() -> None:
    found = flow(FIGURE_10, equal_hj(FIGURE_10, 300))
    assert found.probes == (75, 75, 75, 75)
    assert found.inserts == {"(A B)": 412.5}
    assert found.results == 450


def test_table_4_global_hjpr() -> None:
    grants = global_hjpr(FIGURE_10, 300)
    assert [round(probes) for probes in grants] == [13, 130, 130, 26]
    found = flow(FIGURE_10, grants)
    # The paper rounds the grants to 13, 130, 130 and 27 first, and so prints 656.5 and 677.
    assert found.inserts["(A B)"] == pytest.approx(656.5, rel=0.005)
    assert found.results == pytest.approx(677, rel=0.005)


def test_table_4_ebest_hjp() -> None:
    found = flow(FIGURE_10, ebest_hjp(FIGURE_10, 300))
    assert found.probes == (0, 150, 150, 0)
    assert found.inserts == {"(A B)": 750}
    assert found.results == 750


def test_table_4_sbest_hjp() -> None:
    """Here the table contradicts its own figure: 50 rows of b that find 5 partners make 250 ab, not 150.

    So all of the 250 probes of the root are used, none is wasted, and there are 1250 results, not 750.
    """
    found = flow(FIGURE_10, sbest_hjp(FIGURE_10, 300))
    assert found.probes == (0, 50, 250, 0)
    assert found.inserts == {"(A B)": 250}
    assert found.results == 1250
