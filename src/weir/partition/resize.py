"""Relocate state between neighbours when the ring is resized (Wang and Rundensteiner 2009, section 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil
from typing import Literal

How = Literal["passive", "aggressive"]


@dataclass(frozen=True, slots=True)
class Resize:
    """The ring shall have so many nodes.

    `passive` only sets window ranges, new nodes standing at the tail; rows follow with the probes to come.
    `aggressive` suspends the ring, moves rows between neighbours, new nodes standing where they fill best.
    """

    nodes: int
    how: How


def places_of_new(nodes: int, added: int) -> list[int]:
    """After which old node (counting from 1) each new one goes.

    New node j goes after the first old node k with k * added / nodes >= j. The paper prints ">", by which the
    last new node would have no place, as k * added / nodes is at most `added`.

    >>> places_of_new(3, 1), places_of_new(2, 4)
    ([3], [1, 1, 2, 2])
    """
    return [ceil(new * nodes / added) for new in range(1, added + 1)]


def widened(old: Sequence[int], new: Sequence[int]) -> list[int]:
    """The ring's nodes with new ones put in where the shifted state fills them."""
    ring = list(old)
    # From the tail on, so that places nearer to the head stay what they are.
    for number, place in reversed(list(zip(new, places_of_new(len(old), len(new)), strict=True))):
        ring.insert(place, number)
    return ring


def narrowed(old: Sequence[int], nodes: int) -> list[int]:
    """The ring's nodes without some, at the places where as many would have been put in."""
    removed = len(old) - nodes
    out = {place + count for count, place in enumerate(places_of_new(nodes, removed))}
    return [number for place, number in enumerate(old) if place not in out]


def hand_overs(before: Mapping[int, int], after: Mapping[int, int], places: int) -> list[int]:
    """How many rows go from each place to the next, or back, if rows move only between neighbours.

    >>> hand_overs({7: 0, 8: 0, 9: 1}, {7: 0, 8: 2, 9: 2}, places=3)
    [1, 2]
    """
    change = [0] * (places + 1)
    for row, place in after.items():
        low, high = sorted((before[row], place))
        change[low] += 1
        change[high] -= 1
    return list(accumulate(change))[: places - 1]
