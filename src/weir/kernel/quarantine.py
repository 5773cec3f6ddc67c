"""Quarantine: rows that are left out of the results because an expression fails for them, or for their time.

A record shows the expression, the error, and of each stream that took part the event time and the columns
that the expression reads. A condition is evaluated as soon as its streams are joined, so rows of other
streams are not among them; a filter, or a side of a comparison, fails for a row of one stream alone. Rows
that are late, ahead or without an event time are kept whole; they are counted as such elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa

from weir.expr.failures import Bools, FailedRows, Picks, to_python
from weir.expr.nodes import Column, columns_of, is_flag, is_internal
from weir.expr.to_sql import to_sql
from weir.kernel.keys import Int64s, as_int64
from weir.kernel.partial import Partial
from weir.kernel.state_schema import time_name
from weir.query.model import Stream

# What a partition keeps of a batch: a condition that fails for every pair must not fill a disk.
MAX_ROWS = 1000
# What is kept of a value or an error: rows may hold images or documents.
MAX_CHARACTERS = 1000
_ROW = pa.struct({"event_time": pa.timestamp("us", "UTC"), "columns": pa.map_(pa.string(), pa.string())})
QUARANTINE_SCHEMA = pa.schema({
    "batch": pa.int64(),
    "expression": pa.string(),
    "error": pa.string(),
    "rows": pa.map_(pa.string(), _ROW),
})  # fmt: skip


class DroppedFor(StrEnum):
    """Why a row was dropped for its event time, as records say it."""

    LATE = "late: its event time is before the watermark"
    AHEAD = "ahead: its event time is too far beyond the time of day and all other streams"
    NO_TIME = "without an event time: it is NULL"


@dataclass(slots=True)
class Quarantine:
    """Collects what a partition leaves out in a batch: the first `MAX_ROWS` that fail, and as many dropped.

    `count` is of all that fail, kept or not.
    """

    batch: int
    count: int = 0
    _records: list[dict[str, Any]] = field(default_factory=list)
    _dropped: list[dict[str, Any]] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """True if nothing is kept."""
        return not self._records and not self._dropped

    def add_dropped(self, stream: Stream, rows: pa.Table, why: Mapping[DroppedFor, Bools]) -> None:
        """Keep rows of a stream that are dropped for their event times."""
        names = [name for name in rows.column_names if not is_internal(name)]
        time_column = Column(stream.name, stream.time, rows.schema.field(stream.time).type)
        for reason, mask in why.items():
            picked = rows.take(pa.array(np.flatnonzero(mask)[: MAX_ROWS - len(self._dropped)]))
            times = as_int64(picked[stream.time].combine_chunks())
            columns = {name: [_show(to_python(value)) for value in picked[name]] for name in names}
            for row in range(picked.num_rows):
                time = None if reason == DroppedFor.NO_TIME else int(times[row])
                shown = [(name, values[row]) for name, values in columns.items()]
                self._dropped.append({
                    "batch": self.batch,
                    "expression": to_sql(time_column),
                    "error": reason.value,
                    "rows": [(stream.name, {"event_time": time, "columns": shown})],
                })  # fmt: skip

    def add_partial(self, partial: Partial, failed: FailedRows) -> None:
        """Leave out combinations of rows."""
        streams = sorted(frozenset[str]().union(*(group.schema.streams for group in partial.groups)))
        # Joins with windows of their own do not store all times.
        stored = {name: partial.stores(time_name(name)) for name in streams}
        self.add(
            {name: partial.numbers(time_name(name)) if stored[name] else None for name in streams}, failed
        )

    def add(self, times: Mapping[str, Int64s | None], failed: FailedRows) -> None:
        """Leave out rows of some streams, whose event times are given as far as they are known."""
        rows = np.flatnonzero(failed.mask)
        self.count += len(rows)
        rows = rows[: MAX_ROWS - len(self._records)]
        if not len(rows):
            return
        columns = [column for column in columns_of(failed.expr) if not is_flag(column.name)]
        values = [_show_values(column, failed, rows) for column in columns]
        for at, (row, (call, reason)) in enumerate(zip(rows.tolist(), failed.explain(rows), strict=True)):
            shown: dict[str, list[tuple[str, str | None]]] = {name: [] for name in times}
            for column, value in zip(columns, values, strict=True):
                name = column.text if is_internal(column.name) else column.name
                shown[column.stream].append((name, value[at]))
            self._records.append({
                "batch": self.batch,
                "expression": to_sql(failed.expr),
                "error": _shorten(f"{to_sql(call)} fails: {reason}"),
                "rows": [
                    (name, {"event_time": None if time is None else int(time[row]), "columns": shown[name]})
                    for name, time in times.items()
                ],
            })  # fmt: skip

    def to_table(self) -> pa.Table:
        """Return what is kept."""
        return pa.Table.from_pylist(self._records + self._dropped, QUARANTINE_SCHEMA)


@dataclass(slots=True)
class Rejection:
    """Rows of a partial that go no further; `kept` are the others, None means all."""

    partial: Partial
    quarantine: Quarantine | None
    kept: Bools | None = None

    def __call__(self, failed: FailedRows) -> None:
        """Leave out the rows that fail."""
        if self.quarantine is not None:
            self.quarantine.add_partial(self.partial, failed)
        self.kept = ~failed.mask if self.kept is None else self.kept & ~failed.mask


def _show_values(column: Column, failed: FailedRows, rows: Picks) -> list[str | None]:
    return [_show(to_python(value)) for value in failed.fetch(column).take(pa.array(rows))]


def _show(value: Any) -> str | None:
    if value is None:
        return None
    is_json = isinstance(value, bool | int | float | list | dict)
    return _shorten(json.dumps(value, default=str, ensure_ascii=False) if is_json else str(value))


def _shorten(text: str) -> str:
    if len(text) <= MAX_CHARACTERS:
        return text
    return f"{text[:MAX_CHARACTERS]}... ({len(text)} characters)"
