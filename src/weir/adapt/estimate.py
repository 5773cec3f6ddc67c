"""From a query and what is known of its streams to the join graph that optimisers read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import pyarrow as pa

from weir.errors import QueryError
from weir.kernel import stored_schema
from weir.kernel.layout import layouts
from weir.plan import join
from weir.query import (
    AttributeClass,
    Band,
    Comparison,
    Conjunct,
    Cosine,
    Equality,
    Query,
    RowWindow,
    TimeWindow,
)
from weir.stats import Costs, JoinGraph, Streams

# What a condition leaves of all pairs as long as nobody knows better.
_GUESSES: Mapping[type, float] = {Equality: 0.01, Band: 0.05, Cosine: 0.05, Comparison: 1 / 3}
_GUESS = 0.25
_SHORTEST = 1e-3
# What a value of no fixed size is taken for.
_LONG_VALUE = 16.0


def graph_of(
    query: Query,
    rates: Mapping[str, float],
    selectivities: Mapping[Streams, float] | None = None,
    costs: Costs | None = None,
    batch: float = 1.0,
) -> JoinGraph:
    """The join graph of a query; conditions whose selectivity is not given are guessed by their kind."""
    given = dict(selectivities or {})
    classes = _classes(query, given)
    edges = _edges(query, given, classes)
    return JoinGraph(
        streams=query.names,
        rates=rates,
        windows={name: _window(query, i) for i, name in enumerate(query.names)},
        selectivities=edges,
        classes=classes,
        narrowing={
            c.streams: edges[c.streams]
            for c in query.predicate.conjuncts
            if isinstance(c, Band | Comparison)
            and len(c.streams) == 2
            and not any(c.streams <= members for members in classes)
        },
        row_bytes=row_bytes(query),
        costs=costs or Costs(),
        batch=batch,
        basic=_basic_windows(query, rates),
        lag=max(stream.late for stream in query.streams) / 1e6,
        columns=_columns(query),
    )


def row_bytes(query: Query) -> Callable[[Streams], float]:
    """What a stored row takes, of one stream or of several joined: the columns still needed above it."""

    @cache
    def size(streams: Streams) -> float:
        return sum(_width(field.type) for field in stored_schema(query, streams))

    return size


def _columns(query: Query) -> Callable[[Streams], float]:
    """How many columns of a state are neither times nor keys: those that are carried on into results."""

    @cache
    def count(streams: Streams) -> float:
        if len(streams) == len(query.names):
            return float(len(query.select))
        return float(sum("@" not in name for name in stored_schema(query, streams).names))

    return count


def guess(conjunct: Conjunct) -> float:
    """The share of pairs that a condition is taken to leave."""
    return _GUESSES.get(type(conjunct), _GUESS)


def _basic_windows(query: Query, rates: Mapping[str, float]) -> dict[str, float]:
    """Seconds by which the kernel cuts each stream's state, and joined states that the stream leads."""
    found = {}
    for name in query.names:
        layout = layouts(query, join(*query.names))[name]
        in_time = layout.cut_by == layout.lead
        found[name] = layout.cut_every / 1e6 if in_time else layout.cut_every / rates[name]
    return found


def _classes(query: Query, given: dict[Streams, float]) -> dict[Streams, float]:
    """Every shared attribute; what was given for two of its streams goes to it.

    Where two streams have more conditions than the shared attribute, that one's share is taken from other
    pairs if there are any, and the rest of what was given stays with the pair.
    """
    more = {c.streams for c in query.predicate.conjuncts if not _is_shared(c, query.predicate.classes)}
    found: dict[Streams, float] = {}
    for c in query.predicate.classes:
        pairs = [pair for pair in given if pair <= c.streams and len(pair) == 2]
        known = {pair: given.pop(pair) for pair in pairs}
        alone = [share for pair, share in known.items() if pair not in more]
        share = _mean(alone or [known[pair] / _guesses(query, pair) for pair in known])
        for pair in more & known.keys():
            given[pair] = min(1.0, known[pair] / share) if share else 0.0
        found[c.streams] = found.get(c.streams, 1.0) * share
    return found


def _mean(shares: Sequence[float]) -> float:
    if not shares:
        return _GUESSES[Equality]
    return 0.0 if 0.0 in shares else min(1.0, math.exp(sum(map(math.log, shares)) / len(shares)))


def _guesses(query: Query, pair: Streams) -> float:
    """What the conditions of a pair beside shared attributes are taken to leave."""
    return math.prod(
        guess(c)
        for c in query.predicate.conjuncts
        if c.streams == pair and not _is_shared(c, query.predicate.classes)
    )


def _edges(
    query: Query, given: dict[Streams, float], classes: Mapping[Streams, float]
) -> dict[Streams, float]:
    """Every other condition between two streams, and those over more as a set of their own."""
    edges: dict[Streams, float] = {}
    wide: dict[Streams, float] = {}
    for conjunct in query.predicate.conjuncts:
        if _is_shared(conjunct, query.predicate.classes) or conjunct.streams in given:
            continue
        into = edges if len(conjunct.streams) == 2 else wide
        into[conjunct.streams] = into.get(conjunct.streams, 1.0) * guess(conjunct)
    edges.update(given)
    for streams, share in wide.items():
        edges[streams] = share * _within(streams, edges, classes)
    for bound in query.predicate.bounds:
        # A bound on two times connects them; what it leaves is in the windows.
        pair = frozenset({bound.earlier, bound.later})
        if not any(pair <= members for members in classes):
            edges.setdefault(pair, 1.0)
    return {**_bridges(query, [*edges, *classes]), **edges}


def _bridges(query: Query, connected: Sequence[Streams]) -> dict[Streams, float]:
    """For a query that may be a product: edges that everything passes, between parts that none connects."""
    bridges: dict[Streams, float] = {}
    reached = {query.names[0]}
    for name in query.names:
        if name not in reached:
            bridges[frozenset({query.names[0], name})] = 1.0
            reached.add(name)
        while grown := {s for near in connected if near & reached for s in near} - reached:
            reached |= grown
    return bridges


def _within(streams: Streams, edges: Mapping[Streams, float], classes: Mapping[Streams, float]) -> float:
    shared = ((share, len(members & streams)) for members, share in classes.items())
    pairs = (share for pair, share in edges.items() if len(pair) == 2 and pair <= streams)
    return math.prod(pairs) * math.prod(share ** (count - 1) for share, count in shared if count > 1)


def _is_shared(conjunct: Conjunct, classes: tuple[AttributeClass, ...]) -> bool:
    return isinstance(conjunct, Equality) and any(
        {conjunct.left, conjunct.right} <= set(c.members) for c in classes
    )


def _window(query: Query, i: int) -> float | RowWindow:
    window = query.windows[i]
    if isinstance(window, RowWindow):
        return window
    longest = window.microseconds if isinstance(window, TimeWindow) else query.bounds.retention(i)
    if longest is None:
        raise QueryError(f"stream '{query.names[i]}' has no window")
    return max(longest / 1e6, _SHORTEST)


def _width(kind: pa.DataType) -> float:
    """Bytes of one value; what has no fixed size is taken for a short text."""
    if pa.types.is_fixed_size_list(kind):
        return float(kind.list_size) * _width(kind.value_type)
    if pa.types.is_struct(kind):
        return sum(_width(kind.field(i).type) for i in range(kind.num_fields))
    try:
        return float(kind.bit_width) / 8
    except ValueError:
        return _LONG_VALUE
