"""Where the rows of a partial lie: enough to send it elsewhere, to put several together, to take it apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from weir.kernel.keys import Int64s
from weir.kernel.partial import Group, Partial, Rows
from weir.kernel.slice import Slice

# The rows of one state in a partial: the slices they lie in, and of each row the slice's number and its own.
Places = tuple[Sequence[Slice], Int64s, Int64s]


def places(partial: Partial) -> list[Places]:
    """Where every row of a partial lies, state by state."""
    found: list[Places] = []
    for group in partial.groups:
        slices, numbers, rows = group.rows.places()
        if group.picks is not None:
            numbers, rows = numbers[group.picks], rows[group.picks]
        found.append((slices, numbers, rows))
    return found


def partial_at(found: Sequence[Places]) -> Partial:
    """The partial whose rows lie there."""
    return Partial(tuple(_group(*one) for one in found), len(found[0][1]))


def together(partials: Sequence[Partial]) -> Partial:
    """Partials over the same states as one."""
    if len(partials) == 1:
        return partials[0]
    return partial_at([_joined(group) for group in zip(*map(places, partials), strict=True)])


def pieces(partial: Partial, size: int) -> Iterator[Partial]:
    """A partial in pieces of at most so many rows, each of which gathers its own columns only."""
    if partial.rows <= size:
        yield partial
        return
    found = places(partial)
    for first in range(0, partial.rows, size):
        last = first + size
        yield partial_at([(slices, numbers[first:last], rows[first:last]) for slices, numbers, rows in found])


def _joined(parts: Sequence[Places]) -> Places:
    """The rows of one state of several partials; a slice that occurs in several is one slice."""
    known: dict[int, int] = {}
    slices: list[Slice] = []
    numbers = []
    for held, number, _ in parts:
        for one in held:
            if id(one) not in known:
                known[id(one)] = len(slices)
                slices.append(one)
        numbers.append(np.array([known[id(one)] for one in held])[number])
    return slices, np.concatenate(numbers), np.concatenate([rows for _, _, rows in parts])


def _group(slices: Sequence[Slice], numbers: Int64s, rows: Int64s) -> Group:
    order = np.argsort(numbers, kind="stable")
    ends = np.searchsorted(numbers[order], np.arange(len(slices) + 1))
    parts = [
        (one, rows[order[first:last]].astype(np.intp))
        for one, first, last in zip(slices, ends[:-1], ends[1:], strict=True)
        if last > first
    ]
    back = np.empty(len(order), np.intp)
    back[order] = np.arange(len(order))
    return Group(Rows(slices[0].layout, parts), back)
