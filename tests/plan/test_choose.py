from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir import QueryError
from weir.plan.bushy import find_bushy_tree
from weir.plan.choose import choose, most_headroom, search_two_layers
from weir.plan.cost import cost
from weir.plan.hill_climb import least_cpu
from weir.plan.jtree_finder import find_frontier
from weir.plan.limits import Limits
from weir.plan.plan_candidate import PlanCandidate, make_mjoin, to_tree
from weir.plan.products import list_products
from weir.plan.space import Space
from weir.plan.tree import join
from weir.stats.join_graph import JoinGraph
from weir.stats.unit_costs import UnitCosts

from .graphs import PAPER, graphs, plans_of


def limits_of(graph: JoinGraph, cpu: float, memory: float) -> Limits:
    """Limits between what the thriftiest and the greediest plans take, a hair wider than sums may round."""
    plans = find_frontier(Space(graph))
    fast, small = plans[0], plans[-1]
    hair = 1 + 1e-9
    return Limits(
        hair * (fast.cpu + cpu * (small.cpu - fast.cpu)),
        hair * (small.memory + memory * (fast.memory - small.memory)),
    )


def two_layers(graph: JoinGraph, limits: Limits) -> PlanCandidate:
    space = Space(graph)
    return search_two_layers(space, limits, make_mjoin(space), find_bushy_tree(space))[0]


@settings(max_examples=60, deadline=None)
@given(graphs(3, 6), st.floats(-0.2, 1.2), st.floats(-0.2, 1.2))
def test_a_plan_is_called_qualified_if_and_only_if_one_exists(
    graph: JoinGraph, cpu: float, memory: float
) -> None:
    limits = limits_of(graph, cpu, memory)
    exists = bool(find_frontier(Space(graph), limits))
    plan = two_layers(graph, limits)
    taken = cost(graph, to_tree(Space(graph), plan))
    assert (taken.cpu, taken.memory) == pytest.approx((plan.cpu, plan.memory))
    assert limits.allow(plan.cpu, plan.memory) == exists
    # With products there may be one more; `test_products` has the proof for few streams.
    assert choose(graph, limits).qualified >= exists


@settings(max_examples=30, deadline=None)
@given(graphs(3, 5))
def test_no_plan_takes_less_than_the_lower_bound(graph: JoinGraph) -> None:
    least, mjoin = least_cpu(Space(graph)), make_mjoin(Space(graph))
    for tree in plans_of(graph):
        plan = cost(graph, tree)
        assert plan.cpu >= least * (1 - 1e-9)
        assert plan.memory >= mjoin.memory * (1 - 1e-9)


@settings(max_examples=30, deadline=None)
@given(graphs(3, 6), st.floats(0, 1), st.floats(0, 1))
def test_the_most_headroom_is_the_least_use_of_the_tighter_limit(
    graph: JoinGraph, cpu: float, memory: float
) -> None:
    limits = limits_of(graph, cpu, memory)
    plans = find_frontier(Space(graph), limits)
    if not plans:
        return
    plan = most_headroom(plans, limits)
    assert limits.excess(plan.cpu, plan.memory) == min(limits.excess(p.cpu, p.memory) for p in plans)
    assert most_headroom(plans, Limits(memory=limits.memory)).cpu == min(p.cpu for p in plans)


@settings(max_examples=40, deadline=None)
@given(
    graphs(3, 5),
    st.one_of(st.just(math.inf), st.floats(-0.2, 1.2)),
    st.one_of(st.just(math.inf), st.floats(-0.2, 1.2)),
)
def test_the_cheapest_plan_is_taken_only_where_all_plans_would_say_so(
    graph: JoinGraph, cpu: float, memory: float
) -> None:
    finite = limits_of(graph, *(0.5 if math.isinf(share) else share for share in (cpu, memory)))
    limits = Limits(
        math.inf if math.isinf(cpu) else finite.cpu, math.inf if math.isinf(memory) else finite.memory
    )
    space = Space(graph, products=list_products(graph))
    taken, fitting = cost(graph, choose(graph, limits).plan), find_frontier(space, limits)
    if fitting and math.isinf(cpu):
        assert taken.cpu == pytest.approx(min(plan.cpu for plan in fitting))
    else:
        least = min(limits.excess(plan.cpu, plan.memory) for plan in fitting or find_frontier(space))
        assert limits.excess(taken.cpu, taken.memory) == pytest.approx(least)


def test_the_least_cpu_is_not_always_that_of_a_binary_tree() -> None:
    """With costly inserts the mjoin of three streams is cheaper; the two layers find a plan all the same."""
    costs = UnitCosts.per_match(1e-6, insert=1e-6, delete=1e-6)
    edges = {("a", "b"): 0.5, ("b", "c"): 0.01, ("c", "d"): 0.5}
    graph = JoinGraph.of(dict.fromkeys("abcd", 20.0), 1.0, edges, costs)
    fast, *_ = find_frontier(Space(graph))
    assert find_bushy_tree(Space(graph)).cpu > fast.cpu
    assert two_layers(graph, Limits(cpu=fast.cpu)).cpu <= fast.cpu


def test_without_limits_the_least_cpu_is_taken() -> None:
    graph = JoinGraph.of({"a": 20, "b": 20, "c": 20}, 5, {("a", "b"): 0.05, ("b", "c"): 0.5}, PAPER)
    assert str(choose(graph).plan) in ("((a b) c)", "(c (a b))")


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (lambda: choose(JoinGraph.of({"a": 1, "b": 1, "c": 1}, 1, {("a", "b"): 0.5})), "no edge connects"),
        (lambda: choose(JoinGraph.of({"a": 0, "b": 1}, 1, {("a", "b"): 0.5})), "rate of zero"),
        (lambda: choose(JoinGraph.of({"a": 1, "b": 1}, 1, {("a", "b"): 0.0})), "selectivity of 'a' and 'b'"),
        (lambda: JoinGraph.of({"a": -1, "b": 1}, 1, {("a", "b"): 0.5}), "rate of stream 'a'"),
        (lambda: JoinGraph.of({"a": math.nan, "b": 1}, 1, {("a", "b"): 0.5}), "rate of stream 'a'"),
        (lambda: JoinGraph.of({"a": 1, "b": 1}, 0, {("a", "b"): 0.5}), "window of stream 'a'"),
        (lambda: JoinGraph.of({"a": 1, "b": 1}, 1, {("a", "b"): 1.5}), "from 0 to 1"),
        (lambda: JoinGraph.of({"a": 1, "b": 1}, 1, {("a", "x"): 0.5}), "'x'"),
        (lambda: JoinGraph.of({f"s{i}": 1 for i in range(64)}, 1, {}), "2 to 63 streams"),
        (lambda: UnitCosts(match=-1.0), "cost 'match'"),
    ],
)
def test_what_no_plan_can_be_made_for_is_refused(graph: object, message: str) -> None:
    assert callable(graph)
    with pytest.raises(QueryError, match=message):
        graph()


def test_a_plan_by_hand_is_costed_as_any_other() -> None:
    graph = JoinGraph.of({"a": 1, "b": 2, "c": 3}, 2, {("a", "b"): 0.5, ("a", "c"): 0.5}, PAPER)
    assert cost(graph, join("a", "b", "c")).rows == 12
