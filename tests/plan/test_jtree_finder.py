from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.plan.bushy import _search_greedily, find_bushy_tree
from weir.plan.cost import PlanCost, cost
from weir.plan.jtree_finder import find_cheapest_plan, find_frontier
from weir.plan.limits import Limits
from weir.plan.plan_candidate import PlanCandidate, to_tree
from weir.plan.products import list_products
from weir.plan.space import Space
from weir.stats.join_graph import JoinGraph

from .graphs import graphs, plans_of


@settings(max_examples=40, deadline=None)
@given(graphs(3, 5), st.floats(0.1, 1.5), st.floats(0.5, 1.5), st.booleans())
def test_the_frontier_is_what_no_qualified_plan_dominates(
    graph: JoinGraph, cpu: float, memory: float, cross: bool
) -> None:
    cross = cross and len(graph.streams) < 5
    space = Space(graph, products=list_products(graph) if cross else ())
    bjtree = find_bushy_tree(Space(graph))
    limits = Limits(cpu * bjtree.cpu * 2, memory * bjtree.memory)
    plans = [cost(graph, plan) for plan in plans_of(graph, cross)]
    frontier = find_frontier(space, limits)
    # Sums in another order differ in the last bits, so equal plans may stand on either side, of each other
    # and of a limit that they just meet.
    for plan in plans:
        if limits.allow(plan.cpu * (1 + 1e-9), plan.memory * (1 + 1e-9)):
            assert any(_dominates(other, plan) for other in frontier)
    for candidate in frontier:
        assert limits.allow(candidate.cpu, candidate.memory)
        assert any(_dominates(other, candidate) for other in plans)
        same = cost(graph, to_tree(space, candidate))
        assert (same.cpu, same.memory) == pytest.approx((candidate.cpu, candidate.memory))


@settings(max_examples=40, deadline=None)
@given(graphs(3, 6), st.floats(0.1, 1.5))
def test_the_cheapest_plan_is_the_first_of_the_frontier(graph: JoinGraph, cpu: float) -> None:
    space = Space(graph)
    most = 2 * cpu * find_bushy_tree(space).cpu
    first = next(iter(find_frontier(space)))
    cheapest = find_cheapest_plan(space, most)
    if cheapest is None:
        assert first.cpu >= most * (1 - 1e-9)
    else:
        assert cheapest.cpu == pytest.approx(first.cpu) and cheapest.cpu <= most


def _dominates(plan: PlanCandidate | PlanCost, other: PlanCandidate | PlanCost) -> bool:
    return plan.cpu <= other.cpu * (1 + 1e-9) and plan.memory <= other.memory * (1 + 1e-9)


@settings(max_examples=20, deadline=None)
@given(graphs(3, 5))
def test_the_best_bushy_tree_has_the_least_cpu_of_all_binary_ones(graph: JoinGraph) -> None:
    binary = [plan for plan in plans_of(graph) if all(len(node.inputs) == 2 for node in plan.inner())]
    best = find_bushy_tree(Space(graph))
    assert best.cpu == pytest.approx(min(cost(graph, plan).cpu for plan in binary))
    assert _search_greedily(Space(graph)).cpu >= best.cpu * (1 - 1e-9)


def test_no_plan_fits_limits_of_nothing() -> None:
    graph = JoinGraph.of({"a": 1.0, "b": 1.0, "c": 1.0}, 1.0, {("a", "b"): 0.5, ("b", "c"): 0.5})
    assert find_frontier(Space(graph), Limits(memory=0.5)) == []
