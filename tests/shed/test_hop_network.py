"""Hop networks, and how probes are divided over them: the flow, GrePP, JAQPOT and the linear program."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir import QueryError
from weir.plan.space import Space
from weir.plan.tree import Join, JTree, Leaf, join
from weir.query.windows import TimeWindow
from weir.shed.flow import compute_flow, convert_grants
from weir.shed.freshness import compute_refresh_rates, greedy_cover, least_cover
from weir.shed.hop_network import HopNetwork, HopNetworkBuilder, Sizes
from weir.shed.jaqpot import grepp, jaqpot
from weir.shed.linear_program import solve_grants, solve_steady_grants
from weir.stats.join_graph import JoinGraph
from weir.stats.unit_costs import UnitCosts


def network(graph: JoinGraph, tree: Join, sizes: Sizes | None = None, in_seconds: bool = False) -> HopNetwork:
    return HopNetworkBuilder(Space(graph), tree, in_seconds).network(sizes)


@st.composite
def plans(draw: st.DrawFn, most: int = 6, binary: bool = False) -> tuple[JoinGraph, Join]:
    """A chain of streams and a random tree over it, with composed windows of time below the root."""
    names = "abcdefghij"[: draw(st.integers(2, most))]
    edges = {pair: draw(st.floats(0.001, 0.2)) for pair in itertools.pairwise(names)}
    rates = {name: draw(st.floats(1, 50)) for name in names}
    graph = JoinGraph.of(rates, {name: draw(st.floats(0.5, 5)) for name in names}, edges)
    tree = draw(trees(tuple(names), binary))
    assert isinstance(tree, Join)
    return graph, windowed(tree, tree)


def windowed(node: JTree, root: Join) -> Join:
    assert isinstance(node, Join)
    inputs = tuple(child if isinstance(child, Leaf) else windowed(child, root) for child in node.inputs)
    return Join(inputs, node.orders, None if node is root else TimeWindow(2_000_000))


@st.composite
def trees(draw: st.DrawFn, names: tuple[str, ...], binary: bool) -> JTree:
    if len(names) == 1:
        return Leaf(names[0])
    parts = 2 if binary else draw(st.integers(2, len(names)))
    cuts = sorted(draw(st.permutations(range(1, len(names))))[: parts - 1])
    ends = zip([0, *cuts], [*cuts, len(names)], strict=True)
    return join(*(draw(trees(names[a:b], binary)) for a, b in ends))


budgets = st.floats(0.5, 2000)


@settings(max_examples=60, deadline=None)
@given(plans(binary=True), plans())
def test_lemma_2_susceptible_states(one: tuple[JoinGraph, Join], other: tuple[JoinGraph, Join]) -> None:
    graph, tree = one
    assert len(network(graph, tree).states) == len(graph.streams) - 2
    # Of any tree: one for each join below the root.
    graph, tree = other
    assert len(network(graph, tree).states) == len(list(tree.inner())) - 1


@settings(max_examples=60, deadline=None)
@given(plans(), budgets)
def test_grepp_solves_the_linear_program(plan: tuple[JoinGraph, Join], budget: float) -> None:
    net = network(*plan)
    best = compute_flow(net, solve_grants(net, budget))
    assert best.spent <= budget * (1 + 1e-6)
    assert compute_flow(net, grepp(net, budget)).results == pytest.approx(best.results, rel=1e-6, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(plans(), budgets, st.floats(1.2, 5))
def test_fresh_plans(plan: tuple[JoinGraph, Join], budget: float, times: float) -> None:
    graph, tree = plan
    net = network(graph, tree)
    fresh = {stream: times * graph.window_seconds(stream) for stream in graph.streams}
    rates = compute_refresh_rates(graph, net, fresh)
    for stream, seconds in fresh.items():
        states = next(path for path in net.paths if path.stream == stream).count_inserts(1)
        # Lemma 1: no row stays longer than it may.
        staying = graph.window_seconds(stream) + sum(net.sizes[state] / rates[state] for state in states)
        assert staying <= seconds * (1 + 1e-9)
    try:
        cover = greedy_cover(net, rates)
        least = least_cover(net, rates)
    except QueryError:
        # A path may bring too few rows whatever the CPU: then no budget is enough.
        with pytest.raises(QueryError):
            solve_grants(net, 1e12, rates)
        return
    cost = sum(cover.values())
    assert sum(least.values()) <= cost * (1 + 1e-6) + 1e-9
    filled = compute_flow(net, net.divide(cover)).inserts
    assert all(filled[state] >= rate * (1 - 1e-6) for state, rate in rates.items())
    if cost < budget:
        both = compute_flow(net, jaqpot(net, budget, rates))
        assert both.spent <= budget * (1 + 1e-6)
        assert all(both.inserts[state] >= rate * (1 - 1e-6) for state, rate in rates.items())
        assert both.results <= compute_flow(net, solve_grants(net, budget, rates)).results * (1 + 1e-6) + 1e-9


@settings(max_examples=30, deadline=None)
@given(plans(), st.floats(1.5, 5))
def test_slack_is_split_no_worse_than_evenly_on_one_path(plan: tuple[JoinGraph, Join], times: float) -> None:
    graph, tree = plan
    net = network(graph, tree)
    stream = graph.streams[0]
    fresh = {stream: times * graph.window_seconds(stream)}
    states = [state for path in net.paths if path.stream == stream for state in path.count_inserts(1)]
    each = (fresh[stream] - graph.window_seconds(stream)) / max(1, len(states))
    even = {state: net.sizes[state] / each for state in states}
    assert _alone(net, compute_refresh_rates(graph, net, fresh)) <= _alone(net, even) * (1 + 1e-6)


def _alone(net: HopNetwork, rates: dict[str, float]) -> float:
    """What it costs to refresh each state apart from the others, by the path that does it most cheaply."""
    # A millionth of the rates, so that no stream has too few rows: the closed form knows no such end.
    return sum(sum(least_cover(net, {state: rate * 1e-6}).values()) for state, rate in rates.items())


@settings(max_examples=60, deadline=None)
@given(plans(), budgets)
def test_the_program_finds_nothing_better_where_no_state_must_be_fresh(
    plan: tuple[JoinGraph, Join], budget: float
) -> None:
    """Refresh rates that the best grants hold anyway have the linear program solved."""
    net = network(*plan)
    direct = compute_flow(net, solve_grants(net, budget))
    assert direct.spent <= budget * (1 + 1e-9)
    refresh = {state: 0.5 * rate for state, rate in direct.inserts.items() if rate > 1e-3}
    if refresh:
        solved = compute_flow(net, solve_grants(net, budget, refresh))
        assert direct.results == pytest.approx(solved.results, rel=1e-6, abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(plans(), budgets)
def test_steady_states_agree_with_what_feeds_them(plan: tuple[JoinGraph, Join], budget: float) -> None:
    graph, tree = plan
    net, grants = solve_steady_grants(HopNetworkBuilder(Space(graph), tree), budget)
    assert compute_flow(net, grants).spent <= budget * (1 + 1e-6)
    fixed = network(graph, tree)
    usual = _settled(graph, tree, grepp(fixed, budget))
    # Knowing that starved states shrink, the division is no worse than the one that does not.
    assert compute_flow(net, grants).results >= 0.99 * usual - 1e-9


def _settled(graph: JoinGraph, tree: Join, grants: tuple[float, ...]) -> float:
    """The results of a division once the sizes of the states have come to what feeds them."""
    builder = HopNetworkBuilder(Space(graph), tree)
    net = builder.network()
    for _ in range(30):
        net = builder.resize(net, compute_flow(net, grants).inserts)
    return compute_flow(net, grants).results


def test_shares_are_of_what_arrives() -> None:
    graph = JoinGraph.of({"a": 10, "b": 20, "c": 5}, 2, {("a", "b"): 0.1, ("b", "c"): 0.1})
    net = network(graph, join(join("a", "b"), "c"))
    shares = convert_grants(net, grepp(net, 12)).probes
    assert all(0 <= share <= 1 for share in shares.values())
    assert any(0 < share < 1 for share in shares.values())


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda g, n: grepp(n, 0), "above zero"),
        (lambda g, n: grepp(n, math.nan), "above zero"),
        (lambda g, n: solve_grants(n, -1), "above zero"),
        (lambda g, n: compute_refresh_rates(g, n, {"z": 9}), "'z'"),
        (lambda g, n: compute_refresh_rates(g, n, {"a": 1}), "at least its window"),
        (lambda g, n: compute_refresh_rates(g, n, {"a": math.nan}), "at least its window"),
        (lambda g, n: jaqpot(n, 0.1, {"(a b)": 5.0}), "the budget is 0.1"),
        (lambda g, n: jaqpot(n, 9, {"(b c)": 5.0}), "'\\(b c\\)'"),
        (lambda g, n: solve_grants(n, 9, {"(a b)": math.nan}), "zero or more rows"),
        (lambda g, n: greedy_cover(n, {"(a b)": 1e6}), "would need 1e\\+06 rows a second .* bring 80"),
        (lambda g, n: least_cover(n, {"(a b)": 1e6}), "would need 1e\\+06 rows a second .* bring 80"),
        (lambda g, n: network(g, join("a", "b", "c"), in_seconds=True), "unit costs above zero"),
        (lambda g, n: solve_grants(n, 0.1, {"(a b)": 5.0}), "cannot keep"),
    ],
)
def test_what_cannot_be_divided_is_refused(ask: Callable[[object, object], object], message: str) -> None:
    graph = JoinGraph.of({"a": 10, "b": 20, "c": 5}, 2, {("a", "b"): 0.1, ("b", "c"): 0.1})
    with pytest.raises(QueryError, match=message):
        ask(graph, network(graph, join(join("a", "b"), "c")))


@pytest.mark.parametrize("in_seconds", [False, True])
@pytest.mark.parametrize("rate", [0.0, 10.0])
@pytest.mark.parametrize("tree", [join(join("a", "b"), "c"), join("a", "b", "c")])
def test_nothing_gives_nothing(tree: Join, rate: float, in_seconds: bool) -> None:
    costs = UnitCosts(probe=1e-6, compare=1e-8, match=1e-7)
    graph = JoinGraph.of({"a": rate, "b": 20, "c": 5}, 2, {("a", "b"): 0.0, ("b", "c"): 0.1}, costs)
    net = network(graph, tree, in_seconds=in_seconds)
    for policy in (grepp, solve_grants):
        assert compute_flow(net, policy(net, 10)).results == 0
    assert compute_flow(net, jaqpot(net, 10, dict.fromkeys(net.states, 0.0))).results == 0


@settings(max_examples=40, deadline=None)
@given(plans(), st.floats(1e-8, 1), budgets)
def test_the_best_division_is_found_whatever_the_scale(
    plan: tuple[JoinGraph, Join], factor: float, budget: float
) -> None:
    graph, tree = plan
    rare = {edge: share * factor for edge, share in graph.selectivities.items()}
    net = network(replace(graph, selectivities=rare), tree)
    best, greedy = (compute_flow(net, policy(net, budget)).results for policy in (solve_grants, grepp))
    assert best >= greedy * (1 - 1e-6)


def test_probing_a_starved_state_costs_less() -> None:
    graph = JoinGraph.of(
        {"a": 10, "b": 20, "c": 5}, 2, {("a", "b"): 0.1, ("b", "c"): 0.1}, UnitCosts(probe=1, match=1)
    )
    tree = join(join("a", "b"), "c")
    full = network(graph, tree, in_seconds=True)
    starved = network(graph, tree, {**full.sizes, "(a b)": full.sizes["(a b)"] / 10}, in_seconds=True)
    (before, after) = (next(x for x in net.links if x.hop.partner == "(a b)") for net in (full, starved))
    assert after.productivity == pytest.approx(before.productivity / 10)
    assert after.cost == pytest.approx(1 + (before.cost - 1) / 10)


def test_sizes_of_composed_windows_are_what_flows_into_them() -> None:
    graph = JoinGraph.of(dict.fromkeys("abcd", 10.0), 5, dict.fromkeys(itertools.pairwise("abcd"), 0.05))
    inner = replace(join("a", "b"), window=TimeWindow(1_000_000))
    middle = replace(join(inner, "c"), window=TimeWindow(2_000_000))
    net = network(graph, join(middle, "d"))
    inflow = compute_flow(net, [math.inf] * len(net.links)).inserts
    assert net.sizes[str(inner)] == pytest.approx(inflow[str(inner)] * 1)
    assert net.sizes[str(middle)] == pytest.approx(inflow[str(middle)] * 2)


def test_an_analysis_grows_no_faster_than_the_paths() -> None:
    """A chain of joins over n streams has about n²/2 hops on its paths."""
    small, large = _seconds(20), _seconds(50)
    # Twice what that says, as tests share the machine.
    assert large < 2 * (50 / 20) ** 2 * small


def _seconds(streams: int) -> float:
    names = [f"s{i}" for i in range(streams)]
    edges = dict.fromkeys(itertools.pairwise(names), 0.01)
    graph = JoinGraph.of(dict.fromkeys(names, 50.0), 2, edges)
    tree: JTree = Leaf(names[0])
    for name in names[1:]:
        tree = join(tree, name)
    assert isinstance(tree, Join)
    taken = []
    for _ in range(7):
        started = process_time()
        net = network(graph, tree)
        jaqpot(net, 1e6, dict.fromkeys(net.states, 0.5))
        taken.append(process_time() - started)
    return min(taken)
