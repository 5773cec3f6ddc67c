"""Split tables by bytes: Arrow cannot put more than 2 GiB of texts into one array."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

# The most bytes of a batch's rows that are put together: few enough that no column nears 2 GiB, enough that
# usual batches are one piece, since slices of several pieces may overlap in time.
BYTES = 1 << 28


def split_table(table: pa.Table) -> list[pa.Table]:
    """Split a table into pieces of at most `BYTES`, or of a single row, in order and without a copy."""
    if table.nbytes <= BYTES:
        return [table]
    return [pa.Table.from_batches(run, table.schema) for run in group_by_bytes(table.to_batches())]


def group_by_bytes(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Group neighbours that have at most `BYTES` together; larger batches are divided, without a copy."""
    run: list[pa.RecordBatch] = []
    size = 0
    for part in (part for batch in batches for part in _divide(batch)):
        if run and size + part.nbytes > BYTES:
            yield run
            run, size = [], 0
        run.append(part)
        size += part.nbytes
    if run:
        yield run


def _divide(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Halve a batch until each part has at most `BYTES`: rows may be of unequal width."""
    if batch.nbytes <= BYTES or batch.num_rows < 2:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _divide(batch.slice(0, half))
    yield from _divide(batch.slice(half))
