from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.plan.bushy import _greedy, bushy
from weir.plan.cost import cost
from weir.plan.jtree_finder import all_qualified, cheapest, frontier
from weir.plan.limits import NO_LIMITS, Limits
from weir.plan.plan_candidate import PlanCandidate, tree
from weir.plan.space import Space
from weir.stats.join_graph import JoinGraph

from .graphs import graphs, trees, with_best_orders


@settings(max_examples=15, deadline=None)
@given(graphs(3, 4, cut=False))
def test_every_join_tree_is_found(graph: JoinGraph) -> None:
    space = Space(graph)
    found = all_qualified(space, NO_LIMITS, cross=True)
    everything = [with_best_orders(graph, one) for one in trees(graph.streams)]
    assert len(found) == len(everything) == {3: 4, 4: 26}[len(graph.streams)]
    assert sorted(plan.cpu for plan in found) == pytest.approx(
        sorted(cost(graph, one).cpu for one in everything)
    )
    for plan in found:
        same = cost(graph, tree(space, plan))
        assert (same.cpu, same.memory) == pytest.approx((plan.cpu, plan.memory))


@settings(max_examples=40, deadline=None)
@given(graphs(3, 6), st.floats(0.1, 1.5), st.floats(0.5, 1.5), st.booleans())
def test_the_frontier_is_what_no_qualified_plan_beats(
    graph: JoinGraph, cpu: float, memory: float, cross: bool
) -> None:
    space = Space(graph)
    trees = bushy(space)
    limits = Limits(cpu * trees.cpu * 2, memory * trees.memory)
    plans = all_qualified(space, limits, cross and len(graph.streams) < 6)
    found = frontier(space, limits, cross and len(graph.streams) < 6)
    assert all(limits.allow(plan.cpu, plan.memory) for plan in plans)
    # Sums in another order differ in the last bits, so equal plans may stand on either side, of each other
    # and of a limit that they just meet.
    for plan in plans:
        if limits.allow(plan.cpu * (1 + 1e-9), plan.memory * (1 + 1e-9)):
            assert any(_beats(other, plan) for other in found)
    for plan in found:
        assert any(_beats(other, plan) for other in plans)


@settings(max_examples=40, deadline=None)
@given(graphs(3, 6), st.floats(0.1, 1.5))
def test_the_cheapest_plan_is_the_first_of_the_frontier(graph: JoinGraph, cpu: float) -> None:
    space = Space(graph)
    most = 2 * cpu * bushy(space).cpu
    first = next(iter(frontier(space)))
    found = cheapest(space, most)
    if found is None:
        assert first.cpu >= most * (1 - 1e-9)
    else:
        assert found.cpu == pytest.approx(first.cpu) and found.cpu <= most


def _beats(one: PlanCandidate, other: PlanCandidate) -> bool:
    return one.cpu <= other.cpu * (1 + 1e-9) and one.memory <= other.memory * (1 + 1e-9)


@settings(max_examples=20, deadline=None)
@given(graphs(3, 6))
def test_the_best_bushy_tree_has_the_least_cpu_of_all_binary_ones(graph: JoinGraph) -> None:
    space = Space(graph)
    binary = [plan for plan in all_qualified(space, NO_LIMITS) if _is_binary(plan)]
    best = bushy(space)
    assert best.cpu == pytest.approx(min(plan.cpu for plan in binary))
    assert _greedy(space).cpu >= best.cpu * (1 - 1e-9)


def _is_binary(plan: PlanCandidate) -> bool:
    return not plan.inputs or (len(plan.inputs) == 2 and all(map(_is_binary, plan.inputs)))


def test_no_plan_fits_limits_of_nothing() -> None:
    graph = JoinGraph.of({"a": 1.0, "b": 1.0, "c": 1.0}, 1.0, {("a", "b"): 0.5, ("b", "c"): 0.5})
    assert all_qualified(Space(graph), Limits(memory=0.5)) == []
    assert frontier(Space(graph), Limits(memory=0.5)) == []
