"""How the rows of all streams travel as one table: columns of equal type share slots.

Workers import this module, so it needs Arrow and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

# The columns of the union beside the slots.
STREAM, PARTITION, COPY, TIME = "weir_stream", "weir_partition", "weir_copy", "weir_time"

# Those rows of each stream that are in other partitions too, and counted there.
Copies = Mapping[str, pa.Table]


@dataclass(frozen=True)
class Slots:
    """Which slot of the union holds each column of each stream."""

    streams: tuple[str, ...]
    places: Mapping[str, Mapping[str, str]]
    schemas: Mapping[str, pa.Schema]

    def tables(self, batches: Iterator[pa.RecordBatch]) -> dict[int, tuple[dict[str, pa.Table], Copies]]:
        """The rows of a task per partition and stream, and those of them that are copies."""
        rows = pa.Table.from_batches(found) if (found := [b for b in batches if b.num_rows]) else None
        if rows is None:
            return {}
        rows = rows.combine_chunks()
        return {
            partition: self._of_partition(rows, pc.equal(rows[PARTITION], partition))
            for partition in sorted(pc.unique(rows[PARTITION]).to_pylist())
        }

    def _of_partition(self, rows: pa.Table, mine: pa.ChunkedArray) -> tuple[dict[str, pa.Table], Copies]:
        rows = _only(rows, mine)
        found = {
            name: rows.filter(pc.equal(rows[STREAM], i))
            for i, name in enumerate(self.streams)
            if pc.any(pc.equal(rows[STREAM], i)).as_py()
        }
        tables = {name: self._restored(name, table) for name, table in found.items()}
        copies = {name: _only(tables[name], pc.greater(table[COPY], 0)) for name, table in found.items()}
        return tables, {name: table for name, table in copies.items() if table.num_rows}

    def _restored(self, name: str, rows: pa.Table) -> pa.Table:
        """A stream's rows under the names and in the types of their own columns."""
        places = self.places[name]
        return rows.select(list(places.values())).rename_columns(list(places)).cast(self.schemas[name])


def _only(rows: pa.Table, which: pa.ChunkedArray) -> pa.Table:
    """Some of the rows; nothing is copied if it is all of them."""
    return rows if pc.all(which).as_py() else rows.filter(which)
