"""Partials: incomplete results, held as row numbers of slices until somebody asks for a column.

    Partial (a, b)      Group of a                   Group of b
    row 0               rows[picks[0]] ─▶ slices     rows[0] ─▶ slices
    row 1               rows[picks[1]]               rows[1]

A hop appends one group and picks rows of those before it; no column is copied on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, reduce
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weir.expr.nodes import Column
from weir.kernel.keys import Floats, Int64s, combine
from weir.kernel.slice import Slice, restore
from weir.kernel.state_schema import StateSchema

Number = TypeVar("Number", np.int64, np.float64)
Picks = npt.NDArray[np.intp]
# Rows of a slice; None means all of them.
SlicePart = tuple[Slice, Picks | None]


class Rows:
    """Rows picked from slices of one state; each column is gathered once, when asked for."""

    def __init__(self, schema: StateSchema, parts: Sequence[SlicePart]) -> None:
        self.schema = schema
        self._parts = parts
        self._columns: dict[str, pa.Array | pa.ChunkedArray] = {}
        self._numbers: dict[str, Int64s] = {}

    def column(self, name: str) -> pa.Array | pa.ChunkedArray:
        """Return a stored column; chunked if the rows come from several slices."""
        if name not in self._columns:
            chunks = [_take(s.data.column(name), picks) for s, picks in self._parts]
            self._columns[name] = chunks[0] if len(chunks) == 1 else pa.chunked_array(chunks)
        return self._columns[name]

    def array(self, name: str) -> pa.Array:
        """Return a stored column in one piece."""
        column = self.column(name)
        if isinstance(column, pa.ChunkedArray):
            column = self._columns[name] = pa.concat_arrays(column.chunks)
        return column

    @property
    def count(self) -> int:
        """The number of rows."""
        return sum(s.rows if picks is None else len(picks) for s, picks in self._parts)

    def value_bytes(self, name: str) -> Int64s:
        """Return the bytes of each value of a stored column."""
        return self._gather(lambda s: s.value_bytes(name))

    def most_bytes(self, name: str) -> int:
        """Return the bytes of the largest value of a stored column in any of the slices."""
        return max((s.most_bytes(name) for s, _ in self._parts), default=0)

    def most_bytes_gathered(self, name: str) -> int:
        """Return at least the bytes that `array` copies; the column of a whole slice is not copied."""
        if len(self._parts) == 1 and self._parts[0][1] is None:
            return 0
        return sum((s.rows if picks is None else len(picks)) * s.most_bytes(name) for s, picks in self._parts)

    @property
    def row_bytes(self) -> float:
        """The bytes of a row, in the slice whose rows are widest."""
        return max((s.row_bytes for s, _ in self._parts), default=0.0)

    def span(self, name: str) -> tuple[int, int]:
        """Return bounds on a stored number, as the spans of the slices tell."""
        spans = [s.spans[name] for s, _ in self._parts]
        return min(first for first, _ in spans), max(last for _, last in spans)

    def numbers(self, name: str) -> Int64s:
        """Return a stored int64 column as NumPy."""
        if name not in self._numbers:
            self._numbers[name] = self._gather(lambda s: s.numbers(name))
        return self._numbers[name]

    def content(self) -> Int64s:
        """Return a hash of each row's content."""
        return self._gather(Slice.content)

    @cached_property
    def weights(self) -> Floats | None:
        """How many rows of the exact state each row stands for; None: each for itself."""
        if all(s.weights is None for s, _ in self._parts):
            return None
        return self._gather(Slice.row_weights)

    def content_of(self, stream: str) -> Int64s:
        """Return a hash of what each row holds of one stream."""
        return self._gather(lambda s: s.content_of(stream))

    @cached_property
    def ranks(self) -> Int64s:
        """The rank of each row."""
        return self._gather(Slice.row_ranks)

    @cached_property
    def lowest_rank(self) -> int:
        """A lower bound on the ranks, as the slices tell."""
        return min((s.rank for s, _ in self._parts), default=0)

    def row_ids(self) -> tuple[list[Slice], Int64s, Int64s]:
        """Return the slices and, for each row, the position of its slice and its row number there."""
        rows = [np.arange(s.rows) if picks is None else picks for s, picks in self._parts]
        positions = np.repeat(np.arange(len(rows)), [len(picks) for picks in rows])
        return [s for s, _ in self._parts], positions, np.concatenate(rows)

    def _gather(self, values: Callable[[Slice], npt.NDArray[Number]]) -> npt.NDArray[Number]:
        gathered = [values(s) if picks is None else values(s)[picks] for s, picks in self._parts]
        return gathered[0] if len(gathered) == 1 else np.concatenate(gathered)


