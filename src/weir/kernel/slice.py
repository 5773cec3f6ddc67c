"""Slices: immutable runs of one state's rows over a short time, sorted by the index that probes want.

    a's state     |  slice  |  slice  |  slice  | slice of this batch
    event time  ──┴─────────┴─────────┴─────────┴──────────▶
                  └──────── one probe's range ────────┘

Each slice lies inside one basic window. It is the unit of storage, of expiry, of distribution and of
shedding.
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
    """One run of rows of one state; a row sees it if it is of an earlier batch or of a lower rank."""

    layout: StateSchema
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
        """How many rows it holds."""
        return int(self.data.num_rows)

    @property
    def bytes(self) -> int:
        """How many bytes its columns take."""
        found: int = self.remember("bytes", lambda: int(self.data.nbytes))
        return found

    def numbers(self, name: str) -> Int64s:
        """A stored int64 column, without a copy."""
        found: Int64s = self.remember(name, lambda: self.data.column(name).to_numpy())
        return found

    def index(self, spec: Spec) -> Index:
        """The rows in the order of an index; free for the one the slice is sorted by, else made once."""
        make = index_sorted_rows if spec == self.sorted_by else index_rows
        found: Index = self.remember(
            spec, lambda: make(spec, self.fetch, self.numbers, self.rows, self.layout.lead)
        )
        return found

    def content(self) -> Int64s:
        """A hash of all that each row holds."""
        found: Int64s = self.remember("content", lambda: content_hash(self.data.columns, self.rows))
        return found

    def remember(self, what: Hashable, make: Callable[[], Any]) -> Any:
        """What was derived from the rows before, or `make` it now and keep it."""
        if what not in self._cache:
            self._cache[what] = make()
        return self._cache[what]

    def fetch(self, column: Column) -> pa.Array:
        """The values of a payload column, in the slice's order."""
        return restore(self.data.column(self.layout.sources[column]), column.type)

    def is_seen_by(self, batch: int, rank: int) -> bool:
        """True if rows of that batch and rank may join with this slice."""
        return self.batch < batch or self.rank < rank


def restore(values: Any, kind: pa.DataType) -> Any:
    """Stored values in the type the query knows: times and keys are kept as int64."""
    if values.type == kind:
        return values
    return values.cast(kind, safe=False)


def cut(layout: StateSchema, sort: Spec, batch: int, rank: int, rows: pa.RecordBatch) -> list[Slice]:
    """Rows sorted and cut at the basic windows' ends."""
    if not rows.num_rows:
        return []
    windows = rows.column(layout.cut_by).to_numpy() // layout.cut_every
    order = _order(layout, sort, rows, windows)
    rows = _take(rows, order)
    windows = windows[order]
    edges = np.concatenate(([0], np.flatnonzero(np.diff(windows)) + 1, [len(windows)]))
    return [
        _slice(layout, sort, batch, rank, int(windows[start]), rows.slice(start, end - start))
        for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    ]


def merge(slices: Sequence[Slice], sort: Spec) -> Slice:
    """Several slices of one basic window as one, seen by every later batch."""
    first = slices[0]
    slices = sorted(slices, key=lambda s: s.spans[first.layout.lead])
    rows = pa.concat_batches([s.data for s in slices])
    order = _order(first.layout, sort, rows, np.zeros(rows.num_rows, np.int64), _is_in_time(slices, sort))
    newest = max(s.batch for s in slices)
    return _slice(first.layout, sort, newest, 0, first.window, _take(rows, order))


def _is_in_time(slices: Sequence[Slice], sort: Spec) -> bool:
    """True if one slice after the other, rows of one key stand in the order of time."""
    spans = [s.spans[s.layout.lead] for s in slices]
    apart = all(last <= first for (_, last), (first, _) in pairwise(spans))
    return apart and all(s.sorted_by == sort for s in slices)


def _order(
    layout: StateSchema, sort: Spec, rows: pa.RecordBatch, windows: Int64s, in_time: bool = False
) -> npt.NDArray[np.intp]:
    """The rows' order by (basic window, index, time); rows an index leaves out come last in their window."""

    def fetch(column: Column) -> pa.Array:
        return restore(rows.column(layout.sources[column]), column.type)

    def numbers(name: str) -> Int64s:
        found: Int64s = rows.column(name).to_numpy()
        return found

    index = index_rows(sort, fetch, numbers, rows.num_rows, layout.lead, in_time)
    order = np.arange(rows.num_rows) if index.rows is None else index.rows
    if len(order) < rows.num_rows:
        order = np.concatenate([order, np.setdiff1d(np.arange(rows.num_rows), order)])
    if windows.min() == windows.max():
        return order
    return order[np.argsort(windows[order], kind="stable")]


def _slice(
    layout: StateSchema, sort: Spec, batch: int, rank: int, window: int, rows: pa.RecordBatch
) -> Slice:
    spans = {name: _span(rows.column(name).to_numpy()) for name in layout.numbers if name not in layout.keys}
    return Slice(layout, batch, rank, window, rows, sort, spans, _deadline(layout, rows, spans))


def _span(values: Int64s) -> tuple[int, int]:
    return int(values.min()), int(values.max())


def _deadline(layout: StateSchema, rows: pa.RecordBatch, spans: dict[str, tuple[int, int]]) -> int | None:
    """The watermark at which no row of the slice can join any more."""
    if layout.deadlines is None:
        return None
    ends = []
    for reach in layout.deadlines:
        if len(reach) == 1:
            ends.append(spans[reach[0][0]][1] + reach[0][1])
        else:
            ends.append(int(np.min([rows.column(n).to_numpy() + r for n, r in reach], axis=0).max()))
    return max(ends) + 1


def _take(rows: pa.RecordBatch, order: npt.NDArray[np.intp]) -> pa.RecordBatch:
    if np.array_equal(order, np.arange(len(order))):
        return rows
    picks = pa.array(order)
    columns = [pc.take(column, picks, boundscheck=False) for column in rows.columns]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)
