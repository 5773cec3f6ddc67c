"""A list source: what each batch brings, where the query crashes, when time passes; a clock for its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import pyarrow as pa

from weir.errors import QueryError, unknown_name
from weir.runtime.batch_events import PHASES
from weir.units import parse_interval

Rows: TypeAlias = Sequence[Mapping[str, Any]]
Step: TypeAlias = Mapping[str, Rows]


@dataclass(frozen=True)
class Crash:
    """The query dies in the batch that follows, when it reaches a phase, and starts again.

    The phases are the steps of a batch: "vacuum", "decide", "build", "sync_batch", "publish", "sync_results",
    "commit" and "spark_commit", and the query dies before the step. By default the results are already in the
    sink but not committed, so that a repeat might give them twice.
    """

    at: str = "sync_results"

    def __post_init__(self) -> None:
        if self.at not in PHASES:
            raise unknown_name("phase", self.at, PHASES, where=" of a batch")


@dataclass(frozen=True)
class Wait:
    """So much time of day passes before the next batch, for `idle=` and `clock="wall"`; no test waits."""

    interval: str | timedelta

    @property
    def microseconds(self) -> int:
        """How long that is."""
        return parse_interval(self.interval)


class ListSource:
    """Batches in the order in which they arrive, each with rows of some streams; crashes and waits between.

    Rows are late if they come in a later batch than their event time allows. Columns that no row has are
    NULL; types follow from the rows, or from the Arrow `schemas` of streams for which they are given.

    >>> source = ListSource({"orders": [{"id": 7}]}, Crash(), {"payments": [{"id": 7}, {"id": 8}]})
    >>> [batch["payments"].num_rows for batch in source.batches], source.crashes
    ([0, 2], {1: ('sync_results',)})
    """

    def __init__(self, *steps: Step | Crash | Wait, schemas: Mapping[str, pa.Schema] | None = None) -> None:
        given: list[Step] = []
        self.crashes: dict[int, tuple[str, ...]] = {}
        self.waits: dict[int, int] = {}  # µs before batches
        for step in steps:
            if isinstance(step, Crash):
                self.crashes[len(given)] = (*self.crashes.get(len(given), ()), step.at)
            elif isinstance(step, Wait):
                self.waits[len(given)] = self.waits.get(len(given), 0) + step.microseconds
            else:
                given.append(step)
        if len(given) in self.crashes:
            raise QueryError("a crash needs a batch after it, in which the query dies")
        self.schemas = {**_infer_schemas(given), **(schemas or {})}
        self.batches = tuple(
            {name: _to_table(name, batch.get(name, ()), schema) for name, schema in self.schemas.items()}
            for batch in given
        )


class ManualClock:
    """Event times for the rows of a test; with a time zone, Spark reads them as TIMESTAMP.

    It moves only when the test says so. What a join gives depends on event times; the time of day counts only
    for `idle=`, `ahead=` and `clock="wall"`, and `Wait` moves that.

    >>> clock = ManualClock("2024-01-02 12:00")
    >>> clock.advance("5 seconds")
    datetime.datetime(2024, 1, 2, 12, 0, 5)
    >>> clock.ago("1 minute")
    datetime.datetime(2024, 1, 2, 11, 59, 5)
    """

    def __init__(self, start: str | datetime = "2024-01-01") -> None:
        self._now = datetime.fromisoformat(start) if isinstance(start, str) else start

    def now(self) -> datetime:
        """The time it shows."""
        return self._now

    def ago(self, interval: str | timedelta) -> datetime:
        """An earlier time, for rows that come late."""
        return self._now - timedelta(microseconds=parse_interval(interval))

    def advance(self, interval: str | timedelta) -> datetime:
        """Move on, and return the new time."""
        self._now += timedelta(microseconds=parse_interval(interval))
        return self._now


def _infer_schemas(batches: Sequence[Step]) -> dict[str, pa.Schema]:
    columns: dict[str, dict[str, list[Any]]] = {}
    for batch in batches:
        for name, rows in batch.items():
            for row in rows:
                for column, value in row.items():
                    columns.setdefault(name, {}).setdefault(column, []).append(value)
    return {
        name: pa.schema({column: pa.array(values).type for column, values in fields.items()})
        for name, fields in columns.items()
    }


def _to_table(stream: str, rows: Rows, schema: pa.Schema) -> pa.Table:
    for row in rows:
        for column in row:
            if column not in schema.names:
                raise unknown_name("column", column, schema.names, where=f" of stream '{stream}'")
    return pa.Table.from_pylist([dict(row) for row in rows], schema)
