"""Connected components of a graph, or of a hypergraph."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def find_components(links: Iterable[Collection[T]]) -> tuple[tuple[T, ...], ...]:
    """Group the items that links connect, in order of first appearance.

    >>> find_components([("a",), ("b", "c"), ("d", "a")])
    (('a', 'd'), ('b', 'c'))
    """
    groups: list[dict[T, None]] = []
    for link in links:
        linked = [group for group in groups if not group.keys().isdisjoint(link)]
        merged = dict.fromkeys(item for group in (*linked, link) for item in group)
        position = groups.index(linked[0]) if linked else len(groups)
        groups = [group for group in groups if group not in linked]
        groups.insert(position, merged)
    return tuple(map(tuple, groups))
