"""Quarantine: rows that are left out of the results because an expression fails for them.

A record shows the expression, the error, and of each stream that took part the event time and the columns
that the expression reads. A condition is evaluated as soon as its streams are joined, so rows of other
streams are not among them; a filter, or a side of a comparison, fails for a row of one stream alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from weir.expr.failures import Bools, FailedRows, Picks, to_python
from weir.expr.nodes import Column, columns_of, is_flag, is_internal
from weir.expr.to_sql import to_sql
from weir.kernel.keys import Int64s
from weir.kernel.partial import Partial
from weir.kernel.state_schema import time_name

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


@dataclass(slots=True)
class Quarantine:
    """Collects what a partition leaves out in a batch: all is counted, the first `MAX_ROWS` are kept."""

    batch: int
    count: int = 0
    _records: list[dict[str, Any]] = field(default_factory=list)

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
        return pa.Table.from_pylist(self._records, QUARANTINE_SCHEMA)


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
