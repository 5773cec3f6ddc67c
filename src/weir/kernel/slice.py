"""Slices: immutable runs of one state's rows that are neighbours in time.

    state of a      ┌─ slice ─┐┌─ slice ─┐┌─ slice ─┐┌ slice of this batch ┐
    event time   ───┴─────────┴┴─────────┴┴─────────┴┴─────────────────────┴──▶
                          ▲    │latest                 deadline
                          │    └───── retention ──────────▶│
                      watermark: the slice expires when it reaches the deadline

Each slice lies inside one basic window and is sorted by the index that most probes want. `latest` is the
newest event time of its rows; `deadline` is the first watermark at which none of them can join any more.
A slice is the unit of storage, expiry, distribution and shedding.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weir.expr.nodes import Column
from weir.kernel.index import Index, Spec, index_rows, index_sorted_rows
from weir.kernel.keys import Int64s, content_hash
from weir.kernel.state_schema import StateSchema


@dataclass(frozen=True, eq=False)
class Slice:
    """A run of rows of one state.

    `window` is the number of its basic window, `spans` holds the least and the greatest value of each stored
    number. Batch and rank say which rows may see it.
    """

    schema: StateSchema
    batch: int
    rank: int
    window: int
    data: pa.RecordBatch
    sorted_by: Spec | None
    spans: dict[str, tuple[int, int]]
    deadline: int | None
    _cache: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.data.num_rows)

    @property
    def bytes(self) -> int:
        """The bytes of all columns."""
        size: int = self.cached("bytes", lambda: int(self.data.nbytes))
        return size

    @property
    def row_bytes(self) -> float:
        """The average bytes of a row."""
        return self.bytes / max(self.rows, 1)

    @property
    def span(self) -> tuple[int, int]:
        """The least and the greatest lead time."""
        return self.spans[self.schema.lead]

    def numbers(self, name: str) -> Int64s:
        """Return a stored int64 column, without a copy."""
        numbers: Int64s = self.cached(name, lambda: self.data.column(name).to_numpy())
        return numbers

    def times(self) -> Int64s:
        """Return the lead time of every row."""
        return self.numbers(self.schema.lead)

    def index(self, spec: Spec) -> Index:
        """Return an index over the rows; free for the one the slice is sorted by, others are built once."""
        make = index_sorted_rows if spec == self.sorted_by else index_rows
        index: Index = self.cached(spec, lambda: make(spec, self))
        return index

    def content(self) -> Int64s:
        """Return a hash of each row's content."""
        hashes: Int64s = self.cached("content", lambda: content_hash(self.data.columns, self.rows))
        return hashes

    def cached(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """Return a value derived from the rows; compute it the first time."""
        if key not in self._cache:
            self._cache[key] = compute()
        return self._cache[key]

    def fetch(self, column: Column) -> pa.Array:
        """Return the values of a payload column, in the slice's order."""
        return restore(self.data.column(self.schema.sources[column]), column.type)

    def is_visible_to(self, batch: int, rank: int) -> bool:
        """True if rows of that batch and rank may join with this slice."""
        return self.batch < batch or self.rank < rank


def restore(values: Any, kind: pa.DataType) -> Any:
    """Cast stored values back to the query's type: times and keys are stored as int64."""
    if values.type == kind:
        return values
    return values.cast(kind, safe=False)


def cut(schema: StateSchema, sort: Spec, batch: int, rank: int, rows: pa.RecordBatch) -> list[Slice]:
    """Sort rows and cut them into slices at the ends of basic windows."""
    if not rows.num_rows:
        return []
    windows = rows.column(schema.cut_by).to_numpy() // schema.cut_every
    order = _sort_rows(schema, sort, rows)
    if windows.min() < windows.max():
        order = order[np.argsort(windows[order], kind="stable")]
    rows = _take(rows, order)
    windows = windows[order]
    edges = np.concatenate(([0], np.flatnonzero(np.diff(windows)) + 1, [len(windows)]))
    return [
        _make_slice(schema, sort, batch, rank, int(windows[start]), rows.slice(start, end - start))
        for start, end in pairwise(edges.tolist())
    ]


def merge(slices: Sequence[Slice], sort: Spec) -> Slice:
    """Merge slices of one basic window into one that every later batch sees."""
    schema, window = slices[0].schema, slices[0].window
    slices = sorted(slices, key=lambda s: s.span)
    rows = pa.concat_batches([s.data for s in slices])
    order = _sort_rows(schema, sort, rows, _are_consecutive(slices, sort))
    newest_batch = max(s.batch for s in slices)
    return _make_slice(schema, sort, newest_batch, 0, window, _take(rows, order))


def _are_consecutive(slices: Sequence[Slice], sort: Spec) -> bool:
    """True if rows with equal keys are in time order once the slices are concatenated."""
    follow = all(last <= first for (_, last), (first, _) in pairwise(s.span for s in slices))
    return follow and all(s.sorted_by == sort for s in slices)


def _sort_rows(
    schema: StateSchema, sort: Spec, rows: pa.RecordBatch, in_time: bool = False
) -> npt.NDArray[np.intp]:
    """Sort rows by (index, time); rows that the index leaves out come last."""
    unsorted = Slice(schema, 0, 0, 0, rows, None, {}, None)
    order = index_rows(sort, unsorted, in_time).rows
    assert order is not None
    if len(order) < rows.num_rows:
        order = np.concatenate([order, np.setdiff1d(np.arange(rows.num_rows), order)])
    return order


def _make_slice(
    schema: StateSchema, sort: Spec, batch: int, rank: int, window: int, rows: pa.RecordBatch
) -> Slice:
    numbers = {n: rows.column(n).to_numpy() for n in schema.numbers if n not in schema.keys}
    spans = {name: (int(values.min()), int(values.max())) for name, values in numbers.items()}
    return Slice(schema, batch, rank, window, rows, sort, spans, _deadline(schema, numbers, spans))


def _deadline(
    schema: StateSchema, numbers: dict[str, Int64s], spans: dict[str, tuple[int, int]]
) -> int | None:
    """Return the first watermark at which no row of the slice can join any more; None if time sets no end."""
    if schema.deadlines is None:
        return None
    ends = []
    for limits in schema.deadlines:
        if len(limits) == 1:
            ((time, retention),) = limits
            ends.append(spans[time][1] + retention)
        else:  # a row stays joinable only while each of its times is near enough
            ends.append(int(np.min([numbers[time] + retention for time, retention in limits], axis=0).max()))
    return max(ends) + 1


def _take(rows: pa.RecordBatch, order: npt.NDArray[np.intp]) -> pa.RecordBatch:
    if np.array_equal(order, np.arange(len(order))):
        return rows
    indices = pa.array(order)
    columns = [pc.take(column, indices, boundscheck=False) for column in rows.columns]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)
