from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings

from weir.plan.probing_orders import find_best_orders, find_greedy_orders, path_seconds
from weir.plan.space import Space
from weir.stats.join_graph import JoinGraph

from .graphs import graphs


@settings(max_examples=60, deadline=None)
@given(graphs(2, 5))
def test_the_best_orders_are_the_best_of_all(graph: JoinGraph) -> None:
    space = Space(graph)
    inputs = [1 << i for i in range(len(graph.streams))]
    chosen = find_best_orders(space, inputs)
    for driver, order in enumerate(chosen.orders):
        others = [i for i in range(len(inputs)) if i != driver]
        least = min(path_seconds(space, inputs, driver, tried) for tried in permutations(others))
        assert path_seconds(space, inputs, driver, order) == pytest.approx(least)
    paths = sum(path_seconds(space, inputs, i, order) for i, order in enumerate(chosen.orders))
    assert chosen.seconds == pytest.approx(paths + space.join_overhead(inputs))


@settings(max_examples=60, deadline=None)
@given(graphs(3, 8))
def test_the_usual_orders_go_along_edges_and_take_no_less_than_the_best(graph: JoinGraph) -> None:
    space = Space(graph)
    inputs = [1 << i for i in range(len(graph.streams))]
    chosen = find_greedy_orders(space, inputs)
    for driver, order in enumerate(chosen.orders):
        bound = inputs[driver]
        for i in order:
            near = space.neighbours(bound)
            assert near & inputs[i], "an unconnected stream is probed while a connected one is left"
            fewest = min(space.rows(bound | 1 << j) for j in range(len(inputs)) if near >> j & 1)
            assert space.rows(bound | inputs[i]) == pytest.approx(fewest)
            bound |= inputs[i]
    paths = sum(path_seconds(space, inputs, i, order) for i, order in enumerate(chosen.orders))
    assert chosen.seconds == pytest.approx(paths + space.join_overhead(inputs))
    assert find_best_orders(space, inputs).seconds <= chosen.seconds * (1 + 1e-9)


def test_an_unconnected_stream_comes_last() -> None:
    graph = JoinGraph.of({"a": 50.0, "b": 50.0, "c": 1.0}, 1.0, {("a", "b"): 1.0})
    inputs = [1, 2, 4]
    assert find_greedy_orders(Space(graph), inputs).orders[0] == (1, 2)
