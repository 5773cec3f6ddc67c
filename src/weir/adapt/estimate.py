"""Estimate the join graph of a query from rates, given or guessed selectivities, and its state schemas."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache

import pyarrow as pa

from weir.errors import QueryError
from weir.expr.nodes import streams_of
from weir.kernel.slice import ROWS
from weir.kernel.state_schema import derive_schemas, stored_schema
from weir.plan.tree import join
from weir.query.model import Query
from weir.query.predicate import AttributeClass, Band, Comparison, Conjunct, Cosine, Equality
from weir.query.windows import RowWindow
from weir.stats.join_graph import JoinGraph, Streams
from weir.stats.unit_costs import UnitCosts

# Selectivities to assume for predicates of which none is given or measured.
_ASSUMED_SELECTIVITIES = {Equality: 0.01, Band: 0.05, Cosine: 0.05, Comparison: 1 / 3}
_ASSUMED_SELECTIVITY = 0.25
# Seconds; shorter windows, which may even be negative, count as this long.
_SHORTEST_WINDOW = 1e-3
# The least share of pairs that a time bound may leave, so that no selectivity becomes zero.
_LEAST_TIME_SHARE = 1e-9
# A selectivity above this adds nothing; the rest is rounding.
_ALMOST_ONE = 1 - 1e-9
# Bytes to assume for values without a fixed size, such as text.
_ASSUMED_VALUE_BYTES = 16.0


def estimate_join_graph(
    query: Query,
    rates: Mapping[str, float],
    selectivities: Mapping[Streams, float] | None = None,
    costs: UnitCosts | None = None,
    batch: float = 1.0,
) -> JoinGraph:
    """Estimate the join graph of a query; selectivities not given are assumed by the kind of predicate."""
    classes, given = _divide_by_class(query, selectivities or {})
    edges, wide = _edge_selectivities(query, given, classes), dict[Streams, float]()
    count_bytes, count_columns = _measure_states(query)
    ordered = [c.streams for c in query.predicate.conjuncts if isinstance(c, Band | Comparison)]
    ranges = [streams for streams in ordered if len(streams) == 2]
    graph = JoinGraph(
        streams=query.names,
        rates=rates,
        windows={name: _window(query, i) for i, name in enumerate(query.names)},
        selectivities=edges,
        classes=classes,
        narrowing={pair: edges[pair] for pair in ranges if not any(pair <= keys for keys in classes)},
        row_bytes=count_bytes,
        costs=costs or UnitCosts(),
        batch=batch,
        basic=_basic_windows(query, rates),
        slice_rows=ROWS,
        lag=max(stream.late for stream in query.streams) / 1e6,
        columns=count_columns,
    )
    for predicate in query.predicate.conjuncts:
        if len(streams := predicate.streams) > 2:
            wide[streams] = wide.get(streams, graph.selectivity(streams)) * assume_selectivity(predicate)
    return replace(graph, selectivities={**edges, **wide})


def assume_selectivity(predicate: Conjunct) -> float:
    """Return the selectivity to assume for a predicate by its kind."""
    return _ASSUMED_SELECTIVITIES.get(type(predicate), _ASSUMED_SELECTIVITY)


def is_key_equality(predicate: Conjunct, classes: tuple[AttributeClass, ...]) -> bool:
    """True for an equality of two keys, each of one stream, which a key class represents."""
    if not isinstance(predicate, Equality):
        return False
    sides = {predicate.left, predicate.right}
    return all(len(streams_of(side)) == 1 for side in sides) and any(sides <= set(c.members) for c in classes)


# These depend on the query alone and are asked for many sets of streams: all graphs share the cache.
@lru_cache(maxsize=16)
def _measure_states(query: Query) -> tuple[Callable[[Streams], float], Callable[[Streams], float]]:
    """Return functions for the bytes of a stored row or partial, and its columns but times and keys."""

    @cache
    def count_bytes(streams: Streams) -> float:
        return sum(_value_bytes(field.type) for field in stored_schema(query, streams))

    @cache
    def count_columns(streams: Streams) -> float:
        if len(streams) == len(query.names):
            return float(len(query.select))
        return float(sum("@" not in name for name in stored_schema(query, streams).names))

    return count_bytes, count_columns


def _value_bytes(kind: pa.DataType) -> float:
    if pa.types.is_fixed_size_list(kind):
        return float(kind.list_size) * _value_bytes(kind.value_type)
    if pa.types.is_struct(kind):
        return sum(_value_bytes(kind.field(i).type) for i in range(kind.num_fields))
    try:
        return float(kind.bit_width) / 8
    except ValueError:
        return _ASSUMED_VALUE_BYTES


def _basic_windows(query: Query, rates: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds that a slice of each stream covers, and of states that the stream leads."""
    schemas = derive_schemas(query, join(*query.names))
    seconds = {}
    for name in query.names:
        schema = schemas[name]
        seconds[name] = schema.cut_every / (1e6 if schema.cut_by == schema.lead else rates[name])
    return seconds


