"""Intermediate states: store the outputs of a join below the root as slices of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from weir.kernel.ingest import encode_keys
from weir.kernel.keys import Int64s, content_hash
from weir.kernel.partial import Partial
from weir.kernel.physical_plan import NodePlan, PhysicalPlan
from weir.kernel.row_window import number_rows, sequence_columns
from weir.kernel.slice import cut
from weir.kernel.state import State
from weir.kernel.state_schema import StateSchema

Columns = dict[str, pa.Array]


def store(
    physical: PhysicalPlan,
    node: NodePlan,
    partials: Iterable[tuple[int | None, Partial]],
    state: State,
    batch: int,
    slice_bytes: int | None,
) -> State:
    """Store the outputs of a join in slices of at most about so many bytes.

    Each output comes with its rank, or with None if each of its rows has that of the row that drives it.
    """
    assert node.output is not None
    chunks: dict[int | None, list[Columns]] = defaultdict(list)
    ranks: list[Int64s] = []
    for rank, partial in partials:
        chunks[rank].append(_stored_columns(node.output, partial))
        if rank is None:
            ranks.append(partial.ranks_of(slice(None)))
    outputs = {
        rank: {name: pa.concat_arrays([part[name] for part in parts]) for name in parts[0]}
        for rank, parts in sorted(chunks.items(), key=lambda chunk: -1 if chunk[0] is None else chunk[0])
    }
    state = _number_rows(node.output, outputs, state)
    slices = []
    for rank, columns in outputs.items():
        rows = node.output.record_batch(columns)
        row_ranks = np.concatenate(ranks) if rank is None else rank
        slices += cut(node.output, physical.sorts[node.node], batch, row_ranks, rows, slice_bytes)
    return state.add({node.node: slices})


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
    payload = {str(column): partial.fetch(column) for column in schema.payload}
    return {**{name: pa.array(numbers) for name, numbers in columns.items()}, **payload}


def _number_rows(schema: StateSchema, outputs: dict[int | None, Columns], state: State) -> State:
    """Number the rows of a join's own row window by (sequence number, content), over all ranks."""
    own = [window for window in schema.row_windows if window.name == schema.node]
    if not own or not outputs or schema.sequence is None:
        return state
    (window,) = own
    first = state.next_row_numbers.get(window.name, 0)
    sequences = [columns[schema.sequence].to_numpy() for columns in outputs.values()]
    hashes = [
        content_hash(list(columns.values()), len(sequence))
        for columns, sequence in zip(outputs.values(), sequences, strict=True)
    ]
    for columns, numbers in zip(outputs.values(), number_rows(hashes, sequences), strict=True):
        columns[window.row_number] = pa.array(first + numbers)
    after = first + sum(map(len, sequences))
    return replace(state, next_row_numbers={**state.next_row_numbers, window.name: after})
