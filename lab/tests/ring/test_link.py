"""Time, wires and stored rows."""

from __future__ import annotations

from typing import Any

from weir_lab.ring.clock import Clock, feed
from weir_lab.ring.link import Link
from weir_lab.ring.node import Node
from weir_lab.ring.stored import Row, Stored


def test_things_happen_in_order_of_time_and_then_of_planning() -> None:
    clock, seen = Clock(), []
    for time, name in ((2.0, "c"), (1.0, "a"), (1.0, "b"), (5.0, "late")):
        clock.at(time, seen.append, name)
    clock.run(until=4.0)
    assert (seen, clock.now) == (["a", "b", "c"], 2.0)


def test_rows_of_one_time_arrive_in_their_order() -> None:
    clock, seen = Clock(), []
    feed(
        clock,
        [Row(0, 0, 1.0), Row(1, 1, 1.0), Row(2, 0, 3.0)],
        lambda row: seen.append((row.number, clock.now)),
    )
    clock.run()
    assert seen == [(0, 1.0), (1, 1.0), (2, 3.0)]


def test_a_link_is_busy_while_it_carries_and_keeps_the_order() -> None:
    clock, begun = Clock(), []

    def handle(node: Node, message: Any, now: float) -> float:
        begun.append((message, now))
        return now + 10.0

    link = Link(clock, Node(0, 1, clock, handle), hop=1.0, wire=0.5)
    link.send(0.0, "long", 8)
    link.send(0.0, "short", 1)
    clock.run()
    # The second waits for the wire until 4, arrives at 5.5, and waits for the node until 15.
    assert begun == [("long", 5.0), ("short", 15.0)]
    assert link.carried == 9


def test_rows_passed_on_stay_while_they_are_marked() -> None:
    stored = Stored()
    for number in range(6):
        stored.insert(Row(number, 0, float(number)))
    assert [row.number for row in stored.expire(6.0, 4.0)] == [0, 1, 2]
    assert stored.expire(6.0, 4.0) == []
    assert [row.number for row in stored.expire(6.0, 9.0, limit=2)] == [3]
    stored.forget(before=1)
    assert [row.number for row in stored.between(1, 3)] == [1, 2]
    stored.forget(before=99)
    assert (stored.base, stored.live, stored.end) == (4, 4, 6)
    assert stored.since(6.0, 1.5) == 5
