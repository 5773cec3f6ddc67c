"""Partials: rows on their way to a result, held as row numbers until a column is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weir.expr.nodes import Column
from weir.kernel.keys import Int64s, combine
from weir.kernel.slice import Slice, restore
from weir.kernel.state_schema import StateSchema

Picks = npt.NDArray[np.intp]


class Rows:
    """Rows picked from slices of one state; columns are gathered once, when asked for."""

    def __init__(self, layout: StateSchema, parts: Sequence[tuple[Slice, Picks | None]]) -> None:
        self.layout = layout
        self._parts = parts
        self._columns: dict[str, pa.Array | pa.ChunkedArray] = {}
        self._numbers: dict[str, Int64s] = {}

    def column(self, name: str) -> pa.Array | pa.ChunkedArray:
        """A stored column; chunked if the rows come from several slices."""
        if name not in self._columns:
            chunks = [_take(s.data.column(name), picks) for s, picks in self._parts]
            self._columns[name] = chunks[0] if len(chunks) == 1 else pa.chunked_array(chunks)
        return self._columns[name]

    def whole(self, name: str) -> pa.Array:
        """A stored column in one piece."""
        column = self.column(name)
        if isinstance(column, pa.ChunkedArray):
            column = self._columns[name] = pa.concat_arrays(column.chunks)
        return column

    @property
    def count(self) -> int:
        """How many rows there are."""
        return sum(s.rows if picks is None else len(picks) for s, picks in self._parts)

    @property
    def width(self) -> float:
        """The bytes of a row, in the slice whose rows are widest."""
        return max((s.bytes / s.rows for s, _ in self._parts if s.rows), default=0.0)

    def span(self, name: str) -> tuple[int, int]:
        """The least and the greatest that a stored number can be, by what the slices say of themselves."""
        spans = [s.spans[name] for s, _ in self._parts]
        return min(first for first, _ in spans), max(last for _, last in spans)

    def numbers(self, name: str) -> Int64s:
        """A stored int64 column as NumPy."""
        if name not in self._numbers:
            taken = [s.numbers(name) if p is None else s.numbers(name)[p] for s, p in self._parts]
            self._numbers[name] = taken[0] if len(taken) == 1 else np.concatenate(taken)
        return self._numbers[name]

    def places(self) -> tuple[list[Slice], Int64s, Int64s]:
        """The slices, and of each row its slice's number among them and its own number there."""
        rows = [np.arange(s.rows) if picks is None else picks for s, picks in self._parts]
        numbers = np.repeat(np.arange(len(rows)), [len(found) for found in rows])
        return [s for s, _ in self._parts], numbers, np.concatenate(rows)

    def content(self) -> Int64s:
        """A hash of all that each row holds."""
        taken = [s.content() if p is None else s.content()[p] for s, p in self._parts]
        return taken[0] if len(taken) == 1 else np.concatenate(taken)


class Group:
    """Rows of one state inside a partial: row i of the partial is row `picks[i]` of `rows`."""

    def __init__(self, rows: Rows, picks: Picks | None = None) -> None:
        self.rows = rows
        self.picks = picks

    @property
    def layout(self) -> StateSchema:
        """What the rows hold."""
        return self.rows.layout

    def column(self, name: str) -> pa.Array | pa.ChunkedArray:
        """A stored column, one value per row of the partial."""
        if self.picks is None:
            return self.rows.column(name)
        return _take(self.rows.whole(name), self.picks)

    def whole(self, name: str) -> pa.Array:
        """The same in one piece."""
        return self.rows.whole(name) if self.picks is None else self.column(name)

    def numbers(self, name: str) -> Int64s:
        """A stored int64 column, one value per row of the partial."""
        numbers = self.rows.numbers(name)
        return numbers if self.picks is None else numbers[self.picks]

    def content(self) -> Int64s:
        """A hash of all that each row holds, one per row of the partial."""
        content = self.rows.content()
        return content if self.picks is None else content[self.picks]

    def pick(self, picks: Picks) -> Group:
        """The group of a partial made of these rows of the old one."""
        return Group(self.rows, picks if self.picks is None else self.picks[picks])


class Partial:
    """Incomplete results: one group per state visited so far."""

    def __init__(self, groups: tuple[Group, ...], rows: int) -> None:
        self.groups = groups
        self.rows = rows

    @staticmethod
    def of(driver: Slice) -> Partial:
        """The rows of a slice at the start of their path."""
        return Partial((Group(Rows(driver.layout, [(driver, None)])),), driver.rows)

    def joined(self, picks: Picks, partner: Rows) -> Partial:
        """These rows, each beside the partner's row of the same number."""
        return Partial((*(group.pick(picks) for group in self.groups), Group(partner)), len(picks))

    def pick(self, picks: Picks) -> Partial:
        """Some of the rows."""
        return Partial(tuple(group.pick(picks) for group in self.groups), len(picks))

    def holder(self, name: str) -> Group | None:
        """The group that stores a column of this name."""
        return next((g for g in self.groups if name in g.layout.numbers), None)

    @property
    def width(self) -> float:
        """About how many bytes a row has at most."""
        return sum(group.rows.width for group in self.groups)

    def numbers(self, name: str) -> Int64s:
        """A stored int64 column that some group holds."""
        return self._held(name).numbers(name)

    def span(self, name: str) -> tuple[int, int]:
        """The least and the greatest that a stored number can be."""
        return self._held(name).rows.span(name)

    def _held(self, name: str) -> Group:
        group = self.holder(name)
        assert group is not None, f"no group stores {name}"
        return group

    def fetch(self, column: Column) -> pa.Array:
        """A payload column in one piece."""
        group = self._group_of(column)
        return restore(group.whole(group.layout.sources[column]), column.type)

    def source(self, column: Column) -> str:
        """Where the values of a payload column are stored; streams joined on a key share that key's."""
        return self._group_of(column).layout.sources[column]

    def output(self, column: Column) -> pa.Array | pa.ChunkedArray:
        """A payload column, chunked where that saves a copy."""
        name = self.source(column)
        group = self.holder(name) or self._group_of(column)
        return restore(group.column(name), column.type)

    def _group_of(self, column: Column) -> Group:
        return next(g for g in self.groups if column.stream in g.layout.streams)

    def content(self) -> Int64s:
        """A hash of all that each row holds, the same in every process."""
        return combine([group.content() for group in self.groups])

    def extreme(self, names: Callable[[StateSchema], Sequence[str]], best: Any) -> Int64s | None:
        """The row-wise maximum or minimum (`best`) of stored numbers of every group; None without any."""
        found = [group.numbers(name) for group in self.groups for name in names(group.layout)]
        result: Int64s | None = None
        for numbers in found:
            result = numbers if result is None else best(result, numbers)
        return result


def _take(values: pa.Array, picks: Picks | None) -> pa.Array:
    return values if picks is None else pc.take(values, pa.array(picks), boundscheck=False)
