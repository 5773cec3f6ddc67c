"""A join in this process: all rows at once, or one batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import perf_counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import unknown
from weir.kernel import Decision, State, Work, build, commit, compile_plan, probe, result_schema
from weir.local.progress import progress
from weir.local.tables import conform
from weir.plan import Join
from weir.query import Query
from weir.stats import BatchStats

_KEPT_PROGRESS = 100


class LocalQuery:
    """A running join: give it batches, get each batch's results.

    The same rows give the same results however they are cut into batches, as long as none comes later than
    its stream's lateness allows.
    """

    def __init__(self, query: Query, plan: Join, driver_order: tuple[str, ...] | None = None) -> None:
        self.query = query
        self.schema = result_schema(query)
        self._program = compile_plan(query, plan)
        self._driver_order = driver_order or query.names
        self._state = State()
        self._batch = 0
        self._stats: list[BatchStats] = []

    def process(self, batch: Mapping[str, Any] | None = None, /, **tables: Any) -> pa.Table:
        """Take in one batch, `process(orders=table, payments=table)`, and return the results it completes."""
        return pa.concat_tables([self.schema.empty_table(), *self.chunks({**(batch or {}), **tables})])

    def chunks(self, batch: Mapping[str, Any]) -> Iterator[pa.Table]:
        """The same in pieces, as they are found; the batch counts once the last piece has been taken."""
        started = perf_counter()
        rows = self._conform(batch)
        decision = Decision(self._program.plan, self._driver_order, self._clock(rows))
        work = Work()
        built = build(self._program, decision, self._state, rows, self._batch, work)
        yield from probe(self._program, decision, built.state, self._batch, work)
        self._state = commit(self._program, built.state)
        self._remember(
            BatchStats(
                batch=self._batch,
                rows_in=built.rows_in,
                late=built.late,
                null_time=built.null_time,
                results=work.results,
                stale=work.stale,
                per_hop=work.per_hop(),
                state=self._state.sizes(),
                watermark=self._state.watermark,
                seconds=perf_counter() - started,
            )
        )
        self._batch += 1

    @property
    def state(self) -> State:
        """What is kept for the batches to come."""
        return self._state

    @property
    def stats(self) -> BatchStats | None:
        """What the last batch did; None before the first."""
        return self._stats[-1] if self._stats else None

    @property
    def lastProgress(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """The last batch in Spark's words; None before the first."""
        return progress(self._stats[-1]) if self._stats else None

    @property
    def recentProgress(self) -> list[dict[str, Any]]:  # noqa: N802 - Spark's name
        """The last hundred batches in Spark's words."""
        return [progress(stats) for stats in self._stats]

    def _conform(self, batch: Mapping[str, Any]) -> dict[str, pa.Table]:
        for name in batch:
            if name not in self.query.names:
                raise unknown("stream", name, self.query.names)
        return {name: conform(self.query.stream(name), table) for name, table in batch.items()}

    def _clock(self, rows: Mapping[str, pa.Table]) -> int | None:
        """The newest event time seen, this batch included."""
        times = [pc.max(table.column(self.query.stream(name).time)) for name, table in rows.items()]
        seen = [*self._state.newest.values(), *(time.value for time in times if time.is_valid)]
        return max(seen, default=None)

    def _remember(self, stats: BatchStats) -> None:
        self._stats = [*self._stats[-_KEPT_PROGRESS + 1 :], stats]