def _window(query: Query, i: int) -> float | RowWindow:
    window, retention = query.windows[i], query.bounds.retention(i)
    if isinstance(window, RowWindow):
        return window
    if retention is None:
        raise QueryError(f"stream '{query.names[i]}' has no window")
    return max(retention / 1e6, _SHORTEST_WINDOW)


def _divide_by_class(
    query: Query, selectivities: Mapping[Streams, float]
) -> tuple[dict[Streams, float], dict[Streams, float]]:
    """Divide given selectivities of pairs among key classes and what the classes do not explain.

    A class is as selective as the least selective pair given for it. A pair that is more selective keeps the
    quotient. If several classes or other predicates connect a pair, its selectivity is divided among them.
    """
    members = [streams for c in query.predicate.classes if len(streams := _key_streams(c)) > 1]
    given = dict(selectivities)
    classes: dict[Streams, float] = {}
    for streams in members:
        pairs = [pair for pair in given if pair <= streams]
        pure = [pair for pair in pairs if not _other_predicates(query, pair)] or pairs
        implied = [_share_of_class(query, members, pair, given[pair]) for pair in pure]
        share = max(implied, default=_ASSUMED_SELECTIVITIES[Equality])
        classes[streams] = classes.get(streams, 1.0) * share
    for pair in [pair for pair in given if len(pair) == 2]:
        explained = math.prod(share for streams, share in classes.items() if pair <= streams)
        given[pair] = min(1.0, given[pair] / explained) if explained else 0.0
        if given[pair] > _ALMOST_ONE and explained < 1 and not _other_predicates(query, pair):
            del given[pair]
    return classes, given


def _key_streams(key_class: AttributeClass) -> Streams:
    """Return the streams with a key of their own in a class; a sum over two streams is a key of neither."""
    single = [streams for m in key_class.members if len(streams := streams_of(m)) == 1]
    return frozenset().union(*single)


def _share_of_class(query: Query, classes: Sequence[Streams], pair: Streams, selectivity: float) -> float:
    """Return the part of a pair's selectivity that each of its classes explains."""
    count = sum(pair <= streams for streams in classes)
    of_classes = selectivity / math.prod(map(assume_selectivity, _other_predicates(query, pair)))
    return math.pow(min(1.0, of_classes), 1 / count)


def _other_predicates(query: Query, pair: Streams) -> list[Conjunct]:
    """Return the predicates between two streams that no key class represents."""
    classes = query.predicate.classes
    return [c for c in query.predicate.conjuncts if c.streams == pair and not is_key_equality(c, classes)]


def _edge_selectivities(
    query: Query, given: Mapping[Streams, float], classes: Mapping[Streams, float]
) -> dict[Streams, float]:
    """Return the selectivity of each pair of streams beyond its key classes."""
    edges: dict[Streams, float] = {}
    for pair in {c.streams for c in query.predicate.conjuncts if len(c.streams) == 2} - given.keys():
        if predicates := _other_predicates(query, pair):
            edges[pair] = math.prod(map(assume_selectivity, predicates))
    edges.update(given)
    for pair, share in _time_shares(query).items():
        edges[pair] = edges.get(pair, 1.0) * share
    return edges | _product_edges(query, [*edges, *classes])


def _time_shares(query: Query) -> dict[Streams, float]:
    """Return the share of pairs inside their windows that satisfy each time bound; 1 if it is open-ended."""
    upper, names = query.bounds.upper, query.names
    shares = {}
    for bound in query.predicate.bounds:
        i, j = names.index(bound.earlier), names.index(bound.later)
        forward, back = upper[i][j], upper[j][i]
        windows = [window for k in (i, j) if not isinstance(window := _window(query, k), RowWindow)]
        share = 1.0
        if forward is not None and back is not None and len(windows) == 2:
            share = min(1.0, max((forward + back) / 1e6 / sum(windows), _LEAST_TIME_SHARE))
        shares[frozenset({bound.earlier, bound.later})] = share
    return shares


def _product_edges(query: Query, connected: Sequence[Streams]) -> dict[Streams, float]:
    """Return edges of selectivity 1 that connect the parts of a cross product."""
    edges: dict[Streams, float] = {}
    component = {query.names[0]}
    for name in query.names:
        if name not in component:
            edges[frozenset({query.names[0], name})] = 1.0
            component.add(name)
        while added := {s for streams in connected if streams & component for s in streams} - component:
            component |= added
    return edges
