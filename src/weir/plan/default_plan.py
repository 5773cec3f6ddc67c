"""Plans made from the query alone, while no rates are known: connected streams are joined first."""

from __future__ import annotations

from functools import reduce

from weir.expr.nodes import streams_of
from weir.plan.tree import Join, Leaf
from weir.query.model import Query
from weir.query.predicate import AttributeClass, Band, Comparison, Cosine, Equality

# How well a conjunct narrows a probe: the lower, the better.
_RANK = {Equality: 0, Band: 1, Cosine: 2, Comparison: 3}
_OTHER, _UNCONNECTED = 4, 5


def mjoin(query: Query) -> Join:
    """One join of all streams; each driver probes the best connected stream next."""
    orders = tuple(_order(query, driver) for driver in range(len(query.names)))
    return Join(tuple(map(Leaf, query.names)), orders)


def linear(query: Query) -> Join:
    """Binary joins in a chain from the first stream on; the best connected stream is added next."""
    first, *others = (Leaf(query.names[i]) for i in (0, *_order(query, 0)))
    pair = Join((first, others[0]), ((1,), (0,)))
    return reduce(lambda tree, leaf: Join((tree, leaf), ((1,), (0,))), others[1:], pair)


def _order(query: Query, driver: int) -> tuple[int, ...]:
    names, order = query.names, [driver]
    while len(order) < len(names):
        bound = {names[i] for i in order}
        rest = [i for i in range(len(names)) if i not in order]
        order.append(min(rest, key=lambda i: _rank(query, bound, names[i])))
    return tuple(order[1:])


def _rank(query: Query, bound: set[str], name: str) -> int:
    if any(_reads(c, bound) and _reads(c, {name}) for c in query.predicate.classes):
        return 0
    known = bound | {name}
    ranks = [
        _RANK.get(type(c), _OTHER)
        for c in query.predicate.conjuncts
        if name in c.streams and c.streams <= known and c.streams & bound
    ]
    ends = [{b.earlier, b.later} for b in query.predicate.bounds]
    is_bounded = any(name in pair and pair <= known for pair in ends)
    return min(ranks, default=_OTHER if is_bounded else _UNCONNECTED)


def _reads(attribute_class: AttributeClass, streams: set[str]) -> bool:
    return any(streams_of(member) <= streams for member in attribute_class.members)
