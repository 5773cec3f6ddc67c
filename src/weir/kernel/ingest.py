"""A batch's rows on their way into slices: filtered, timed, dropped if late, projected, coded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.expr.evaluate import evaluate, holds
from weir.expr.nodes import Column
from weir.kernel.decision import Decision
from weir.kernel.index import ByTime
from weir.kernel.keys import Bools, Int64s, as_int64, content_hash, encode
from weir.kernel.physical_plan import PhysicalPlan
from weir.kernel.row_hash import hash_limit, row_hashes
from weir.kernel.slice import Slice, cut
from weir.kernel.state import State
from weir.kernel.state_schema import StateSchema, arrival_name, line_layout, member, time_name
from weir.order.interleave import ranks
from weir.order.pending import PendingRows
from weir.query.model import Stream
from weir.query.predicate import AttributeClass


@dataclass(frozen=True, slots=True)
class Ingested:
    """The state with the batch's leaf slices, and what was counted on the way."""

    state: State
    rows_in: Mapping[str, int]
    late: Mapping[str, int]
    null_time: Mapping[str, int]
    dropped: Mapping[str, int]
    order: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Delta:
    """One stream's rows of a batch that came in time, and which of them go on into the join."""

    rows: pa.Table
    times: Int64s
    keep: Bools
    read: int
    late: int
    null_time: int
    dropped: int
    newest: int | None


def ingest(
    program: PhysicalPlan, decision: Decision, state: State, tables: Mapping[str, pa.Table], batch: int
) -> Ingested:
    """Cut a batch's rows into leaf slices; a stream without rows may be left out of `tables`."""
    streams = [stream for stream in program.query.streams if stream.name in tables]
    drop = {} if decision.allowance is None else decision.allowance.drop
    deltas = {
        s.name: _delta(program, s, tables[s.name], state.watermark, drop.get(s.name, 0.0), batch)
        for s in streams
    }
    columns = {name: _columns(program.layouts[name], delta, batch) for name, delta in deltas.items()}
    state = _line_up(program, state, deltas, columns)
    newest = dict(state.newest)
    slices: dict[str, list[Slice]] = {}
    ranked = _ranked(program, decision, state, deltas)
    for name, delta in deltas.items():
        slices |= _leaf_slices(program, name, columns[name], delta.keep, batch, ranked[name])
        if delta.newest is not None:
            newest[name] = max(delta.newest, newest.get(name, delta.newest))
    return Ingested(
        replace(state.adding(slices), newest=newest),
        {name: delta.read for name, delta in deltas.items()},
        {name: delta.late for name, delta in deltas.items()},
        {name: delta.null_time for name, delta in deltas.items()},
        {name: delta.dropped for name, delta in deltas.items()},
        tuple(sorted(ranked, key=lambda name: int(ranked[name].min(initial=2**62)))),
    )


def _leaf_slices(
    program: PhysicalPlan,
    name: str,
    columns: dict[str, pa.Array],
    keep: Bools,
    batch: int,
    of_rows: Int64s,
) -> dict[str, list[Slice]]:
    layout = program.layouts[name]
    line = line_layout(layout)
    rows, sort = _record_batch(layout, columns), program.sorts[name]
    kept, of_rows = (rows, of_rows) if keep.all() else (rows.filter(pa.array(keep)), of_rows[keep])
    slices = {
        name: [one for rank, run in _runs(kept, of_rows) for one in cut(layout, sort, batch, rank, run)]
    }
    if line is not None:
        slices[line.node] = cut(line, ByTime(), batch, 0, _record_batch(line, columns))
    return slices


def _ranked(
    program: PhysicalPlan, decision: Decision, state: State, deltas: Mapping[str, _Delta]
) -> dict[str, Int64s]:
    """The rank of every row, by the driver order or the policy that chooses one."""
    waiting = PendingRows(
        plan=program.plan,
        deltas={name: int(delta.keep.sum()) for name, delta in deltas.items()},
        states={node: sum(one.rows for one in found) for node, found in state.slices.items()},
        selectivities=decision.selectivities,
        gains=decision.gains,
    )
    return ranks(decision.driver_order, waiting, {name: delta.times for name, delta in deltas.items()})


