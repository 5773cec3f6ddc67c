"""Output: turn complete partials into result tables, without stale results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from weir.expr.evaluate import evaluate
from weir.expr.nodes import Column, Expr, columns_of
from weir.kernel.decision import Decision
from weir.kernel.keys import Bools
from weir.kernel.partial import Partial
from weir.kernel.quarantine import Quarantine, Rejection
from weir.kernel.result_weights import ResultWeights
from weir.kernel.split_partial import split_by_bytes
from weir.kernel.state_schema import arrival_name
from weir.query.model import Query
from weir.query.windows import RowWindow
from weir.stats.batch_counts import BatchCounts
from weir.stats.weight_sums import WeightSums

Values: TypeAlias = "pa.Array | pa.ChunkedArray"


class Results:
    """Turns complete partials into result tables during one batch."""

    def __init__(
        self,
        query: Query,
        decision: Decision,
        next_row_numbers: Mapping[str, int],
        batch: int,
        quarantine: Quarantine | None = None,
    ) -> None:
        self._query, self._decision, self._quarantine = query, decision, quarantine
        self._weights = ResultWeights()
        self._result_schema = result_schema(query)
        self._columns = {column for output in query.select for column in columns_of(output.expr)}
        # The least arrival of each stream that is fresh: a row number for row windows, else a batch.
        self._fresh_from: dict[str, int] = {}
        self._timed: list[str] = []
        for name, window, fresh in zip(query.names, query.windows, query.fresh, strict=True):
            if fresh is not None and isinstance(window, RowWindow):
                self._fresh_from[name] = next_row_numbers.get(name, 0) - fresh
            elif fresh is not None:
                self._fresh_from[name] = _first_fresh_batch(decision, fresh, batch)
                self._timed.append(name)

    def emit(self, partial: Partial, counts: BatchCounts) -> Iterator[pa.Table]:
        """Yield the fresh results in tables of bounded size; count them, the stale ones and ages."""
        for piece in split_by_bytes(partial, self._columns):
            fresh = self._is_fresh(piece)
            if not fresh.all():
                counts.stale += int(len(fresh) - fresh.sum())
                piece = piece.pick(np.flatnonzero(fresh))
            if piece.rows:
                table, kept = self._make_table(piece)
                counts.results += table.num_rows
                self._weights.add(piece if kept is None else piece.pick(np.flatnonzero(kept)))
                counts.oldest = max(self._ages(piece, counts.oldest), default=None)
                if table.num_rows:
                    yield table

    @property
    def weights(self) -> dict[str, WeightSums]:
        """The weights of the results so far, by driver."""
        return self._weights.get()

    def _make_table(self, partial: Partial) -> tuple[pa.Table, Bools | None]:
        """Return the results, and which rows of the partial they come from; None: from all."""
        gathered: dict[tuple[str, pa.DataType], Values] = {}
        rejection = Rejection(partial, self._quarantine)
        columns = [_values(output.expr, partial, gathered, rejection) for output in self._query.select]
        table = pa.Table.from_arrays(columns, schema=self._result_schema)
        kept = rejection.kept
        return (table, None) if kept is None else (table.filter(pa.array(kept)), kept)

    def _ages(self, partial: Partial, oldest: int | None) -> Iterator[int]:
        """The age (µs) of the oldest row of each stream with a freshness in time, and the oldest so far."""
        if oldest is not None:
            yield oldest
        clock = self._decision.clock
        for name in self._timed:
            first = int(partial.numbers(arrival_name(name)).min())
            yield 0 if clock is None else clock - self._decision.arrivals.get(first, clock)

    def _is_fresh(self, partial: Partial) -> Bools:
        fresh = np.ones(partial.rows, np.bool_)
        for name, oldest in self._fresh_from.items():
            fresh &= partial.numbers(arrival_name(name)) >= oldest
        return fresh


def result_schema(query: Query) -> pa.Schema:
    """Return the Arrow schema of the result."""
    return pa.schema([pa.field(output.name, output.expr.type) for output in query.select])


def _values(
    expr: Expr, partial: Partial, gathered: dict[tuple[str, pa.DataType], Values], rejection: Rejection
) -> Values:
    if isinstance(expr, Column):
        stored = (partial.source(expr), expr.type)
        if stored not in gathered:
            gathered[stored] = partial.output(expr)
        return gathered[stored]
    values = evaluate(expr, partial.fetch, partial.rows, rejection.kept, rejection)
    return pa.repeat(values, partial.rows) if isinstance(values, pa.Scalar) else values


def _first_fresh_batch(decision: Decision, fresh: int, batch: int) -> int:
    """The first batch whose clock, which never goes back, is at most `fresh` µs ago."""
    if decision.clock is None:
        return batch
    since = decision.clock - fresh
    return min((number for number, arrived in decision.arrivals.items() if arrived >= since), default=batch)
