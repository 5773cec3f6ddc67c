"""Requests to resize, and how a ring then moves state (Wang and Rundensteiner 2009, section 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil
from typing import Literal

ResizeMode = Literal["passive", "aggressive"]


@dataclass(frozen=True, slots=True)
class Resize:
    """A request for another number of partitions, or of nodes of a ring.

    `passive` moves nothing at once: only new rows go to new partitions. `aggressive` distributes what is
    stored before the next batch.
    """

    nodes: int
    how: ResizeMode


def insertion_points(nodes: int, added: int) -> list[int]:
    """Return after which old node (counting from 1) each new one goes.

    New node j goes after the first old node k with k * added / nodes >= j. The paper prints ">", by which the
    last new node would have no place, as k * added / nodes is at most `added`.

    >>> insertion_points(3, 1), insertion_points(2, 4)
    ([3], [1, 1, 2, 2])
    """
    return [ceil(new * nodes / added) for new in range(1, added + 1)]


def insert_nodes(old: Sequence[int], new: Sequence[int]) -> list[int]:
    """Insert new nodes into a ring where the shifted state fills them."""
    ring = list(old)
    # From the tail on, so that positions nearer to the head stay what they are.
    for number, position in reversed(list(zip(new, insertion_points(len(old), len(new)), strict=True))):
        ring.insert(position, number)
    return ring


def remove_nodes(old: Sequence[int], nodes: int) -> list[int]:
    """Remove nodes from a ring, at the positions where as many would have been inserted."""
    removed = len(old) - nodes
    positions = {position + count for count, position in enumerate(insertion_points(nodes, removed))}
    return [number for position, number in enumerate(old) if position not in positions]


def count_transfers(before: Mapping[int, int], after: Mapping[int, int], nodes: int) -> list[int]:
    """Count the rows that cross each link, in either direction, if rows move only between neighbours.

    `before` and `after` say at which position of the ring each row is.

    >>> count_transfers({7: 0, 8: 0, 9: 1}, {7: 0, 8: 2, 9: 2}, nodes=3)
    [1, 2]
    """
    change = [0] * (nodes + 1)
    for row, position in after.items():
        low, high = sorted((before[row], position))
        change[low] += 1
        change[high] -= 1
    return list(accumulate(change))[: nodes - 1]
