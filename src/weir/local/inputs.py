"""The inputs of a join: each is read once, when the join is built; a LazyFrame when the join is evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from weir.errors import QueryError
from weir.local.formats import Format, find_format
from weir.local.tables import is_schema, read_schema, read_table, take_rows


@dataclass(frozen=True, eq=False)
class Input:
    """A table of this process, a LazyFrame, or a schema of rows to come, and the format it came in."""

    name: str
    given: Any
    format: Format

    @cached_property
    def schema(self) -> pa.Schema:
        """Its columns."""
        return read_schema(self.name, self.given)

    @property
    def has_rows(self) -> bool:
        """False for a schema of rows to come."""
        return not is_schema(self.given)

    @cached_property
    def table(self) -> pa.Table:
        """Its rows; a LazyFrame is collected once."""
        if not self.has_rows:
            raise QueryError(
                f"stream '{self.name}' was given as a schema, so there are no rows to join; "
                "give a table, or use start() and process(...) to bring rows in batches"
            )
        return read_table(self.name, self.given)


def read_inputs(given: Mapping[str, Any], schemas: Mapping[str, pa.Schema] | None = None) -> dict[str, Input]:
    """Every input, each read once, since an iterator cannot be read twice.

    Rows that are dicts become columns of the types that the schemas say; without schemas, of those they have.
    """
    known: dict[int, Input] = {}
    inputs = {}
    for name, table in given.items():
        if id(table) not in known:
            taken = take_rows(name, table)
            known[id(table)] = Input(name, taken, find_format(taken if isinstance(taken, list) else table))
        inputs[name] = _read_rows(name, known[id(table)], None if schemas is None else schemas[name])
    return inputs


def _read_rows(name: str, given: Input, schema: pa.Schema | None) -> Input:
    """The input with its rows, if it has any, as a table; what is lazy stays so."""
    if not isinstance(given.given, list):
        return given
    return Input(name, read_table(name, given.given, schema), given.format)
