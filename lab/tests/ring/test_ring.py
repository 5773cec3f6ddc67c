"""The ring with real rows: theorems 1 and 2 of Wang and Rundensteiner 2009, and resized rings."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from weir import QueryError
from weir.partition.resize import Resize
from weir_lab.ring.clock import Clock, feed
from weir_lab.ring.hardware import Hardware
from weir_lab.ring.matching import Exact, Expected
from weir_lab.ring.message import Partials, Probe
from weir_lab.ring.node import Node
from weir_lab.ring.ring import Ring
from weir_lab.ring.stored import Row
from weir_lab.ring.tally import Tally
from weir_lab.ring.task import Task, cyclic_orders

from .joined import arrivals, machines, oracle, results, run_ring, symmetric, tasks

FAST = Hardware(join=0.0, send=0.0, hop=0.001)


@settings(max_examples=150, deadline=None)
@given(st.data(), tasks(), machines, st.integers(1, 5), st.sampled_from((1, 2, 5)))
def test_output_equals_the_oracle(
    data: st.DataObject, task: Task, hardware: Hardware, nodes: int, interleave: int
) -> None:
    rows = data.draw(arrivals(task.streams))
    clock, tally = Clock(), Tally(task.matching, keep=True)
    run_ring(Ring(task, nodes, hardware, clock, tally.emit, interleave), rows, clock)
    expected = oracle(rows, task.windows)
    event("has results" if expected else "empty")
    assert results(tally) == expected


def test_a_dense_join_is_not_empty_and_equals_the_oracle() -> None:
    rows = [Row(n, n % 3, n * 0.2, n * n // 7 % 6) for n in range(60)]
    task = Task((3.0, 2.0, 4.0), cyclic_orders(3), Exact(symmetric))
    expected = oracle(rows, task.windows)
    assert expected.total() > 500
    for interleave in (1, 4):
        clock, tally = Clock(), Tally(task.matching, keep=True)
        ring = Ring(task, 4, Hardware(0.01, 0.01, 0.03), clock, tally.emit, interleave)
        run_ring(ring, rows, clock)
        assert results(tally) == expected


@settings(max_examples=60, deadline=None)
@given(st.data(), tasks(), machines, st.integers(2, 5), st.sampled_from((1, 3)))
def test_end_tuples_come_last(
    data: st.DataObject, task: Task, hardware: Hardware, nodes: int, interleave: int
) -> None:
    rows = data.draw(arrivals(task.streams))
    seen: dict[tuple[int, int], list[tuple[int, bool]]] = defaultdict(list)

    def see(node: Node, message: Probe | Partials) -> None:
        is_partials = isinstance(message, Partials)
        level = message.level if is_partials else 0
        # At the head an END is seen on its return, where it ends the level.
        ends = is_partials and message.is_end
        seen[node.number, message.row.number].append((level, ends))

    clock, tally = Clock(), Tally(task.matching)
    run_ring(Ring(task, nodes, hardware, clock, tally.emit, interleave, seen=see), rows, clock)
    for row in rows:
        at_head = seen[0, row.number]
        for level in range(1, task.streams):
            ends = [is_end for reached, is_end in at_head if reached == level]
            assert ends[-1], "an END is the last of its level at the head (property 2)"
            assert sum(ends) == 1
        assert at_head[-1] == (task.streams - 1, True), "the last END closes the cycle (theorem 1)"
        for node in range(nodes):
            assert seen[node, row.number][-1][0] == task.streams - 1, "and is the last at every node"


@settings(max_examples=60, deadline=None)
@given(st.data(), tasks(), st.integers(1, 5), st.sampled_from((1, 3)))
def test_no_row_is_stored_twice(data: st.DataObject, task: Task, nodes: int, interleave: int) -> None:
    rows = data.draw(arrivals(task.streams))
    clock, tally = Clock(), Tally(task.matching)
    ring = Ring(task, nodes, FAST, clock, tally.emit, interleave)
    run_ring(ring, rows, clock)
    last = rows[-1].time if rows else 0.0
    held = [row.number for node in ring.nodes for stored in node.stored for row in stored.rows]
    assert sorted(held) == [row.number for row in rows if last - row.time < task.windows[row.stream]]


@settings(max_examples=100, deadline=None)
@given(
    st.data(),
    tasks(),
    machines,
    st.integers(1, 4),
    st.sampled_from((1, 3)),
    st.lists(
        st.tuples(
            st.floats(0, 14), st.builds(Resize, st.integers(1, 6), st.sampled_from(("passive", "aggressive")))
        ),
        max_size=4,
    ),
)
def test_output_is_exact_while_the_ring_changes_its_length(
    data: st.DataObject,
    task: Task,
    hardware: Hardware,
    nodes: int,
    interleave: int,
    changes: list[tuple[float, Resize]],
) -> None:
    rows = data.draw(arrivals(task.streams))
    clock, tally = Clock(), Tally(task.matching, keep=True)
    ring = Ring(task, nodes, hardware, clock, tally.emit, interleave)
    for time, change in changes:
        clock.at(time, ring.resize, change)
    run_ring(ring, rows, clock)
    assert results(tally) == oracle(rows, task.windows)


@pytest.mark.parametrize("how", ["passive", "aggressive"])
@pytest.mark.parametrize(("before", "after"), [(3, 4), (2, 6), (5, 3), (4, 1)])
def test_after_a_change_all_nodes_hold_the_same(how: str, before: int, after: int) -> None:
    task = Task((12.0, 12.0), cyclic_orders(2), Expected((0.1,)))
    rows = [Row(n, n % 2, n * 0.05) for n in range(1000)]
    clock, tally = Clock(), Tally(task.matching)
    ring = Ring(task, before, FAST, clock, tally.emit)
    clock.at(20.0, ring.resize, Resize(after, how))
    feed(clock, rows, ring.arrive)
    clock.run()
    assert len(ring.nodes) == after
    share = 240 * 2 / after / 2
    assert [node.rows for node in ring.nodes] == pytest.approx([share] * after, abs=2)


def test_passive_needs_no_pause_and_aggressive_no_window() -> None:
    task = Task((12.0, 12.0), cyclic_orders(2), Expected((0.1,)))
    rows = [Row(n, n % 2, n * 0.05) for n in range(420)]
    held = {}
    for how in ("passive", "aggressive"):
        clock, tally = Clock(), Tally(task.matching)
        ring = Ring(task, 4, FAST, clock, tally.emit)
        clock.at(20.0, ring.resize, Resize(3, how))
        feed(clock, rows, ring.arrive)
        clock.run(20.9)
        held[how] = [node.rows for node in ring.nodes]
        assert (ring.moved > 0) == (how == "aggressive")
    assert len(held["passive"]) == 4, "the last node still holds rows that nobody took from it"
    assert max(held["aggressive"]) - min(held["aggressive"]) <= 2


def test_interleaving_shortens_the_queue_and_holds_a_little_more() -> None:
    task = Task((10.0,) * 3, cyclic_orders(3), Expected((0.05,) * 2))
    rows = [Row(n, n % 3, n * 0.02) for n in range(1200)]
    slow_links = Hardware(join=1e-5, send=1e-5, hop=4e-3)
    response, most = {}, {}
    for interleave in (1, 8):
        clock, tally = Clock(), Tally(task.matching)
        ring = Ring(task, 6, slow_links, clock, tally.emit, interleave)
        held: list[int] = []
        feed(clock, rows, ring.arrive)
        for tick in range(12, 24):
            clock.run(tick)
            held.append(ring.rows)
        clock.run()
        response[interleave], most[interleave] = tally.response, max(held)
    assert response[8] < response[1] / 5
    assert 500 <= most[8] < 1.2 * 500 * 3


@pytest.mark.parametrize("nodes", [0, -3])
def test_a_ring_needs_nodes(nodes: int) -> None:
    task = Task((1.0, 1.0), cyclic_orders(2), Expected((0.1,)))
    with pytest.raises(QueryError, match=f"at least one node to run on; got {nodes}"):
        Ring(task, nodes, FAST, Clock(), Tally(task.matching).emit)
    ring = Ring(task, 2, FAST, Clock(), Tally(task.matching).emit)
    with pytest.raises(QueryError, match="at least one node"):
        ring.resize(Resize(nodes, "passive"))


def test_what_is_asked_must_make_sense() -> None:
    task = Task((1.0, 1.0), cyclic_orders(2), Expected((0.1,)))
    with pytest.raises(QueryError, match="at least one tuple at a time"):
        Ring(task, 2, FAST, Clock(), Tally(task.matching).emit, interleave=0)
    with pytest.raises(QueryError, match="at least two streams"):
        Task((1.0,), ((),), Expected(()))
    with pytest.raises(QueryError, match="longer than zero"):
        Task((1.0, 0.0), cyclic_orders(2), Expected((0.1,)))
    with pytest.raises(QueryError, match="must probe every other stream once"):
        Task((1.0, 1.0), ((1,), (1,)), Expected((0.1,)))
    with pytest.raises(QueryError, match="'join' of a machine must not be below zero"):
        Hardware(join=-1.0, send=0.0, hop=0.0)
    with pytest.raises(QueryError, match="bandwidth above zero"):
        Hardware(join=0.0, send=0.0, hop=0.0, bandwidth=0.0)
