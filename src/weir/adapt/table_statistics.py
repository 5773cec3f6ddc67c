"""What tables tell about the streams they stand for: rates, and how selective each condition is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.adapt.estimate import guess, is_key
from weir.expr.evaluate import evaluate, holds
from weir.expr.nodes import Column, Expr, streams_of
from weir.query.model import Query
from weir.query.predicate import AttributeClass, Conjunct
from weir.stats.join_graph import Streams

_SAMPLE = 20_000
_SEED = 20_250_801
_UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


@dataclass(frozen=True, slots=True)
class TableStatistics:
    """Rows a second of each stream, after its filters, and the selectivity of what was measured."""

    rates: Mapping[str, float]
    selectivities: Mapping[Streams, float] = field(default_factory=dict)


def measure_tables(query: Query, tables: Mapping[str, pa.Table]) -> TableStatistics | None:
    """Measured on the tables themselves: keys are counted, other conditions tried on sampled pairs.

    None if there is too little to tell: an empty table, or rows all of one moment.
    """
    kept = {stream.name: _filtered(query, stream.name, tables[stream.name]) for stream in query.streams}
    span = _span(query, kept)
    if not span or not all(table.num_rows for table in kept.values()):
        return None
    shares: dict[Streams, float] = {}
    for c in query.predicate.classes:
        for pair, share in _key_shares(c, kept).items():
            shares[pair] = shares.get(pair, 1.0) * share
    rng = np.random.default_rng(_SEED)
    for conjunct in query.predicate.conjuncts:
        if len(conjunct.streams) == 2 and not is_key(conjunct, query.predicate.classes):
            share = _sampled(conjunct, kept, rng)
            shares[conjunct.streams] = shares.get(conjunct.streams, 1.0) * share
    return TableStatistics({name: table.num_rows / span for name, table in kept.items()}, shares)


def _filtered(query: Query, name: str, table: pa.Table) -> pa.Table:
    table = table.select(query.stream(name).schema.names).combine_chunks()
    keep = np.ones(table.num_rows, dtype=bool)
    keep &= table.column(query.stream(name).time).is_valid().to_numpy()
    for one in query.predicate.filters:
        if one.stream == name:
            keep &= holds(one.expr, _fetch({name: table}), table.num_rows)
    return table.filter(pa.array(keep))


def _span(query: Query, tables: Mapping[str, pa.Table]) -> float:
    """Seconds from the first row of all to the last."""
    ends = []
    for stream in query.streams:
        times = tables[stream.name].column(stream.time)
        unit = _UNITS[times.type.unit]
        ends += [end.value / unit for end in pc.min_max(times).values() if end.is_valid]
    return max(ends) - min(ends) if ends else 0.0


def _key_shares(c: AttributeClass, tables: Mapping[str, pa.Table]) -> dict[Streams, float]:
    """The exact selectivity of a key between neighbours of a class: a join of how often each value comes."""
    counts = {}
    for member in c.members:
        streams = streams_of(member)
        if len(streams) == 1:
            (name,) = streams
            counts[name] = _counted(member, c.domain, tables[name], name)
    shares = {}
    for one, other in pairwise(counts):
        both = counts[one].join(counts[other], "values", join_type="inner", right_suffix="_other")
        pairs = pc.sum(
            pc.multiply(both["counts"].cast(pa.float64()), both["counts_other"].cast(pa.float64()))
        )
        everything = tables[one].num_rows * tables[other].num_rows
        shares[frozenset({one, other})] = max((pairs.as_py() or 0.0) / everything, 1 / everything)
    return shares


def _counted(member: Expr, domain: pa.DataType, table: pa.Table, name: str) -> pa.Table:
    values = evaluate(member, _fetch({name: table}), table.num_rows)
    if isinstance(values, pa.Scalar):
        values = pa.array([values.as_py()] * table.num_rows, domain)
    found = pc.value_counts(pc.drop_null(values.cast(domain)))
    return pa.table({"values": found.field("values"), "counts": found.field("counts")})


def _sampled(conjunct: Conjunct, tables: Mapping[str, pa.Table], rng: np.random.Generator) -> float:
    """The share of random pairs that fulfil a condition, and the guess where none does."""
    drawn = {
        name: tables[name].take(pa.array(rng.integers(0, tables[name].num_rows, _SAMPLE)))
        for name in sorted(conjunct.streams)
    }
    share = float(holds(conjunct.expr, _fetch(drawn), _SAMPLE).mean())
    return share or min(guess(conjunct), 1 / _SAMPLE)


def _fetch(tables: Mapping[str, pa.Table]) -> Callable[[Column], pa.Array]:
    def fetch(column: Column) -> pa.Array:
        return tables[column.stream].column(column.name).combine_chunks()

    return fetch