def _runs(rows: pa.RecordBatch, ranks: Int64s) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each rank."""
    if not len(ranks) or ranks[0] == ranks[-1] == ranks.max() == ranks.min():
        yield (int(ranks[0]) if len(ranks) else 0), rows
        return
    sequence = np.argsort(ranks, kind="stable")
    for picks in np.split(sequence, np.flatnonzero(np.diff(ranks[sequence])) + 1):
        yield int(ranks[picks[0]]), rows.take(pa.array(picks))


def _record_batch(layout: StateSchema, columns: dict[str, pa.Array]) -> pa.RecordBatch:
    schema = layout.schema
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def _delta(
    program: PhysicalPlan, stream: Stream, rows: pa.Table, watermark: int | None, drop: float, batch: int
) -> _Delta:
    read = rows.num_rows
    rows = rows.combine_chunks()
    times = _column(rows, stream.time)
    timed = times.is_valid().to_numpy(zero_copy_only=False)
    micros = as_int64(times)
    newest = int(micros[timed].max()) if timed.any() else None
    late = np.zeros(read, np.bool_) if watermark is None else timed & (micros < watermark)
    in_time = timed & ~late
    if not in_time.all():
        rows, micros = rows.filter(pa.array(in_time)), micros[in_time]
    keep = _filtered(program, stream, rows)
    passed = int(keep.sum())
    if drop:  # a row of a row window keeps its place all the same, as one that is filtered out does
        keep &= ~hash_limit(row_hashes(_hashes(rows), batch, "drop", stream.name), drop)
    dropped = passed - int(keep.sum())
    if not keep.all() and not program.layouts[stream.name].lines:
        rows, micros, keep = rows.filter(pa.array(keep)), micros[keep], keep[keep]
    return _Delta(rows, micros, keep, read, int(late.sum()), read - int(timed.sum()), dropped, newest)


def _filtered(program: PhysicalPlan, stream: Stream, rows: pa.Table) -> Bools:
    keep = np.ones(rows.num_rows, np.bool_)
    for found in program.query.predicate.filters:
        if found.stream == stream.name:
            keep &= holds(found.expr, _fetch_from(rows), rows.num_rows)
    return keep


def _fetch_from(rows: pa.Table) -> Callable[[Column], pa.Array]:
    """The columns of one stream's rows as expressions ask for them."""
    return lambda column: _column(rows, column.name)


def key_codes(
    c: AttributeClass, streams: frozenset[str], fetch: Callable[[Column], pa.Array], rows: int
) -> Int64s:
    """The codes that rows of these streams have in a class of which they have a member."""
    own = member(c, streams)
    assert own is not None
    return encode(evaluate(own, fetch, rows), c.domain, c.null_safe)[0]


def _column(rows: pa.Table, name: str) -> pa.Array:
    column = rows.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _columns(layout: StateSchema, delta: _Delta, batch: int) -> dict[str, pa.Array]:
    """The stored columns of a leaf, except for the places of row windows."""
    count = delta.rows.num_rows
    fetch = _fetch_from(delta.rows)
    columns = {time_name(layout.node): pa.array(delta.times)}
    for name, c in layout.keys.items():
        columns[name] = pa.array(key_codes(c, layout.streams, fetch, count))
    for column in layout.payload:
        columns[str(column)] = fetch(column)
    if layout.arrivals:
        columns[arrival_name(layout.node)] = pa.array(np.full(count, batch))
    return columns


def _line_up(
    program: PhysicalPlan,
    state: State,
    deltas: Mapping[str, _Delta],
    columns: Mapping[str, dict[str, pa.Array]],
) -> State:
    """Give each row its place among all rows of the batch and its number in its stream; in place."""
    named = [name for name in program.query.names if name in deltas]
    if not any(program.layouts[name].place for name in named):
        return state
    places = _places([deltas[n].times for n in named], [_hashes(deltas[n].rows) for n in named])
    numbers = dict(state.next_numbers)
    for name, place in zip(named, places, strict=True):
        layout = program.layouts[name]
        assert layout.place is not None
        columns[name][layout.place] = pa.array(place + state.next_place)
        for line in layout.lines:
            first = numbers.get(line.name, 0)
            columns[name][line.number] = pa.array(first + np.argsort(np.argsort(place)))
            if layout.arrivals:  # beside a row window, freshness counts rows
                columns[name][arrival_name(name)] = columns[name][line.number]
            numbers[line.name] = first + len(place)
    total = sum(len(place) for place in places)
    return replace(state, next_place=state.next_place + total, next_numbers=numbers)


def _hashes(rows: pa.Table) -> Int64s:
    """Every column counts, stored or not: a filter may let one of two rows through that tie in the others."""
    return content_hash([_column(rows, name) for name in rows.column_names], rows.num_rows)


def _places(times: list[Int64s], hashes: list[Int64s]) -> list[npt.NDArray[np.int64]]:
    """Each row's place by (event time, stream, content) within the batch."""
    streams = np.repeat(np.arange(len(times)), [len(t) for t in times])
    order = np.lexsort((np.concatenate(hashes), streams, np.concatenate(times)))
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return np.split(places, np.cumsum([len(t) for t in times])[:-1])
