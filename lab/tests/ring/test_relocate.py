"""Where new nodes go, what moves, and slices by count."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.partition.resize import count_transfers, insert_nodes, insertion_points, remove_nodes
from weir_lab.ring.clock import Clock, feed
from weir_lab.ring.hardware import Hardware
from weir_lab.ring.matching import Expected
from weir_lab.ring.ring import Ring
from weir_lab.ring.stored import Row
from weir_lab.ring.tally import Tally
from weir_lab.ring.task import Task, cyclic_orders

from .joined import arrivals, machines, oracle, results, tasks

FAST = Hardware(join=0.0, send=0.0, hop=0.001)


@given(st.integers(1, 12), st.integers(1, 12))
def test_every_new_node_has_a_place_and_can_be_taken_out_again(nodes: int, added: int) -> None:
    places = insertion_points(nodes, added)
    assert len(places) == added
    assert all(1 <= place <= nodes for place in places)
    ring = insert_nodes(range(nodes), range(nodes, nodes + added))
    assert [number for number in ring if number < nodes] == list(range(nodes))
    assert remove_nodes(ring, nodes) == list(range(nodes))
    assert remove_nodes(ring, nodes + added) == ring


@pytest.mark.parametrize(("nodes", "added"), [(3, 1), (4, 2), (5, 3), (2, 4), (6, 6)])
def test_old_nodes_hand_on_what_the_paper_says(nodes: int, added: int) -> None:
    """Section 6: the i-th node hands on i M / N less its whole part, in slices of the new length."""
    rows = nodes * (nodes + added) * 10
    ring = insert_nodes(range(nodes), range(nodes, nodes + added))
    before = {row: ring.index(row * nodes // rows) for row in range(rows)}
    after = {row: row * (nodes + added) // rows for row in range(rows)}
    crossing = count_transfers(before, after, len(ring))
    slice_rows = rows / (nodes + added)
    for old in range(1, nodes):
        share = old * added / nodes - floor(old * added / nodes)
        assert crossing[ring.index(old) - 1] == pytest.approx(share * slice_rows)


def test_slices_by_count_stay_even_while_the_rate_changes() -> None:
    times = [n * 0.1 for n in range(200)] + [20 + n * 0.05 for n in range(200)]
    task = Task((10.0, 10.0), cyclic_orders(2), Expected((0.1,)))
    rows = [Row(n, n % 2, time) for n, time in enumerate(times)]

    def fullest(balanced: bool) -> float:
        clock, tally = Clock(), Tally(task.matching)
        ring = Ring(task, 4, FAST, clock, tally.emit)
        for half in range(24, 50) if balanced else ():
            clock.at(half / 2, lambda _: ring.balance())
        feed(clock, rows, ring.arrive)
        clock.run(25.0)
        return max(node.rows for node in ring.nodes) * 4 / ring.rows

    assert fullest(False) > 1.3
    assert fullest(True) < 1.15


@settings(max_examples=80, deadline=None)
@given(
    st.data(),
    tasks(),
    machines,
    st.integers(1, 4),
    st.sampled_from((1, 3)),
    st.lists(st.floats(0, 14), max_size=4),
)
def test_output_is_exact_with_slices_by_count(
    data: st.DataObject, task: Task, hardware: Hardware, nodes: int, interleave: int, moments: Sequence[float]
) -> None:
    rows = data.draw(arrivals(task.streams))
    clock, tally = Clock(), Tally(task.matching, keep=True)
    ring = Ring(task, nodes, hardware, clock, tally.emit, interleave)
    for moment in moments:
        clock.at(moment, lambda _: ring.balance())
    feed(clock, rows, ring.arrive)
    clock.run()
    assert results(tally) == oracle(rows, task.windows)
