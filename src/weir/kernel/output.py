"""Complete results as the columns that were asked for, without those that are stale."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from weir.expr.evaluate import evaluate
from weir.expr.nodes import Column, Expr
from weir.kernel.keys import Bools
from weir.kernel.partial import Partial
from weir.kernel.row_ids import pieces
from weir.kernel.state import State
from weir.kernel.state_schema import arrival_name
from weir.query.model import Query
from weir.query.windows import RowWindow

Values: TypeAlias = "pa.Array | pa.ChunkedArray"
# Rows may be wide, images or documents.
_BYTES = 1 << 28


class Results:
    """Turns finished partials into result tables during one batch."""

    def __init__(self, query: Query, state: State, clock: int | None) -> None:
        self._query = query
        self._state = state
        self._clock = clock
        self.schema = result_schema(query)
        # The age of the oldest row put out so far (µs), of streams with a freshness in time.
        self.oldest: int | None = None

    def chunks(self, partial: Partial) -> Iterator[tuple[pa.Table, int]]:
        """The results in tables of a bounded size; with each, how many were left out because stale."""
        for piece in pieces(partial, max(1, int(_BYTES / max(partial.width, 1.0)))):
            yield self._chunk(piece)

    def _chunk(self, partial: Partial) -> tuple[pa.Table, int]:
        fresh = self._fresh(partial)
        stale = 0
        if fresh is not None and not fresh.all():
            stale = int(len(fresh) - fresh.sum())
            partial = partial.pick(np.flatnonzero(fresh))
        self._age(partial)
        gathered: dict[tuple[str, pa.DataType], Values] = {}
        columns = [_values(output.expr, partial, gathered) for output in self._query.select]
        return pa.Table.from_arrays(columns, schema=self.schema), stale

    def _age(self, partial: Partial) -> None:
        if self._clock is None or not partial.rows:
            return
        for name, window, fresh in zip(
            self._query.names, self._query.windows, self._query.fresh, strict=True
        ):
            if fresh is not None and not isinstance(window, RowWindow):
                age = self._clock - int(partial.numbers(arrival_name(name)).min())
                self.oldest = age if self.oldest is None else max(self.oldest, age)

    def _fresh(self, partial: Partial) -> Bools | None:
        keep = None
        for name, window, fresh in zip(
            self._query.names, self._query.windows, self._query.fresh, strict=True
        ):
            if fresh is None:
                continue
            arrival = partial.numbers(arrival_name(name))
            if isinstance(window, RowWindow):
                oldest = self._state.next_numbers.get(name, 0) - fresh
            else:
                oldest = -(2**62) if self._clock is None else self._clock - fresh
            keep = arrival >= oldest if keep is None else keep & (arrival >= oldest)
        return keep


def result_schema(query: Query) -> pa.Schema:
    """The columns of the result."""
    return pa.schema([pa.field(output.name, output.expr.type) for output in query.select])


def _values(expr: Expr, partial: Partial, gathered: dict[tuple[str, pa.DataType], Values]) -> Values:
    if isinstance(expr, Column):
        stored = (partial.source(expr), expr.type)
        if stored not in gathered:
            gathered[stored] = partial.output(expr)
        return gathered[stored]
    found = evaluate(expr, partial.fetch, partial.rows)
    return pa.repeat(found, partial.rows) if isinstance(found, pa.Scalar) else found
