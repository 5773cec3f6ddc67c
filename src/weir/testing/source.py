"""A list source: what each batch brings to each stream, and where the query crashes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from weir.errors import QueryError, unknown_name
from weir.runtime.batch_events import PHASES

Rows: TypeAlias = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Crash:
    """The query dies in the batch that follows, when it reaches a phase, and starts again.

    The phases are "decide", "build", "built", "emit", "emitted" and "committed". By default the results are
    already in the sink but not committed, so that a repeat might give them twice.
    """

    at: str = "emitted"

    def __post_init__(self) -> None:
        if self.at not in PHASES:
            raise unknown_name("phase", self.at, PHASES, where=" of a batch")


class ListSource:
    """Batches in the order in which they arrive, each with the rows of some streams, and crashes between.

    Rows are late if they come in a later batch than their event time allows. Columns that no row has are
    NULL; types follow from the rows, or from the Arrow `schemas` of streams for which they are given.

    >>> source = ListSource({"orders": [{"id": 7}]}, Crash(), {"payments": [{"id": 7}, {"id": 8}]})
    >>> [batch["payments"].num_rows for batch in source.batches], source.crashes
    ([0, 2], {1: ('emitted',)})
    """

    def __init__(
        self, *steps: Mapping[str, Rows] | Crash, schemas: Mapping[str, pa.Schema] | None = None
    ) -> None:
        given: list[Mapping[str, Rows]] = []
        self.crashes: dict[int, tuple[str, ...]] = {}
        for step in steps:
            if isinstance(step, Crash):
                self.crashes[len(given)] = (*self.crashes.get(len(given), ()), step.at)
            else:
                given.append(step)
        if len(given) in self.crashes:
            raise QueryError("a crash needs a batch after it, in which the query dies")
        self.schemas = {**_infer_schemas(given), **(schemas or {})}
        self.batches = tuple(
            {name: _to_table(name, batch.get(name, ()), schema) for name, schema in self.schemas.items()}
            for batch in given
        )


def _infer_schemas(batches: Sequence[Mapping[str, Rows]]) -> dict[str, pa.Schema]:
    columns: dict[str, dict[str, list[Any]]] = {}
    for batch in batches:
        for name, rows in batch.items():
            for row in rows:
                for column, value in row.items():
                    columns.setdefault(name, {}).setdefault(column, []).append(value)
    return {
        name: pa.schema({column: pa.array(values).type for column, values in of_stream.items()})
        for name, of_stream in columns.items()
    }


def _to_table(stream: str, rows: Rows, schema: pa.Schema) -> pa.Table:
    for row in rows:
        for column in row:
            if column not in schema.names:
                raise unknown_name("column", column, schema.names, where=f" of stream '{stream}'")
    return pa.Table.from_pylist([dict(row) for row in rows], schema)
