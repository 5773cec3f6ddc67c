"""Ingest: turn the rows of a batch into leaf slices - drop late rows, filter, encode keys, rank, cut.

Rows without an event time, behind the watermark or ahead of all clocks are dropped and counted. Filters and
random drop come next. Where windows count rows, every row is numbered first: rows that a filter drops count
as well.

A batch of many bytes is taken in by pieces (`weir.kernel.split_table`). Its rows have the ranks and numbers
that they would have in one piece; only slices end where pieces do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from weir.expr.evaluate import Report, evaluate, evaluate_predicate
from weir.expr.nodes import Column
from weir.kernel.decision import Decision
from weir.kernel.index import ByTime
from weir.kernel.keys import Bools, Int64s, as_int64, content_hash, encode
from weir.kernel.physical_plan import PhysicalPlan
from weir.kernel.quarantine import DroppedFor, Quarantine
from weir.kernel.row_hash import hash_rows, select_share
from weir.kernel.row_window import number_rows
from weir.kernel.slice import Slice, cut
from weir.kernel.spill import Spill, keep_in_memory
from weir.kernel.split_table import split_table
from weir.kernel.state import State
from weir.kernel.state_schema import (
    StateSchema,
    arrival_name,
    get_member,
    payload_name,
    row_order_schema,
    time_name,
)
from weir.order.policies import PendingRows, rank_rows
from weir.query.model import Stream
from weir.query.predicate import AttributeClass
from weir.stats.batch_counts import BatchCounts


@dataclass(frozen=True, slots=True)
class _Delta:
    """The rows of one stream that came in time, which of them to `keep` for the join, and counts."""

    rows: pa.Table
    times: Int64s
    keep: Bools
    read: int
    late: int
    null_time: int
    ahead: int
    dropped: int
    newest: int | None


# The rows of each stream that has any, in pieces of bounded size.
_Deltas = Mapping[str, Sequence[_Delta]]


def ingest(
    physical: PhysicalPlan,
    decision: Decision,
    state: State,
    tables: Mapping[str, pa.Table],
    batch: int,
    counts: BatchCounts,
    spill: Spill = keep_in_memory,
    quarantine: Quarantine | None = None,
) -> State:
    """Cut the rows of a batch into leaf slices; a stream without rows may be left out of `tables`."""
    streams = [stream for stream in physical.query.streams if stream.name in tables]
    deltas = {
        s.name: [
            _read_delta(physical, decision, s, piece, state.watermark, batch, quarantine)
            for piece in split_table(tables[s.name])
        ]
        for s in streams
    }
    numbers, state = _number_rows(physical, state, deltas)
    newest = dict(state.newest)
    slices: dict[str, list[Slice]] = defaultdict(list)
    ranked = _rank_rows(physical, decision, state, deltas)
    for name, pieces in deltas.items():
        for delta in pieces:
            if delta.newest is not None:
                newest[name] = max(delta.newest, newest.get(name, delta.newest))
        counts.rows_in[name] = sum(delta.read for delta in pieces)
        counts.late[name] = sum(delta.late for delta in pieces)
        counts.null_time[name] = sum(delta.null_time for delta in pieces)
        counts.ahead[name] = sum(delta.ahead for delta in pieces)
        counts.dropped[name] = sum(delta.dropped for delta in pieces)
        ranks = _split_like(ranked[name], [delta.times for delta in pieces])
        for delta, row_numbers, row_ranks in zip(_drain(pieces), numbers[name], ranks, strict=True):
            columns = {**_encode(physical.schemas[name], delta, batch), **row_numbers}
            weight = 1 / (1 - _dropped_share(decision, name)) if delta.keep.any() else 1.0
            cuts = _cut_leaf(
                physical, name, columns, delta.keep, row_ranks, batch, decision.slice_bytes, weight
            )
            for node, cut_slices in cuts.items():
                slices[node] += spill(cut_slices)
    counts.order = tuple(sorted(ranked, key=lambda name: int(ranked[name].min(initial=2**62))))
    return replace(state.add(slices), newest=newest)


def _drain(pieces: list[_Delta]) -> Iterator[_Delta]:
    """Yield the pieces, and let go of each, so that its memory is free once its slices are cut."""
    while pieces:
        yield pieces.pop(0)


def _read_delta(
    physical: PhysicalPlan,
    decision: Decision,
    stream: Stream,
    rows: pa.Table,
    watermark: int | None,
    batch: int,
    quarantine: Quarantine | None,
) -> _Delta:
    """Drop rows before the watermark or ahead, then mark those that pass the filters and random drop.

    Rows that are ahead do not count as the newest, so that a wrong clock does not move the watermark.
    """
    read = rows.num_rows
    rows = rows.combine_chunks()
    times = _column(rows, stream.time)
    has_time = times.is_valid().to_numpy(zero_copy_only=False)
    micros = as_int64(times)
    latest, none = decision.latest.get(stream.name), np.zeros(read, np.bool_)
    late = none if watermark is None else has_time & (micros < watermark)
    ahead = none if latest is None else has_time & (micros > latest)
    usable = has_time & ~ahead
    newest = int(micros[usable].max()) if usable.any() else None
    in_time = usable & ~late
    if not in_time.all():
        if decision.keeps_dropped and quarantine is not None:
            why = {DroppedFor.LATE: late & ~ahead, DroppedFor.AHEAD: ahead, DroppedFor.NO_TIME: ~has_time}
            quarantine.add_dropped(stream, rows, why)
        rows, micros = rows.filter(pa.array(in_time)), micros[in_time]
    report = None if quarantine is None else partial(quarantine.add, {stream.name: micros})
    keep = _pass_filters(physical, stream, rows, report)
    passed = int(keep.sum())
    drop = _dropped_share(decision, stream.name)
    if drop:
        keep &= ~select_share(hash_rows(_hash_content(rows), batch, "drop", stream.name), drop)
    dropped = passed - int(keep.sum())
    if not keep.all() and not physical.schemas[stream.name].row_windows:
        rows, micros, keep = rows.filter(pa.array(keep)), micros[keep], keep[keep]
    null_time = read - int(has_time.sum())
    return _Delta(rows, micros, keep, read, int(late.sum()), null_time, int(ahead.sum()), dropped, newest)


def _dropped_share(decision: Decision, stream: str) -> float:
    return 0.0 if decision.allowance is None else decision.allowance.drop.get(stream, 0.0)


def _pass_filters(physical: PhysicalPlan, stream: Stream, rows: pa.Table, report: Report | None) -> Bools:
    keep = np.ones(rows.num_rows, np.bool_)
    for condition in physical.query.predicate.filters:
        if condition.stream == stream.name:
            keep &= evaluate_predicate(condition.expr, _fetch_from(rows), rows.num_rows, keep, report)
    return keep


def _fetch_from(rows: pa.Table) -> Callable[[Column], pa.Array]:
    return lambda column: _column(rows, column.name)


def _column(rows: pa.Table, name: str) -> pa.Array:
    column = rows.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _hash_content(rows: pa.Table) -> Int64s:
    """Hash all columns, stored or not: a filter may pass one of two rows that are equal in the others."""
    return content_hash([_column(rows, name) for name in rows.column_names], rows.num_rows)


def encode_keys(
    c: AttributeClass, streams: frozenset[str], fetch: Callable[[Column], pa.Array], rows: int
) -> Int64s:
    """Return the codes that rows of these streams have in a class of which they have a member."""
    return encode(evaluate(get_member(c, streams), fetch, rows), c.domain, c.null_safe)[0]


def _encode(schema: StateSchema, delta: _Delta, batch: int) -> dict[str, pa.Array]:
    """Compute the stored columns of a leaf, except for the numbers of row windows."""
    count = delta.rows.num_rows
    fetch = _fetch_from(delta.rows)
    columns = {time_name(schema.node): pa.array(delta.times)}
    for name, c in schema.keys.items():
        columns[name] = pa.array(encode_keys(c, schema.streams, fetch, count))
    for column in schema.payload:
        columns[payload_name(column)] = fetch(column)
    if schema.arrivals:
        columns[arrival_name(schema.node)] = pa.array(np.full(count, batch))
    return columns


def _number_rows(
    physical: PhysicalPlan, state: State, deltas: _Deltas
) -> tuple[dict[str, list[dict[str, pa.Array]]], State]:
    """Return the sequence number and the row number of each row, piece by piece, if row windows need them."""
    numbers: dict[str, list[dict[str, pa.Array]]] = {name: [{} for _ in deltas[name]] for name in deltas}
    names = [name for name in physical.query.names if name in deltas]
    if not any(physical.schemas[name].sequence for name in names):
        return numbers, state
    parts = [(i, delta) for i, name in enumerate(names) for delta in deltas[name]]
    times = [delta.times for _, delta in parts]
    hashes = [_hash_content(delta.rows) for _, delta in parts]
    in_order = iter(number_rows(hashes, [np.full(len(d.times), i) for i, d in parts], times))
    next_row_numbers, total = dict(state.next_row_numbers), sum(map(len, times))
    for name in names:
        schema = physical.schemas[name]
        assert schema.sequence is not None
        sequences = [next(in_order) for _ in deltas[name]]
        columns = {schema.sequence: [sequence + state.next_sequence for sequence in sequences]}
        for window in schema.row_windows:
            first = next_row_numbers.get(window.name, 0)
            columns[window.row_number] = [first + rows for rows in number_rows(sequences)]
            if schema.arrivals:  # with a row window, freshness counts rows
                columns[arrival_name(name)] = columns[window.row_number]
            next_row_numbers[window.name] = first + sum(map(len, sequences))
        numbers[name] = [
            {column: pa.array(pieces[i]) for column, pieces in columns.items()} for i in range(len(sequences))
        ]
    return numbers, replace(
        state, next_sequence=state.next_sequence + total, next_row_numbers=next_row_numbers
    )


def _rank_rows(
    physical: PhysicalPlan, decision: Decision, state: State, deltas: _Deltas
) -> dict[str, Int64s]:
    """Rank every row by the driver order, or by the policy that chooses one."""
    pending = PendingRows(
        plan=physical.plan,
        deltas={name: sum(int(delta.keep.sum()) for delta in pieces) for name, pieces in deltas.items()},
        states={node: state.count_rows(node) for node in state.slices},
        selectivities=decision.selectivities,
        results_per_row=decision.results_per_row,
    )
    times = {name: np.concatenate([delta.times for delta in pieces]) for name, pieces in deltas.items()}
    return rank_rows(decision.driver_order, pending, times)


def _split_like(values: Int64s, parts: Sequence[Int64s]) -> list[Int64s]:
    """Split values into as many parts as there are, of the same lengths."""
    return np.split(values, np.cumsum([len(part) for part in parts])[:-1])


def _cut_leaf(
    physical: PhysicalPlan,
    name: str,
    columns: dict[str, pa.Array],
    keep: Bools,
    row_ranks: Int64s,
    batch: int,
    slice_bytes: int | None,
    weight: float,
) -> dict[str, list[Slice]]:
    """Cut a stream's rows into slices; with a row window, store the order of all rows as well.

    Each row stands for `weight` rows of the stream (Horvitz and Thompson 1952).
    """
    schema, sort = physical.schemas[name], physical.sorts[name]
    rows = schema.record_batch(columns)
    if not keep.all():
        rows, row_ranks = rows.filter(pa.array(keep)), row_ranks[keep]
    weights = None if weight == 1 else np.full(rows.num_rows, weight)
    slices = {name: cut(schema, sort, batch, _common_rank(row_ranks), rows, slice_bytes, weights=weights)}
    row_order = row_order_schema(schema)
    if row_order is not None:
        slices[row_order.node] = cut(row_order, ByTime(), batch, 0, row_order.record_batch(columns))
    return slices


def _common_rank(row_ranks: Int64s) -> int | Int64s:
    """Return the rank that all rows have, else that of each."""
    lowest = int(row_ranks.min(initial=2**62))
    return lowest if (row_ranks == lowest).all() else row_ranks
