"""Plans made from the query alone, while no rates are known: connected streams are joined first."""

from __future__ import annotations

from collections.abc import Callable

from weir.expr.nodes import streams_of
from weir.plan.tree import Join, Leaf
from weir.query.model import Query
from weir.query.predicate import AttributeClass, Band, Comparison, Cosine, Equality

# How well a conjunct narrows a probe: the lower, the better.
_RANK = {Equality: 0, Band: 1, Cosine: 2, Comparison: 3}
_OTHER, _UNCONNECTED = 4, 5


def mjoin(query: Query) -> Join:
    """One join of all streams; each driver probes the best connected stream next."""
    names = query.names
    orders = tuple(_order(query, names, driver) for driver in range(len(names)))
    return Join(tuple(Leaf(name) for name in names), orders)


def linear(query: Query) -> Join:
    """Binary joins in a chain from the first stream on; the best connected stream is added next."""
    names = query.names
    first, *rest = (0, *_order(query, names, 0))
    tree: Leaf | Join = Leaf(names[first])
    for i in rest:
        tree = Join((tree, Leaf(names[i])), ((1,), (0,)))
    assert isinstance(tree, Join)
    return tree


def _order(query: Query, names: tuple[str, ...], driver: int) -> tuple[int, ...]:
    bound, order = {names[driver]}, []
    rest = [i for i in range(len(names)) if i != driver]
    while rest:
        closeness = _closeness(query, frozenset(bound))
        best = min(rest, key=lambda i: (closeness(names[i]), i))
        order.append(best)
        rest.remove(best)
        bound.add(names[best])
    return tuple(order)


def _closeness(query: Query, bound: frozenset[str]) -> Callable[[str], int]:
    def closeness(name: str) -> int:
        classes = query.predicate.classes
        if any(_reads(c, bound) and _reads(c, frozenset({name})) for c in classes):
            return 0
        known = bound | {name}
        ranks = [
            _RANK.get(type(c), _OTHER)
            for c in query.predicate.conjuncts
            if name in c.streams and c.streams <= known and c.streams & bound
        ]
        bounded = any(
            {b.earlier, b.later} <= known and name in (b.earlier, b.later) for b in query.predicate.bounds
        )
        return min(ranks, default=_OTHER if bounded else _UNCONNECTED)

    return closeness


def _reads(attribute_class: AttributeClass, streams: frozenset[str]) -> bool:
    return any(streams_of(member) <= streams for member in attribute_class.members)
