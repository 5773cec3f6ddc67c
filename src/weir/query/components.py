"""Connected components."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def components(links: Iterable[Collection[T]]) -> tuple[tuple[T, ...], ...]:
    """What the links tie together, in order of first appearance.

    >>> components([("a",), ("b", "c"), ("d", "a")])
    (('a', 'd'), ('b', 'c'))
    """
    groups: list[dict[T, None]] = []
    for link in links:
        touched = [group for group in groups if not group.keys().isdisjoint(link)]
        merged = dict.fromkeys(item for group in (*touched, dict.fromkeys(link)) for item in group)
        place = groups.index(touched[0]) if touched else len(groups)
        groups = [group for group in groups if group not in touched]
        groups.insert(place, merged)
    return tuple(map(tuple, groups))
