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
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weir.expr.evaluate import evaluate
from weir.expr.nodes import Column
from weir.kernel.index import ByKey, ByTime, Index, Spec, to_sortable
from weir.kernel.keys import Bools, Int64s, combine, content_hash
from weir.kernel.state_schema import StateSchema

Value = TypeVar("Value")


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
        return self.cached("bytes", lambda: int(self.data.nbytes))

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
        return self.cached(name, lambda: self.data.column(name).to_numpy())

    def times(self) -> Int64s:
        """Return the lead time of every row."""
        return self.numbers(self.schema.lead)

    def index(self, spec: Spec) -> Index:
        """Return an index over the rows; free for the one the slice is sorted by, others are built once."""
        make = _index_sorted_rows if spec == self.sorted_by else _index_rows
        return self.cached(spec, lambda: make(spec, self))

    def content(self) -> Int64s:
        """Return a hash of each row's content."""
        return self.cached("content", lambda: content_hash(self.data.columns, self.rows))

    def cached(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Return a value derived from the rows; compute it the first time."""
        if key not in self._cache:
            self._cache[key] = compute()
        value: Value = self._cache[key]
        return value

    def fetch(self, column: Column) -> pa.Array:
        """Return the values of a payload column, in the slice's order."""
        return restore(self.data.column(self.schema.sources[column]), column.type)

    def is_visible_to(self, batch: int, rank: int) -> bool:
        """True if rows of that batch and rank may join with this slice."""
        return self.batch < batch or self.rank < rank


def restore(values: Any, kind: pa.DataType) -> Any:
    """Cast stored values back to the query's type: times and keys are stored as int64."""
    return values if values.type == kind else values.cast(kind, safe=False)


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
    order = _index_rows(sort, unsorted, in_time).rows
    assert order is not None
    if len(order) < rows.num_rows:
        order = np.concatenate([order, np.setdiff1d(np.arange(rows.num_rows), order)])
    return order


def _index_rows(spec: Spec, source: Slice, in_time: bool = False) -> Index:
    """Sort rows by an index; with `in_time`, equal keys are in time order, which saves half of the work."""
    values, valid = _index_values(spec, source)
    if isinstance(spec, ByKey):
        times = source.times()
        in_time = in_time or bool((times[1:] >= times[:-1]).all())
        order = _argsort(values) if in_time else np.lexsort((times, values))
        return Index(values[order], order)
    not_null = np.arange(source.rows) if valid is None else np.flatnonzero(valid)
    order = not_null[np.argsort(values[not_null], kind="stable")]
    return Index(values[order], order)


def _index_sorted_rows(spec: Spec, source: Slice) -> Index:
    values, valid = _index_values(spec, source)
    return Index(values if valid is None else values[: int(valid.sum())], None)


def _index_values(spec: Spec, source: Slice) -> tuple[npt.NDArray[Any], Bools | None]:
    """Return the values to sort by, and which rows have one (None: all)."""
    if isinstance(spec, ByKey):
        return combine([source.numbers(name) for name in spec.keys]), None
    if isinstance(spec, ByTime):
        return source.times(), None
    return to_sortable(evaluate(spec.expr, source.fetch, source.rows))


def _argsort(codes: Int64s) -> npt.NDArray[np.intp]:
    """Sort codes stably; NumPy sorts 16-bit numbers by radix, many times faster than wider ones."""
    least = int(codes.min(initial=0))
    if int(codes.max(initial=0)) - least < 1 << 16:
        return np.argsort((codes - least).astype(np.uint16), kind="stable")
    return np.argsort(codes, kind="stable")


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
