"""Tell which slices lie so far ahead of another stream that no row in the state can join them yet.

    a   ──────────────────────────────[ parked ][ parked ]──▶ event time
    b   ───────────┤ newest
                   └── reach ──▶│ slices of a that start later are parked

In a catch-up the faster stream fills the state with rows that wait for the slower one. Parked slices stay in
their files: tasks do not open them, and they count neither as state nor for the memory budget. Nothing is
lost: a result needs a row of the slower stream as well, and the batch that brings one in reach opens the
slice. That row is processed last and finds the result, as it would have without parking.

A commit parks slices (`weir.runtime.commit`); a task opens those that its batch reaches. Workers import this
module.
"""

from __future__ import annotations

from collections.abc import Mapping

from weir.plan.tree import Join, Leaf, is_composed
from weir.query.model import Query
from weir.query.windows import RowWindow

# Of each stream: how much later (µs) than the newest row of each stream that it waits for its rows may be.
Reach = Mapping[str, Mapping[str, int]]


def find_reach(query: Query, plan: Join) -> Reach:
    """Return the reach of every stream that may be parked under a plan.

    A stream waits for those below the same join: whatever that join puts out has a row of each of them.
    Windows that count rows, and joins with windows of their own, do not bound times.
    """
    if is_composed(plan) or any(isinstance(window, RowWindow) for window in query.windows):
        return {}
    upper, number = query.bounds.upper, query.names.index
    reach: dict[str, dict[str, int]] = {}
    for join in plan.inner():
        for leaf in (node.stream for node in join.inputs if isinstance(node, Leaf)):
            lengths = {other: upper[number(other)][number(leaf)] for other in join.streams if other != leaf}
            reach[leaf] = {other: length for other, length in lengths.items() if length is not None}
    return reach


def is_out_of_reach(node: str, first: int, reach: Reach, newest: Mapping[str, int]) -> bool:
    """True if rows of a state from the time `first` on can join nothing yet, by the streams' newest rows.

    >>> [is_out_of_reach("a", first, {"a": {"b": 9}}, {"b": 20}) for first in (29, 30)]
    [False, True]
    """
    return any(
        other not in newest or first > newest[other] + length for other, length in reach.get(node, {}).items()
    )
