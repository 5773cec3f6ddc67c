"""Measure rates and selectivities on tables: count keys exactly, try other predicates on sampled pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.adapt.estimate import assume_selectivity, is_key_equality
from weir.expr.evaluate import evaluate, evaluate_predicate
from weir.expr.nodes import Column, Expr, streams_of, without_failing
from weir.kernel.split_table import BYTES
from weir.query.model import Query
from weir.query.predicate import AttributeClass, Conjunct
from weir.stats.join_graph import Streams

_SAMPLED_PAIRS = 20_000
_SEED = 20_250_801
_UNITS_PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


@dataclass(frozen=True, slots=True)
class TableStatistics:
    """Rows per second of each stream, after its filters, and the selectivities of pairs of streams."""

    rates: Mapping[str, float]
    selectivities: Mapping[Streams, float] = field(default_factory=dict)


def measure_tables(query: Query, tables: Mapping[str, pa.Table]) -> TableStatistics | None:
    """Measure the tables of a query; None if one is empty, or if all rows have the same time."""
    steps = {name: _find_step(table) for name, table in tables.items()}
    tables = {s.name: _filter(query, s.name, tables[s.name], steps[s.name]) for s in query.streams}
    span = _span_seconds(query, tables)
    if not span or not all(table.num_rows for table in tables.values()):
        return None
    measured = [pair for c in query.predicate.classes for pair in _count_key_matches(c, tables).items()]
    rng = np.random.default_rng(_SEED)
    for predicate in query.predicate.conjuncts:
        if len(predicate.streams) == 2 and not is_key_equality(predicate, query.predicate.classes):
            measured.append((predicate.streams, _try_pairs(predicate, tables, rng)))
    selectivities: dict[Streams, float] = {}
    for streams, share in measured:
        selectivities[streams] = selectivities.get(streams, 1.0) * share
    rates = {name: steps[name] * table.num_rows / span for name, table in tables.items()}
    return TableStatistics(rates, selectivities)


def _find_step(table: pa.Table) -> int:
    """Return one row in how many is measured: 1, unless the table has more bytes than Arrow puts together."""
    return max(1, -(-int(table.nbytes) // BYTES))


def _filter(query: Query, name: str, table: pa.Table, step: int) -> pa.Table:
    """Return the rows of a stream that have a time and pass its filters, one in `step` of them."""
    table = table.select(query.stream(name).schema.names)
    if step > 1:
        table = table.filter(pa.array(np.arange(table.num_rows) % step == 0))
    table = table.combine_chunks()
    passes = table.column(query.stream(name).time).is_valid().to_numpy()
    for condition in query.predicate.filters:
        if condition.stream == name:
            expr = without_failing(condition.expr)
            passes = passes & evaluate_predicate(expr, _fetch_from({name: table}), table.num_rows)
    return table.filter(pa.array(passes))


def _span_seconds(query: Query, tables: Mapping[str, pa.Table]) -> float:
    """Return the seconds from the first row of all tables to the last."""
    ends = []
    for stream in query.streams:
        times = tables[stream.name].column(stream.time)
        unit = _UNITS_PER_SECOND[times.type.unit]
        ends += [end.value / unit for end in pc.min_max(times).values() if end.is_valid]
    return max(ends) - min(ends) if ends else 0.0


def _count_key_matches(key_class: AttributeClass, tables: Mapping[str, pa.Table]) -> dict[Streams, float]:
    """Return the exact selectivity between neighbours in a key class, by joining their value counts."""
    keys = {min(streams): key for key in key_class.members if len(streams := streams_of(key)) == 1}
    counts = {name: _count_values(key, key_class.domain, tables[name], name) for name, key in keys.items()}
    selectivities = {}
    for left, right in pairwise(counts):
        both = counts[left].join(counts[right], "values", join_type="inner", right_suffix="_right")
        products = pc.multiply(both["counts"].cast(pa.float64()), both["counts_right"].cast(pa.float64()))
        pairs = tables[left].num_rows * tables[right].num_rows
        matches = pc.sum(products).as_py() or 0.0
        selectivities[frozenset({left, right})] = max(matches / pairs, 1 / pairs)
    return selectivities


def _count_values(key: Expr, domain: pa.DataType, table: pa.Table, name: str) -> pa.Table:
    values = evaluate(without_failing(key), _fetch_from({name: table}), table.num_rows)
    if isinstance(values, pa.Scalar):
        values = pa.array([values.as_py()] * table.num_rows, domain)
    return pa.Table.from_struct_array(pc.value_counts(pc.drop_null(values.cast(domain))))


def _try_pairs(predicate: Conjunct, tables: Mapping[str, pa.Table], rng: np.random.Generator) -> float:
    """Return the share of random pairs that satisfy a predicate; if none does, a small assumed one."""
    drawn = {
        name: tables[name].take(pa.array(rng.integers(0, tables[name].num_rows, _SAMPLED_PAIRS)))
        for name in sorted(predicate.streams)
    }
    expr = without_failing(predicate.expr)
    share = float(evaluate_predicate(expr, _fetch_from(drawn), _SAMPLED_PAIRS).mean())
    return share or min(assume_selectivity(predicate), 1 / _SAMPLED_PAIRS)


def _fetch_from(tables: Mapping[str, pa.Table]) -> Callable[[Column], pa.Array]:
    def fetch(column: Column) -> pa.Array:
        return tables[column.stream].column(column.name).combine_chunks()

    return fetch
