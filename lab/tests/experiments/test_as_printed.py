"""The searches of Zhu et al. 2010 as printed, against those of the product."""

from __future__ import annotations

import numpy as np
import pytest

from weir.plan.jtree_finder import find_frontier
from weir.plan.limits import NO_LIMITS, Limits
from weir.plan.products import list_products
from weir.plan.space import Space
from weir.stats.join_graph import JoinGraph
from weir.stats.unit_costs import UnitCosts
from weir_lab.qualified.as_printed import find_all_qualified, search_two_layers
from weir_lab.qualified.settings import Setting, draw_settings, search_layers, tune_ranges


@pytest.mark.parametrize(("streams", "trees"), [(3, 4), (4, 26), (5, 236)])
def test_algorithm_1_finds_every_join_tree(streams: int, trees: int) -> None:
    setting = draw_settings("tuned", tune_ranges(streams, 5), 1)[0]
    space = Space(setting.graph, products=list_products(setting.graph))
    plans = find_all_qualified(space, NO_LIMITS)
    assert len(plans) == trees


@pytest.mark.parametrize("cross", [False, True])
def test_the_frontier_is_what_no_plan_of_algorithm_1_dominates(cross: bool) -> None:
    for setting in draw_settings("between", tune_ranges(5, 5), 6):
        space = Space(setting.graph, products=list_products(setting.graph) if cross else ())
        plans = find_all_qualified(space, setting.limits)
        frontier = find_frontier(space, setting.limits)
        least = [min(p.cpu for p in plans if p.memory <= f.memory * (1 + 1e-9)) for f in frontier]
        np.testing.assert_allclose([plan.cpu for plan in frontier], least)
        assert bool(plans) == bool(frontier)


def test_algorithm_2_takes_the_bjtree_for_the_plan_with_the_least_cpu() -> None:
    """With costly inserts the mjoin of three streams is cheaper, and the search as printed gives up."""
    costs = UnitCosts.per_match(1e-6, insert=1e-6, delete=1e-6)
    edges = {("a", "b"): 0.5, ("b", "c"): 0.01, ("c", "d"): 0.5}
    graph = JoinGraph.of(dict.fromkeys("abcd", 20.0), 1.0, edges, costs)
    limits = Limits(cpu=find_frontier(Space(graph))[0].cpu)
    assert search_two_layers(Space(graph), limits) is None
    assert search_layers(Setting(0, graph, limits)) is not None


def test_no_plan_fits_limits_of_nothing() -> None:
    graph = JoinGraph.of({"a": 1.0, "b": 1.0, "c": 1.0}, 1.0, {("a", "b"): 0.5, ("b", "c"): 0.5})
    assert find_all_qualified(Space(graph), Limits(memory=0.5)) == []
