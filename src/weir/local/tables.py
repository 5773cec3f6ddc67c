"""Read Arrow, Polars and pandas tables as the Arrow tables that a query expects."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, TypeVar

import pyarrow as pa

from weir.errors import QueryError
from weir.expr.types import normalise
from weir.query.model import Stream

S = TypeVar("S", pa.Schema, pa.Table)

_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")


def read_all(given: Mapping[str, Any]) -> dict[str, pa.Table | pa.Schema]:
    """Every input as Arrow, each read once, since a stream of batches cannot be read twice."""
    read: dict[int, pa.Table | pa.Schema] = {}
    for name, table in given.items():
        if id(table) not in read:
            read[id(table)] = table if isinstance(table, pa.Schema) else read_table(name, table)
    return {name: read[id(table)] for name, table in given.items()}


def read_schema(name: str, given: pa.Table | pa.Schema) -> pa.Schema:
    """The columns of a table, or of a schema for tables to come, without row numbers that pandas keeps."""
    schema = given if isinstance(given, pa.Schema) else given.schema
    if b"pandas" in (schema.metadata or {}):
        schema = pa.schema([field for field in schema if not _UNNAMED_INDEX.fullmatch(field.name)])
    return _normalise(name, schema)


def read_table(name: str, given: Any) -> pa.Table:
    """An Arrow, Polars or pandas table as Arrow, without a copy where the other side allows it."""
    if isinstance(given, pa.RecordBatch):
        return pa.Table.from_batches([given])
    if isinstance(given, pa.Table):
        return given
    if not hasattr(given, "__arrow_c_stream__"):
        raise QueryError(
            f"stream '{name}' must be an Arrow, Polars or pandas table, or an Arrow schema; "
            f"got {type(given).__name__}"
        )
    try:
        return pa.table(given)
    except (pa.ArrowException, TypeError, ValueError) as error:
        column = _find_unreadable_column(given)
        where = f"stream '{name}'" if column is None else f"stream '{name}', column '{column}'"
        raise QueryError(f"{where}: Arrow cannot hold this {type(given).__name__}: {error}") from error


def conform(stream: Stream, given: Any) -> pa.Table:
    """A table with exactly the columns and types of a stream."""
    table = read_table(stream.name, given)
    columns = Counter(table.column_names)
    for name in stream.schema.names:
        if columns[name] > 1:
            raise QueryError(f"a batch of stream '{stream.name}' has column '{name}' {columns[name]} times")
        if not columns[name]:
            known = ", ".join(f"'{column}'" for column in columns)
            raise QueryError(f"a batch of stream '{stream.name}' lacks column '{name}'; it has {known}")
    table = _normalise(stream.name, table.select(stream.schema.names))
    for wanted, got in zip(stream.schema, table.schema, strict=True):
        if wanted.type != got.type:
            raise QueryError(
                f"column '{wanted.name}' of stream '{stream.name}' is {wanted.type} in the query; "
                f"this batch has {got.type}"
            )
    return table


def _normalise(name: str, given: S) -> S:
    try:
        return normalise(given)
    except QueryError as error:
        raise QueryError(f"stream '{name}', {error}") from error.__cause__


def _find_unreadable_column(given: Any) -> str | None:
    """The first column that Arrow cannot read alone, since its message may not name it."""
    for column in getattr(given, "columns", ()):
        try:
            pa.table(given[[column]])
        except (pa.ArrowException, TypeError, ValueError):
            return str(column)
    return None
