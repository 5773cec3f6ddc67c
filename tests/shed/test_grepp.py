"""The numbers that Mukherji et al. 2011 prints for input paths, with the productivities of its figures."""

from __future__ import annotations

import pytest

from weir.shed.flow import compute_flow
from weir.shed.hop_network import HopNetwork, InputPath, Link
from weir.shed.jaqpot import grepp
from weir.stats.hop import Hop


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