class Group:
    """Rows of one state inside a partial: row i of the partial is row `picks[i]` of `rows`."""

    def __init__(self, rows: Rows, picks: Picks | None = None) -> None:
        self.rows = rows
        self.picks = picks

    @property
    def schema(self) -> StateSchema:
        """What the rows hold."""
        return self.rows.schema

    def column(self, name: str) -> pa.Array | pa.ChunkedArray:
        """Return a stored column, one value per row of the partial."""
        return self.rows.column(name) if self.picks is None else self.array(name)

    def array(self, name: str) -> pa.Array:
        """Return the same in one piece."""
        return _take(self.rows.array(name), self.picks)

    def numbers(self, name: str) -> Int64s:
        """Return a stored int64 column, one value per row of the partial."""
        numbers = self.rows.numbers(name)
        return numbers if self.picks is None else numbers[self.picks]

    def value_bytes(self, name: str) -> Int64s:
        """Return the bytes of each value of a stored column, one per row of the partial."""
        sizes = self.rows.value_bytes(name)
        return sizes if self.picks is None else sizes[self.picks]

    @property
    def weights(self) -> Floats | None:
        """The weight of each row of the partial's; None: each is 1."""
        weights = self.rows.weights
        return weights if weights is None or self.picks is None else weights[self.picks]

    def content_of(self, stream: str) -> Int64s:
        """Return a hash of what each row holds of one stream, one per row of the partial."""
        content = self.rows.content_of(stream)
        return content if self.picks is None else content[self.picks]

    def pick(self, picks: Picks) -> Group:
        """Return the group of a partial that consists of these rows of the old one."""
        return Group(self.rows, picks if self.picks is None else self.picks[picks])


class Partial:
    """Incomplete results: one group per state visited so far, the driver's first.

    At the end of a path, `weights` says how many exact outputs each row stands for; None: each for itself.
    """

    def __init__(self, groups: tuple[Group, ...], rows: int, weights: Floats | None = None) -> None:
        self.groups = groups
        self.rows = rows
        self.weights = weights

    @staticmethod
    def of(driver: Slice) -> Partial:
        """Start a path with the rows of a slice."""
        return Partial((Group(Rows(driver.schema, [(driver, None)])),), driver.rows)

    def ranks_of(self, rows: Picks | slice) -> Int64s:
        """Return the ranks of some rows: of each, that of the row that drives it."""
        driver = self.groups[0]
        return driver.rows.ranks[rows if driver.picks is None else driver.picks[rows]]

    def extend(self, picks: Picks, partner: Rows) -> Partial:
        """Pair row `picks[i]` with row i of the partner."""
        return Partial((*(group.pick(picks) for group in self.groups), Group(partner)), len(picks))

    def pick(self, picks: Picks) -> Partial:
        """Return some of the rows."""
        weights = None if self.weights is None else self.weights[picks]
        return Partial(tuple(group.pick(picks) for group in self.groups), len(picks), weights)

    @property
    def driver(self) -> Partial:
        """The rows of the driver alone, one for each row."""
        return Partial(self.groups[:1], self.rows)

    def stores(self, name: str) -> bool:
        """True if some group stores a number of this name."""
        return self.find_group(name) is not None

    def find_group(self, name: str) -> Group | None:
        """Return the group that stores a number of this name."""
        return next((g for g in self.groups if name in g.schema.numbers), None)

    @property
    def row_bytes(self) -> float:
        """An upper estimate of the bytes of a row."""
        return sum(group.rows.row_bytes for group in self.groups)

    def numbers(self, name: str) -> Int64s:
        """Return a stored int64 column of whichever group has it."""
        return self._group_storing(name).numbers(name)

    def span(self, name: str) -> tuple[int, int]:
        """Return bounds on a stored number."""
        return self._group_storing(name).rows.span(name)

    def fetch(self, column: Column) -> pa.Array:
        """Return a payload column in one piece."""
        group = self._group_of(column)
        return restore(group.array(group.schema.sources[column]), column.type)

    def source(self, column: Column) -> str:
        """Return the stored column with the values of a payload column; joined streams share their key's."""
        return self._group_of(column).schema.sources[column]

    def output(self, column: Column) -> pa.Array | pa.ChunkedArray:
        """Return a payload column, chunked where that saves a copy."""
        group, name = self.locate(column)
        return restore(group.column(name), column.type)

    def locate(self, column: Column) -> tuple[Group, str]:
        """Return the group that stores the values of a payload column, and their name there."""
        name = self.source(column)
        return self.find_group(name) or self._group_of(column), name

    def content(self) -> Int64s:
        """Return a hash of each row's content, the same in every process."""
        contents = ((group.rows.content(), group.picks) for group in self.groups)
        return combine([content if picks is None else content[picks] for content, picks in contents])

    def latest(self, names: Callable[[StateSchema], Sequence[str]]) -> Int64s:
        """Return the greatest of some stored numbers of all groups, row by row."""
        return reduce(np.maximum, [g.numbers(name) for g in self.groups for name in names(g.schema)])

    def _group_storing(self, name: str) -> Group:
        group = self.find_group(name)
        assert group is not None, f"no group stores {name}"
        return group

    def _group_of(self, column: Column) -> Group:
        return next(g for g in self.groups if column.stream in g.schema.streams)


def _take(values: pa.Array, picks: Picks | None) -> pa.Array:
    return values if picks is None else pc.take(values, pa.array(picks), boundscheck=False)
