"""Read tables, and lists of rows or of tables, as the Arrow tables that a query expects."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from inspect import GEN_CLOSED, getgeneratorstate, isgenerator
from os import PathLike
from typing import Any, TypeVar

import pyarrow as pa

from weir.errors import QueryError
from weir.expr.types import normalise
from weir.local.formats import find_format
from weir.local.rows import read_rows
from weir.query.model import Stream

S = TypeVar("S", pa.Schema, pa.Table)

_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")


def is_schema(given: Any) -> bool:
    """True for the columns of rows to come: a schema of Arrow, or of Polars."""
    return isinstance(given, pa.Schema) or (hasattr(given, "__arrow_c_schema__") and not _has_stream(given))


def is_lazy(given: Any) -> bool:
    """True for a LazyFrame of Polars."""
    return type(given).__name__ == "LazyFrame" and find_format(given) == "polars"


def take_rows(name: str, given: Any) -> Any:
    """What can be read again: a table, list, LazyFrame or schema; an iterator is read to its end, once."""
    if is_schema(given) or is_lazy(given) or isinstance(given, list):
        return given
    if _has_stream(given) or isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        return read_table(name, given)
    if isgenerator(given) and getgeneratorstate(given) == GEN_CLOSED:
        raise QueryError(
            f"stream '{name}' is a generator that was read before, and has no rows left; "
            "make a new one, or a list"
        )
    with _locate_others_errors(name):
        return list(given)


def read_schema(name: str, given: Any) -> pa.Schema:
    """The columns of a table, or of a schema for tables to come, without row numbers that pandas keeps."""
    if is_lazy(given):
        with _locate_others_errors(name):
            given = pa.table(given.clear().collect())
    elif is_schema(given):
        given = _import_schema(name, given)
    schema = given if isinstance(given, pa.Schema) else given.schema
    if b"pandas" in (schema.metadata or {}):
        schema = pa.schema([field for field in schema if not _UNNAMED_INDEX.fullmatch(field.name)])
    return _normalise(name, schema)


def read_table(name: str, given: Any, schema: pa.Schema | None = None) -> pa.Table:
    """A table, or a list of rows or tables, as Arrow, without a copy where the other side allows it.

    Rows that are dicts become columns of the types that the schema says; without one, of those they have.
    """
    if isinstance(given, list):
        return _read_list(name, given, schema)
    if is_lazy(given):
        with _locate_others_errors(name):
            given = given.collect()
    if isinstance(given, pa.RecordBatch):
        return pa.Table.from_batches([given])
    if isinstance(given, pa.Table):
        return given
    if not _has_stream(given):
        raise _not_a_table(name, given)
    try:
        return pa.table(given)
    except (pa.ArrowException, TypeError, ValueError) as error:
        column = _find_unreadable_column(given)
        where = f"stream '{name}'" if column is None else f"stream '{name}', column '{column}'"
        raise QueryError(f"{where}: Arrow cannot hold this {type(given).__name__}: {error}") from error


def conform(stream: Stream, table: pa.Table) -> pa.Table:
    """A table with exactly the columns and types of a stream."""
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


def _has_stream(given: Any) -> bool:
    return isinstance(given, pa.RecordBatch) or hasattr(given, "__arrow_c_stream__")


def _read_list(name: str, given: list[Any], schema: pa.Schema | None) -> pa.Table:
    if not given and schema is not None:
        return schema.empty_table()
    if not given:
        raise QueryError(
            f"stream '{name}' has no rows, so its columns are unknown; "
            "give an Arrow schema, like pa.schema({'ts': pa.timestamp('us'), 'id': pa.int64()})"
        )
    if not (_has_stream(given[0]) or is_lazy(given[0])):
        return read_rows(name, given, schema)
    tables = [read_table(name, table) for table in given]
    try:
        return pa.concat_tables(tables, promote_options="default")
    except pa.ArrowException as error:
        raise QueryError(f"stream '{name}': its tables have different columns: {error}") from error


def _import_schema(name: str, given: Any) -> pa.Schema:
    try:
        return pa.schema(given)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise QueryError(f"stream '{name}': this {type(given).__name__} is no schema: {error}") from error


def _not_a_table(name: str, given: Any) -> QueryError:
    hint = ""
    if isinstance(given, Mapping):
        hint = "; a dict of columns becomes a table by pa.table(...), and one row a list by [...]"
    if isinstance(given, str | PathLike):
        hint = "; read a file first, like pyarrow.parquet.read_table(path)"
    return QueryError(
        f"stream '{name}' must be an Arrow, Polars or pandas table, a list of dicts, an iterator of either, "
        f"or an Arrow schema; got {type(given).__name__}{hint}"
    )


@contextmanager
def _locate_others_errors(name: str) -> Iterator[None]:
    """Add the stream to an error of a generator or of Polars, which stays the error that its author knows."""
    try:
        yield
    except Exception as error:
        error.add_note(f"raised while weir read stream '{name}'")
        raise


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
