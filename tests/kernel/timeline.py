"""Test tables: rows in the order of arrival, each with the results that it completes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pyarrow as pa

import weir
from weir.local.query import LocalQuery

SCHEMA = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64(), "name": pa.string()})


@dataclass(frozen=True)
class Row:
    """One row, in a batch of its own; a result is written as its rows' names, like "a7 b10"."""

    stream: str
    t: int | None
    k: int | None = 0
    expect: Sequence[str] = ()

    @property
    def name(self) -> str:
        return f"{self.stream}{self.t}"

    @property
    def rows(self) -> tuple[Row, ...]:
        return (self,)


@dataclass(frozen=True)
class Batch:
    """Several rows at once, and the results that they complete."""

    rows: Sequence[Row]
    expect: Sequence[str] = ()


def started(streams: str, **asked: Any) -> LocalQuery:
    """Start a join of the streams named by the letters, on equal keys by default.

    A bare number is a length in microseconds.
    """
    on = " AND ".join(f"{a}.k = {b}.k" for a, b in pairwise(streams))
    names = " || ' ' || ".join(f"{name}.name" for name in streams)
    defaults = {"on": on, "select": f"{names} AS result"}
    lengths = {name: microseconds(asked[name]) for name in ("within", "late") if name in asked}
    return weir.join(**{**defaults, **asked, **lengths}, streams=dict.fromkeys(streams, SCHEMA)).start()


def microseconds(given: Any) -> Any:
    """Convert a number, or a mapping of numbers, to lengths of time; leave other values as they are."""
    if isinstance(given, dict):
        return {name: microseconds(length) for name, length in given.items()}
    return timedelta(microseconds=given) if isinstance(given, int) else given


def table(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist([{"ts": row.t, "k": row.k, "name": row.name} for row in rows], SCHEMA)


def process(query: LocalQuery, step: Row | Batch) -> list[str]:
    """Process one step and return its results, sorted."""
    streams = {row.stream for row in step.rows}
    tables = {name: table([row for row in step.rows if row.stream == name]) for name in streams}
    return sorted(query.process(tables).column("result").to_pylist())


def play(query: LocalQuery, *steps: Row | Batch) -> None:
    """Process steps; each must complete exactly its expected results."""
    for step in steps:
        assert process(query, step) == sorted(step.expect), step


def late(query: LocalQuery) -> dict[str, int]:
    """Return the rows that the last batch dropped as late, for streams with any."""
    assert query.last_report is not None
    return {name: count for name, count in query.last_report.counts.late.items() if count}


def rows_kept(query: LocalQuery) -> dict[str, int]:
    """Return the number of rows in each state."""
    return {name: size.rows for name, size in query.state.sizes().items()}
