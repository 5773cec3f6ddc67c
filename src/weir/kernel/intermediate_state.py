"""Intermediate states: store the outputs of a join below the root as slices of its own.

A join may make far more rows than the batch brought. Its outputs are gathered, cut into slices and spilled
some megabytes at a time (`weir.kernel.spill`), so that memory holds few of them beside those of the state.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from weir.expr.nodes import Column, columns_of
from weir.kernel.index import Spec
from weir.kernel.ingest import encode_keys
from weir.kernel.keys import Floats, Int64s, content_hash
from weir.kernel.partial import Partial
from weir.kernel.physical_plan import NodePlan, PhysicalPlan
from weir.kernel.row_window import number_rows, sequence_columns
from weir.kernel.slice import Slice, cut
from weir.kernel.spill import Spill, keep_in_memory, take_runs
from weir.kernel.split_partial import split_by_bytes
from weir.kernel.state import State
from weir.kernel.state_schema import RowWindowColumns, StateSchema, get_member, payload_name

_NUMBER_BYTES = 8

Columns = dict[str, pa.Array]


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Some outputs of a join; `ranks` has the rank of each if they have none in common."""

    rank: int | None
    ranks: Int64s | None
    weights: Floats | None
    columns: Columns

    @property
    def bytes(self) -> int:
        return sum(column.nbytes for column in self.columns.values())

    @property
    def rows(self) -> int:
        return len(next(iter(self.columns.values())))


def store(
    physical: PhysicalPlan,
    node: NodePlan,
    partials: Iterable[tuple[int | None, Partial]],
    state: State,
    batch: int,
    slice_bytes: int | None,
    spill: Spill = keep_in_memory,
) -> State:
    """Store the outputs of a join in slices of at most about so many bytes.

    Each output comes with its rank, or with None if each of its rows has that of the row that drives it.
    """
    schema = node.output
    assert schema is not None
    chunks: Iterable[_Chunk] = _gather(schema, partials)
    for window in schema.row_windows:
        if window.name == schema.node:  # the number of a row depends on all others
            chunks = sorted(chunks, key=_by_rank)
            state = _number_rows(schema, window, chunks, state)
    sort = physical.sorts[node.node]
    cuts = (_cut(schema, sort, batch, run, slice_bytes) for run in take_runs(chunks))
    return state.add({node.node: [kept for slices in cuts for kept in spill(slices)]})


def _gather(schema: StateSchema, partials: Iterable[tuple[int | None, Partial]]) -> Iterator[_Chunk]:
    """Gather what the node stores of each partial, a bounded number of bytes at a time."""
    for rank, partial in partials:
        columns = _columns_read(schema, partial)
        for piece in split_by_bytes(partial, columns, _NUMBER_BYTES * len(schema.numbers)):
            ranks = piece.ranks_of(slice(None)) if rank is None else None
            yield _Chunk(rank, ranks, piece.weights, _stored_columns(schema, piece))


def _columns_read(schema: StateSchema, partial: Partial) -> set[Column]:
    """Return the columns that are gathered: the payload, and those of keys to be encoded."""
    encoded = [c for name, c in schema.keys.items() if not partial.stores(name)]
    return set(schema.payload).union(*(columns_of(get_member(c, schema.streams)) for c in encoded))


def _by_rank(chunk: _Chunk) -> int:
    return -1 if chunk.rank is None else chunk.rank


def _cut(
    schema: StateSchema, sort: Spec, batch: int, chunks: Sequence[_Chunk], slice_bytes: int | None
) -> list[Slice]:
    """Cut chunks into slices, those of one rank together."""
    by_rank: dict[int, list[_Chunk]] = defaultdict(list)
    for chunk in sorted(chunks, key=_by_rank):
        by_rank[_by_rank(chunk)].append(chunk)
    slices: list[Slice] = []
    for rank, parts in by_rank.items():
        names = parts[0].columns
        columns = {name: pa.concat_arrays([part.columns[name] for part in parts]) for name in names}
        ranks = [part.ranks for part in parts if part.ranks is not None]
        row_ranks = np.concatenate(ranks) if ranks else rank
        rows, weights = schema.record_batch(columns), _concat_weights(parts)
        slices += cut(schema, sort, batch, row_ranks, rows, slice_bytes, weights=weights)
    return slices


def _concat_weights(chunks: Sequence[_Chunk]) -> Floats | None:
    if all(chunk.weights is None for chunk in chunks):
        return None
    each = (np.ones(chunk.rows) if chunk.weights is None else chunk.weights for chunk in chunks)
    return np.concatenate(list(each))


def _stored_columns(schema: StateSchema, partial: Partial) -> Columns:
    """Gather or compute the columns of a partial that its node stores."""
    columns = {}
    row_numbers = (window.row_number for window in schema.row_windows)
    for name in (*schema.times, *schema.keys, *schema.arrivals, *row_numbers):
        if partial.stores(name):
            columns[name] = partial.numbers(name)
        elif name in schema.times:
            columns[name] = partial.latest(lambda part: (part.lead,))
        elif name in schema.keys:
            columns[name] = encode_keys(schema.keys[name], schema.streams, partial.fetch, partial.rows)
    if schema.sequence is not None:
        columns[schema.sequence] = partial.latest(sequence_columns)
    payload = {payload_name(column): partial.fetch(column) for column in schema.payload}
    return {**{name: pa.array(numbers) for name, numbers in columns.items()}, **payload}


def _number_rows(
    schema: StateSchema, window: RowWindowColumns, chunks: Sequence[_Chunk], state: State
) -> State:
    """Number the rows of a join's own row window by (sequence number, content), over all chunks."""
    if not chunks:
        return state
    assert schema.sequence is not None
    first = state.next_row_numbers.get(window.name, 0)
    sequences = [chunk.columns[schema.sequence].to_numpy() for chunk in chunks]
    hashes = [
        content_hash(list(chunk.columns.values()), len(sequence))
        for chunk, sequence in zip(chunks, sequences, strict=True)
    ]
    for chunk, numbers in zip(chunks, number_rows(hashes, sequences), strict=True):
        chunk.columns[window.row_number] = pa.array(first + numbers)
    after = first + sum(map(len, sequences))
    return replace(state, next_row_numbers={**state.next_row_numbers, window.name: after})
