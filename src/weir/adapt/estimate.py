"""From a query and what is known of its streams to the join graph that optimisers read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache

import pyarrow as pa

from weir.errors import QueryError
from weir.expr.nodes import streams_of
from weir.kernel.state_schema import layouts, stored_schema
from weir.plan.tree import join
from weir.query.model import Query
from weir.query.predicate import AttributeClass, Band, Comparison, Conjunct, Cosine, Equality
from weir.query.windows import RowWindow
from weir.stats.join_graph import JoinGraph, Streams
from weir.stats.unit_costs import UnitCosts

# What a condition leaves of all pairs as long as nobody knows better.
_GUESSES: Mapping[type, float] = {Equality: 0.01, Band: 0.05, Cosine: 0.05, Comparison: 1 / 3}
_GUESS = 0.25
_SHORTEST = 1e-3
_LEAST_SHARE = 1e-9
_NEAR_ONE = 1 - 1e-9
# What a value of no fixed size is taken for.
_LONG_VALUE = 16.0


def estimate_join_graph(
    query: Query,
    rates: Mapping[str, float],
    selectivities: Mapping[Streams, float] | None = None,
    costs: UnitCosts | None = None,
    batch: float = 1.0,
) -> JoinGraph:
    """The join graph of a query; conditions whose selectivity is not given are guessed by their kind."""
    given = dict(selectivities or {})
    classes = _classes(query, given)
    edges = _edges(query, given, classes)
    graph = JoinGraph(
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
        costs=costs or UnitCosts(),
        batch=batch,
        basic=_basic_windows(query, rates),
        lag=max(stream.late for stream in query.streams) / 1e6,
        columns=_columns(query),
    )
    wide = {streams: share * graph.selectivity(streams) for streams, share in _wide(query).items()}
    return replace(graph, selectivities={**edges, **wide})


# What depends on the query alone, and is asked for many sets of streams, is found once for all graphs of it.
@lru_cache(maxsize=16)
def row_bytes(query: Query) -> Callable[[Streams], float]:
    """What a stored row takes, of one stream or of several joined: the columns still needed above it."""

    @cache
    def size(streams: Streams) -> float:
        return sum(_width(field.type) for field in stored_schema(query, streams))

    return size


@lru_cache(maxsize=16)
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
    held = layouts(query, join(*query.names))
    found = {}
    for name in query.names:
        in_time = held[name].cut_by == held[name].lead
        found[name] = held[name].cut_every / 1e6 if in_time else held[name].cut_every / rates[name]
    return found


def key_streams(attribute_class: AttributeClass) -> Streams:
    """The streams with a key of their own in a class; a sum over two streams is a key of neither."""
    single = [streams for m in attribute_class.members if len(streams := streams_of(m)) == 1]
    return frozenset().union(*single)


def is_key(conjunct: Conjunct, classes: tuple[AttributeClass, ...]) -> bool:
    """True for an equality of two keys, which its class stands for."""
    if not isinstance(conjunct, Equality):
        return False
    sides = {conjunct.left, conjunct.right}
    return all(len(streams_of(side)) == 1 for side in sides) and any(sides <= set(c.members) for c in classes)


def _classes(query: Query, given: dict[Streams, float]) -> dict[Streams, float]:
    """Every shared attribute, as selective as the least selective pair given for it.

    What pairs are more selective than that stays with the pair; where several classes or other conditions
    connect a pair, what was given is divided among them.
    """
    members = [streams for c in query.predicate.classes if len(streams := key_streams(c)) > 1]
    found: dict[Streams, float] = {}
    for streams in members:
        pairs = [pair for pair in given if pair <= streams]
        alone = [pair for pair in pairs if not _others(query, pair)] or pairs
        implied = [_implied(query, members, pair, given[pair]) for pair in alone]
        found[streams] = found.get(streams, 1.0) * max(implied, default=_GUESSES[Equality])
    for pair in [pair for pair in given if len(pair) == 2]:
        taken = math.prod(share for streams, share in found.items() if pair <= streams)
        given[pair] = min(1.0, given[pair] / taken) if taken else 0.0
        if given[pair] > _NEAR_ONE and taken < 1 and not _others(query, pair):
            del given[pair]
    return found


def _implied(query: Query, classes: Sequence[Streams], pair: Streams, given: float) -> float:
    """The share that a pair's selectivity leaves for each of its classes."""
    among = sum(pair <= streams for streams in classes)
    own = given / math.prod(guess(c) for c in _others(query, pair))
    return math.pow(min(1.0, own), 1 / among)


def _others(query: Query, pair: Streams) -> list[Conjunct]:
    """The conditions between two streams that no class stands for."""
    return [
        c for c in query.predicate.conjuncts if c.streams == pair and not is_key(c, query.predicate.classes)
    ]


def _edges(
    query: Query, given: dict[Streams, float], classes: Mapping[Streams, float]
) -> dict[Streams, float]:
    """Every other condition between two streams."""
    pairs = {c.streams for c in query.predicate.conjuncts if len(c.streams) == 2} - given.keys()
    edges = {pair: math.prod(map(guess, found)) for pair in pairs if (found := _others(query, pair))}
    edges.update(given)
    for pair, share in _timely(query).items():
        edges[pair] = edges.get(pair, 1.0) * share
    return edges | _bridges(query, [*edges, *classes])


def _wide(query: Query) -> dict[Streams, float]:
    """What conditions over three streams and more leave of what their edges and classes do."""
    shares: dict[Streams, float] = {}
    for conjunct in query.predicate.conjuncts:
        if len(conjunct.streams) > 2:
            shares[conjunct.streams] = shares.get(conjunct.streams, 1.0) * guess(conjunct)
    return shares


def _timely(query: Query) -> dict[Streams, float]:
    """What bounds on two times leave of the pairs inside their windows; 1 where windows alone bound them."""
    upper, names = query.bounds.upper, query.names
    shares = {}
    for bound in query.predicate.bounds:
        i, j = names.index(bound.earlier), names.index(bound.later)
        forth, back = upper[i][j], upper[j][i]
        windows = [window for k in (i, j) if not isinstance(window := _window(query, k), RowWindow)]
        share = 1.0
        if forth is not None and back is not None and len(windows) == 2:
            share = min(1.0, max((forth + back) / 1e6 / sum(windows), _LEAST_SHARE))
        shares[frozenset({bound.earlier, bound.later})] = share
    return shares


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


def _window(query: Query, i: int) -> float | RowWindow:
    window, kept = query.windows[i], query.bounds.retention(i)
    if isinstance(window, RowWindow):
        return window
    if kept is None:
        raise QueryError(f"stream '{query.names[i]}' has no window")
    return max(kept / 1e6, _SHORTEST)


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
