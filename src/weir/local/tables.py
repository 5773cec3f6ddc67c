"""Tables from outside as the Arrow tables a query expects."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from weir.errors import QueryError
from weir.expr import normalise
from weir.query import Stream


def is_table(given: Any) -> bool:
    """True for Arrow, Polars and pandas tables: whatever hands out an Arrow stream."""
    return isinstance(given, pa.Table | pa.RecordBatch) or hasattr(given, "__arrow_c_stream__")


def read_schema(name: str, given: Any) -> pa.Schema:
    """The columns of a table, or of an Arrow schema that stands for tables to come."""
    if isinstance(given, pa.Schema):
        return normalise(given)
    return normalise(read_table(name, given).schema)


def read_table(name: str, given: Any) -> pa.Table:
    """A table as Arrow, without a copy where the other side allows it."""
    if isinstance(given, pa.RecordBatch):
        return pa.Table.from_batches([given])
    if isinstance(given, pa.Table):
        return given
    if not is_table(given):
        raise QueryError(
            f"stream '{name}' must be an Arrow, Polars or pandas table, or an Arrow schema; "
            f"got {type(given).__name__}"
        )
    return pa.table(given)


def conform(stream: Stream, given: Any) -> pa.Table:
    """A table with exactly the columns and types of a stream."""
    table = read_table(stream.name, given)
    missing = [name for name in stream.schema.names if name not in table.column_names]
    if missing:
        raise QueryError(
            f"a batch of stream '{stream.name}' lacks column '{missing[0]}'; it has "
            + ", ".join(f"'{name}'" for name in table.column_names)
        )
    table = normalise(table.select(stream.schema.names))
    for wanted, got in zip(stream.schema, table.schema, strict=True):
        if wanted.type != got.type:
            raise QueryError(
                f"column '{wanted.name}' of stream '{stream.name}' is {wanted.type} in the query; "
                f"this batch has {got.type}"
            )
    return table
