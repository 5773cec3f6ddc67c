"""Complete results as the columns that were asked for, without those that are stale."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from weir.expr.evaluate import evaluate
from weir.expr.nodes import Column, Expr
from weir.kernel.decision import Decision
from weir.kernel.keys import Bools
from weir.kernel.partial import Partial
from weir.kernel.row_ids import pieces
from weir.kernel.state_schema import arrival_name
from weir.query.model import Query
from weir.query.windows import RowWindow

Values: TypeAlias = "pa.Array | pa.ChunkedArray"
# Rows may be wide, images or documents.
_BYTES = 1 << 28


class Results:
    """Turns finished partials into result tables during one batch."""

    def __init__(self, query: Query, decision: Decision, next_numbers: Mapping[str, int], batch: int) -> None:
        self._query, self._decision, self._next_numbers, self._batch = query, decision, next_numbers, batch
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
        if not partial.rows:
            return
        clock = self._decision.clock
        for name, window, fresh in zip(
            self._query.names, self._query.windows, self._query.fresh, strict=True
        ):
            if fresh is not None and not isinstance(window, RowWindow):
                first = int(partial.numbers(arrival_name(name)).min())
                age = 0 if clock is None else clock - self._decision.arrivals.get(first, clock)
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
                oldest = self._next_numbers.get(name, 0) - fresh
            else:
                oldest = self._first_fresh_batch(fresh)
            keep = arrival >= oldest if keep is None else keep & (arrival >= oldest)
        return keep

    def _first_fresh_batch(self, fresh: int) -> int:
        """The first batch whose clock, which never goes back, is at most so long ago."""
        clock, arrivals = self._decision.clock, self._decision.arrivals
        if clock is None:
            return self._batch
        return min(
            (batch for batch, arrived in arrivals.items() if arrived >= clock - fresh), default=self._batch
        )


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
