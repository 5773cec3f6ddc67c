"""ATR and CTR with real rows: the same output as one machine, and what they refuse."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir import QueryError
from weir_lab.ring.atr import AlignedRouting
from weir_lab.ring.clock import Clock, feed
from weir_lab.ring.cover import cheapest_cover
from weir_lab.ring.ctr import CoordinatedRouting
from weir_lab.ring.hardware import Hardware
from weir_lab.ring.matching import Expected
from weir_lab.ring.stored import Row
from weir_lab.ring.tally import Tally
from weir_lab.ring.task import Task, cyclic_orders

from .joined import arrivals, machines, oracle, results, tasks

FAST = Hardware(join=1e-6, send=1e-6, hop=1e-4)
COUNTED = Task((10.0,) * 3, cyclic_orders(3), Expected((0.1, 0.1)))


@settings(max_examples=100, deadline=None)
@given(st.data(), tasks(), machines, st.integers(1, 5), st.sampled_from((4.0, 5.5, 12.0)))
def test_aligned_routing_equals_the_oracle(
    data: st.DataObject, task: Task, hardware: Hardware, nodes: int, segment: float
) -> None:
    rows = data.draw(arrivals(task.streams))
    clock, tally = Clock(), Tally(task.matching, keep=True)
    feed(clock, rows, AlignedRouting(task, nodes, segment, hardware, clock, tally.emit).arrive)
    clock.run()
    assert results(tally) == oracle(rows, task.windows)


@settings(max_examples=100, deadline=None)
@given(st.data(), tasks(), machines, st.integers(1, 5), st.sampled_from((0.5, 1.5, 3.0)))
def test_coordinated_routing_equals_the_oracle(
    data: st.DataObject, task: Task, hardware: Hardware, nodes: int, segment: float
) -> None:
    rows = data.draw(arrivals(task.streams))
    copies = data.draw(st.integers(1, nodes))
    clock, tally = Clock(), Tally(task.matching, keep=True)
    routing = CoordinatedRouting(task, nodes, copies, segment, hardware, clock, tally.emit)
    feed(clock, rows, routing.arrive)
    clock.run()
    assert results(tally) == oracle(rows, task.windows)


def _rows(seconds: float, per_second: int = 20) -> list[Row]:
    return [Row(n, n % 3, n / (3 * per_second)) for n in range(int(seconds * per_second * 3))]


def test_aligned_routing_copies_the_overlaps_only() -> None:
    routing = AlignedRouting(COUNTED, 4, 40.0, FAST, Clock(), Tally(COUNTED.matching).emit)
    assert routing.route(Row(0, 0, 79.0)) == [1]
    assert routing.route(Row(0, 1, 60.0)) == [1]
    assert routing.route(Row(0, 1, 75.0)) == [1, 2], "a master row at 80 may still meet it"
    assert routing.route(Row(0, 1, 85.0)) == [1, 2], "it may still meet a master row at 79"
    assert routing.route(Row(0, 1, 155.0)) == [0, 3]


def test_a_node_without_a_segment_keeps_what_it_has() -> None:
    clock, tally = Clock(), Tally(COUNTED.matching)
    routing = AlignedRouting(COUNTED, 5, 10.0, FAST, clock, tally.emit)
    feed(clock, _rows(45), routing.arrive)
    clock.run()
    assert routing.rows > 2 * 20 * 10 * 3


def test_coordinated_routing_stores_so_many_copies() -> None:
    for copies in (1, 2, 4):
        clock, tally = Clock(), Tally(COUNTED.matching)
        routing = CoordinatedRouting(COUNTED, 6, copies, 1.0, FAST, clock, tally.emit)
        feed(clock, _rows(14), routing.arrive)
        clock.run()
        # Whole segments are dropped, so a window holds up to one segment more.
        assert copies * 600 <= routing.rows <= copies * 660


def test_more_copies_ask_fewer_nodes() -> None:
    asked = []
    for copies in (1, 2, 6):
        clock, tally = Clock(), Tally(COUNTED.matching)
        routing = CoordinatedRouting(COUNTED, 6, copies, 1.0, FAST, clock, tally.emit)
        feed(clock, _rows(12), routing.arrive)
        clock.run()
        asked.append(routing.asked)
    assert asked[0] > asked[1] > asked[2]


@given(st.integers(1, 6), st.lists(st.sets(st.integers(0, 5), min_size=1), max_size=8), st.data())
def test_a_cover_gives_each_segment_to_one_holder(
    nodes: int, homes: list[set[int]], data: st.DataObject
) -> None:
    placed = [{home % nodes for home in copies} for copies in homes]
    held = {node: {key for key, holders in enumerate(placed) if node in holders} for node in range(nodes)}
    weights = {node: data.draw(st.floats(0.1, 9)) for node in range(nodes)}
    cover = cheapest_cover(dict.fromkeys(range(len(placed)), 1.0), held, weights)
    assert sorted(key for keys in cover.values() for key in keys) == list(range(len(placed)))
    assert all(node in placed[key] for node, keys in cover.items() for key in keys)


def test_what_is_asked_must_make_sense() -> None:
    clock, emit = Clock(), Tally(COUNTED.matching).emit
    with pytest.raises(QueryError, match="at least one node to run on; got 0"):
        AlignedRouting(COUNTED, 0, 20.0, FAST, clock, emit)
    with pytest.raises(QueryError, match="a segment of 5 seconds is shorter than the window of 10 seconds"):
        AlignedRouting(COUNTED, 3, 5.0, FAST, clock, emit)
    with pytest.raises(QueryError, match="at least one node to run on; got -1"):
        CoordinatedRouting(COUNTED, -1, 1, 1.0, FAST, clock, emit)
    with pytest.raises(QueryError, match="4 copies of a row cannot be on 3 nodes, one each; take 1 to 3"):
        CoordinatedRouting(COUNTED, 3, 4, 1.0, FAST, clock, emit)
    with pytest.raises(QueryError, match="take 1 to 3 copies"):
        CoordinatedRouting(COUNTED, 3, 0, 1.0, FAST, clock, emit)
    with pytest.raises(QueryError, match="longer than zero"):
        CoordinatedRouting(COUNTED, 3, 2, 0.0, FAST, clock, emit)
