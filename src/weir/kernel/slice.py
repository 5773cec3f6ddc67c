"""Slices: immutable runs of one state's rows that are neighbours in time.

    state of a      ┌─ slice ─┐┌─ slice ─┐┌─ slice ─┐┌ slice of this batch ┐
    event time   ───┴─────────┴┴─────────┴┴─────────┴┴─────────────────────┴──▶
                          ▲    │ newest row            deadline
                          │    └───── retention ──────────▶│
                      watermark: the slice expires when it reaches the deadline

Slices are cut by rows: one ends at the first edge of the time grid (`StateSchema.cut_every`) at which it has
some thousand rows. So a dense stream has slices shorter than its window, and a sparse one has few slices,
each over many cells of the grid. Rows are sorted by the index that most probes want. The `deadline` is
the first watermark at which none of them can join any more. A slice is the unit of storage, expiry,
distribution and eviction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weir.expr.evaluate import evaluate
from weir.expr.nodes import Column
from weir.kernel.index import ByKey, ByTime, Index, KeyIndex, Spec, to_sortable
from weir.kernel.keys import Bools, Floats, Int64s, combine, content_hash
from weir.kernel.row_hash import hash_rows, select_share
from weir.kernel.state_schema import Limits, StateSchema
from weir.kernel.time_shift import shift_times
from weir.kernel.value_bytes import count_bytes

Value = TypeVar("Value")

# A slice is complete when it has this many rows, or fewer rows with this many bytes: enough that the calls
# it takes to search it cost little beside the search, few enough that few of its rows are dead.
ROWS = 1 << 12
_BYTES = 1 << 22
# Slices that a memory budget makes smaller still have so many rows, unless they were then several times too
# large; and rows that come at once are cut into so many slices at most, however many they are.
_FEW_ROWS = 1 << 10
_MOST_TIMES_TOO_LARGE = 4
_MOST_SLICES = 8


@dataclass(frozen=True, eq=False)
class Slice:
    """A run of rows of one state.

    `spans` holds the least and the greatest value of each stored number but keys. Batch and rank say which
    rows may see it. Where rows of a batch differ in rank, `ranks` has the rank of each and `rank` is the
    lowest; once the batch is over, ranks do not matter. A row stands for `weights` rows of the exact state
    (None: each for itself), and an `is_rest` slice is what eviction has left of larger ones.
    """

    schema: StateSchema
    batch: int
    rank: int
    data: pa.RecordBatch
    sorted_by: Spec | None
    spans: dict[str, tuple[int, int]]
    deadline: int | None
    ranks: Int64s | None = None
    weights: Floats | None = None
    is_rest: bool = False
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

    @property
    def highest_rank(self) -> int:
        """The highest rank of a row."""
        ranks = self.ranks
        return self.rank if ranks is None else self.cached("highest_rank", lambda: int(ranks.max()))

    @property
    def mean_weight(self) -> float:
        """How many rows of the exact state a row stands for, on average."""
        weights = self.weights
        return 1.0 if weights is None else self.cached("mean_weight", lambda: float(weights.mean()))

    def row_weights(self) -> Floats:
        """Return the weight of every row."""
        return np.ones(self.rows) if self.weights is None else self.weights

    def thin(self, share: float, *purpose: object) -> Slice:
        """Return the rest of a slice: a share of its rows, chosen by their content, that stand for all."""
        rows = np.flatnonzero(select_share(hash_rows(self.content(), *purpose), share))
        return replace(
            self,
            data=self.data.take(pa.array(rows)),
            ranks=None if self.ranks is None else self.ranks[rows],
            weights=self.row_weights()[rows] / share,
            is_rest=True,
            _cache={},
        )

    def row_ranks(self) -> Int64s:
        """Return the rank of every row."""
        return np.full(self.rows, self.rank) if self.ranks is None else self.ranks

    def without_ranks(self) -> Slice:
        """Return the slice as later batches need it."""
        return self if self.ranks is None else replace(self, ranks=None)

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

    def key_index(self, spec: ByKey) -> KeyIndex:
        """Return an index over keys and times."""
        return self.cached(("key_index", spec), lambda: self._index_keys(self.index(spec)))

    def _index_keys(self, index: Index) -> KeyIndex:
        return KeyIndex.of(index.values, self.times() if index.rows is None else self.times()[index.rows])

    def positions(self, spec: Spec) -> Int64s:
        """Return the position of each row in an index; -1 for a row that the index leaves out."""
        return self.cached(("positions", spec), lambda: self._invert(self.index(spec)))

    def _invert(self, index: Index) -> Int64s:
        positions = np.full(self.rows, -1)
        positions[index.pick(np.arange(len(index.values)))] = np.arange(len(index.values))
        return positions

    def value_bytes(self, name: str) -> Int64s:
        """Return the bytes of each value of a stored column."""
        return count_bytes(self.data.column(name))

    def most_bytes(self, name: str) -> int:
        """Return the bytes of the largest value of a stored column."""
        return self.cached(("most_bytes", name), lambda: int(self.value_bytes(name).max(initial=0)))

    def content(self) -> Int64s:
        """Return a hash of each row's content."""
        return self.cached("content", lambda: content_hash(self.data.columns, self.rows))

    def content_of(self, stream: str) -> Int64s:
        """Return a hash of what each row holds of one stream: joined rows with the same row of it agree."""
        return self.cached(("content", stream), lambda: self._hash_columns(self.schema.columns_of(stream)))

    def _hash_columns(self, names: Sequence[str]) -> Int64s:
        return (
            content_hash([self.data.column(name) for name in names], self.rows) if names else self.content()
        )

    def cached(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Return a value derived from the rows; compute it the first time."""
        if key not in self._cache:
            self._cache[key] = compute()
        value: Value = self._cache[key]
        return value

    def fetch(self, column: Column) -> pa.Array:
        """Return the values of a payload column, in the slice's order."""
        return restore(self.data.column(self.schema.sources[column]), column.type)

    @property
    def cells(self) -> tuple[int, int]:
        """The cells of the time grid that hold its first and its last row."""
        first, last = self.spans[self.schema.cut_by]
        return first // self.schema.cut_every, last // self.schema.cut_every

    def find_dead(self, watermark: int | None) -> Bools | None:
        """Tell which rows can join no row at or after the watermark; None: all can."""
        deadlines = self.schema.deadlines
        if watermark is None or deadlines is None or watermark <= self._least_end(deadlines):
            return None
        dead: Bools = _row_ends(deadlines, self.numbers, self.spans) < watermark
        return dead if dead.any() else None

    def _least_end(self, deadlines: Sequence[Limits]) -> int:
        """Return a watermark at which all rows can still join."""
        return max(min(self.spans[time][0] + kept for time, kept in limits) for limits in deadlines)

    def is_visible_to(self, batch: int, rank: int) -> bool:
        """True if rows of that batch and rank may join with this slice, or with some of its rows."""
        return self.batch < batch or self.rank < rank


def restore(values: Any, kind: pa.DataType) -> Any:
    """Cast stored values back to the query's type: times and keys are stored as int64."""
    return values if values.type == kind else values.cast(kind, safe=False)


def cut(
    schema: StateSchema,
    sort: Spec,
    batch: int,
    rank: int | Int64s,
    rows: pa.RecordBatch,
    max_bytes: int | None = None,
    in_time: bool = False,
    weights: Floats | None = None,
) -> list[Slice]:
    """Sort rows and cut them into slices of some thousand rows, at edges of the time grid.

    All rows have one rank, or each its own. A slice has at most about `max_bytes`, if given and if that gives
    no great number of tiny slices: then it may also end between edges. With `in_time`, rows with equal keys
    are in time order.
    """
    if not rows.num_rows:
        return []
    numbers = _number_slices(rows.column(schema.cut_by).to_numpy(), schema.cut_every, rows, max_bytes)
    if numbers is None:
        return [_sort_into_slice(schema, sort, batch, rank, rows, in_time, weights)]
    if not _is_ascending(numbers):
        order = np.argsort(numbers, kind="stable")
        rows, numbers, rank = _take(rows, order), numbers[order], _pick_ranks(rank, order)
        weights = None if weights is None else weights[order]
    # Slices are sorted one at a time: their rows stay in the processor's cache, however many come at once.
    edges = _find_edges(numbers).tolist()
    return [
        _sort_into_slice(
            schema,
            sort,
            batch,
            _pick_ranks(rank, slice(first, last)),
            rows.slice(first, last - first),
            in_time,
            None if weights is None else weights[first:last],
        )
        for first, last in pairwise(edges)
    ]


def merge(slices: Sequence[Slice], sort: Spec, watermark: int | None, max_bytes: int | None) -> list[Slice]:
    """Merge slices into ones that every later batch sees; rows that cannot join any more are dropped."""
    schema = slices[0].schema
    slices = sorted(slices, key=lambda s: s.span)
    newest_batch = max(s.batch for s in slices)
    live = [_live_rows(s, watermark) for s in slices]
    rows = pa.concat_batches([s.data for s in live])
    in_time = _are_consecutive(slices, sort)
    merged = cut(schema, sort, newest_batch, 0, rows, max_bytes, in_time, _concat_weights(live))
    return [replace(s, is_rest=True) for s in merged] if slices[0].is_rest else merged


def pick_rows(source: Slice, rows: npt.NDArray[np.intp]) -> Slice:
    """Return a slice of some rows of another, in ascending order, so that they are sorted as they were.

    The batch of its rows is over, so that their ranks do not matter.
    """
    picked = source.data.take(pa.array(rows))
    weights = None if source.weights is None else source.weights[rows]
    part = _make_slice(source.schema, source.sorted_by, source.batch, source.rank, picked, weights)
    return replace(part, is_rest=source.is_rest)


def _sort_into_slice(
    schema: StateSchema,
    sort: Spec,
    batch: int,
    rank: int | Int64s,
    rows: pa.RecordBatch,
    in_time: bool,
    weights: Floats | None,
) -> Slice:
    order = _sort_rows(schema, sort, rows, in_time)
    weights = None if weights is None else weights[order]
    return _make_slice(schema, sort, batch, _pick_ranks(rank, order), _take(rows, order), weights)


def combine_slices(slices: Sequence[Slice], sort: Spec) -> Slice:
    """Return one slice with the rows of several, whatever their number, to probe it in their place."""
    slices = sorted(slices, key=lambda s: s.span)
    schema, batch = slices[0].schema, max(s.batch for s in slices)
    rows = pa.concat_batches([s.data for s in slices])
    rank: int | Int64s = slices[0].rank
    if any(s.ranks is not None or s.rank != rank for s in slices):
        rank = np.concatenate([s.row_ranks() for s in slices])
    in_time = _are_consecutive(slices, sort)
    return _sort_into_slice(schema, sort, batch, rank, rows, in_time, _concat_weights(slices))


def _number_slices(times: Int64s, cell: int, rows: pa.RecordBatch, max_bytes: int | None) -> Int64s | None:
    """Return for each row the number of its slice; None if one slice takes all rows."""
    row_bytes = max(1.0, rows.nbytes / rows.num_rows)
    enough = max(1, min(ROWS, int(_BYTES / row_bytes)))
    most = rows.num_rows if max_bytes is None else _most_rows(max_bytes / row_bytes, rows.num_rows, enough)
    if rows.num_rows <= min(enough, most):
        return None
    numbers = np.zeros(len(times), np.int64)
    if times.min() // cell < times.max() // cell:
        cell_of_row, counts = _number_cells(times // cell)
        numbers = ((np.cumsum(counts) - counts) // min(enough, most))[cell_of_row]
    elif rows.num_rows <= most:
        return None
    if rows.num_rows > most:
        rank = np.empty(len(times), np.int64)
        rank[np.argsort(times, kind="stable")] = np.arange(len(times))
        numbers = numbers * len(times) + rank // most
    return numbers


def _most_rows(wanted: float, rows: int, enough: int) -> int:
    """Return the most rows of a slice where a memory budget wants so few, of so many rows that come at once.

    >>> [_most_rows(wanted, rows=1000, enough=4096) for wanted in (10, 100, 500, 2000)]
    [125, 400, 1024, 2000]
    """
    least = max(min(_FEW_ROWS, _MOST_TIMES_TOO_LARGE * wanted), min(enough, rows / _MOST_SLICES))
    return math.ceil(max(wanted, least))


def _number_cells(cells: Int64s) -> tuple[Int64s, Int64s]:
    """Number the cells in their order; return the number of each row's cell, and the rows of each cell."""
    if not _is_ascending(cells):
        _, numbers, counts = np.unique(cells, return_inverse=True, return_counts=True)
        return numbers, counts
    counts = np.diff(_find_edges(cells))
    return np.repeat(np.arange(len(counts)), counts), counts


def _find_edges(numbers: Int64s) -> npt.NDArray[np.intp]:
    """Return where runs of equal numbers begin, and where the last one ends."""
    return np.concatenate(([0], np.flatnonzero(numbers[1:] != numbers[:-1]) + 1, [len(numbers)]))


def _is_ascending(numbers: Int64s) -> bool:
    return bool((numbers[1:] >= numbers[:-1]).all())


def _live_rows(source: Slice, watermark: int | None) -> Slice:
    """Return a slice without its dead rows, of which only data and weights are right."""
    dead = source.find_dead(watermark)
    if dead is None:
        return source
    weights = None if source.weights is None else source.weights[~dead]
    return replace(source, data=source.data.filter(pa.array(~dead)), weights=weights, _cache={})


def _concat_weights(slices: Sequence[Slice]) -> Floats | None:
    if all(s.weights is None for s in slices):
        return None
    return np.concatenate([s.row_weights() for s in slices])


def _are_consecutive(slices: Sequence[Slice], sort: Spec) -> bool:
    """True if rows with equal keys are in time order once the slices are concatenated."""
    follow = all(last <= first for (_, last), (first, _) in pairwise(s.span for s in slices))
    return follow and all(s.sorted_by == sort for s in slices)


def _sort_rows(
    schema: StateSchema, sort: Spec, rows: pa.RecordBatch, in_time: bool = False
) -> npt.NDArray[np.intp]:
    """Sort rows by (index, time); rows that the index leaves out come last."""
    unsorted = Slice(schema, 0, 0, rows, None, {}, None)
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
        in_time = in_time or _is_ascending(times)
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


def _pick_ranks(rank: int | Int64s, picks: npt.NDArray[np.intp] | slice) -> int | Int64s:
    return rank if isinstance(rank, int) else rank[picks]


def _make_slice(
    schema: StateSchema,
    sort: Spec | None,
    batch: int,
    rank: int | Int64s,
    rows: pa.RecordBatch,
    weights: Floats | None = None,
) -> Slice:
    numbers = {n: rows.column(n).to_numpy() for n in schema.numbers if n not in schema.keys}
    spans = {name: (int(values.min()), int(values.max())) for name, values in numbers.items()}
    deadline = None
    if schema.deadlines is not None:
        deadline = int(_row_ends(schema.deadlines, numbers.__getitem__, spans).max()) + 1
    if isinstance(rank, int):
        return Slice(schema, batch, rank, rows, sort, spans, deadline, None, weights)
    return Slice(schema, batch, int(rank.min()), rows, sort, spans, deadline, rank, weights)


def _row_ends(
    deadlines: Sequence[Limits], numbers: Callable[[str], Int64s], spans: Mapping[str, tuple[int, int]]
) -> Int64s:
    """Return the last watermark at which each row can join some stream still to come."""
    per_stream = [
        reduce(np.minimum, [shift_times(numbers(time), kept, spans[time]) for time, kept in limits])
        for limits in deadlines
    ]
    return reduce(np.maximum, per_stream)


def _take(rows: pa.RecordBatch, order: npt.NDArray[np.intp]) -> pa.RecordBatch:
    if np.array_equal(order, np.arange(len(order))):
        return rows
    indices = pa.array(order)
    columns = [pc.take(column, indices, boundscheck=False) for column in rows.columns]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)
