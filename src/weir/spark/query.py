"""A started join; follows Spark's StreamingQuery."""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from weir.errors import QueryError
from weir.partition.resize import Resize, ResizeMode
from weir.plan.tree import Join
from weir.query.model import Budget
from weir.shed.allowance import Allowance
from weir.spark.batches import SparkBatches


class SparkQuery:
    """The running query; everything Spark's has, and a `weir` section in its progress."""

    def __init__(self, query: StreamingQuery, batches: SparkBatches) -> None:
        self._query = query
        self._batches = batches

    @property
    def lastProgress(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """The last batch; None before the first."""
        last = self._query.lastProgress
        return None if last is None else self._extended(last)

    @property
    def recentProgress(self) -> list[dict[str, Any]]:  # noqa: N802 - Spark's name
        """The last batches."""
        return [self._extended(progress) for progress in self._query.recentProgress]

    def repartition(self, partitions: int, adjustment: ResizeMode = "passive") -> None:
        """Go over to another number of partitions, from the next batch on, for spreads `share` and `psp`.

        With `passive` only new rows go there, and old ones stay until they are out of their windows; with
        `aggressive` the old ones are divided anew at once, in the manifest. A start goes by `partitions=`.
        """
        if not self.isActive:
            raise QueryError("the query has ended; start it with partitions= instead")
        self._batches.resize(Resize(partitions, adjustment))

    def replan(self, plan: Join, allowance: Allowance | None = None, reason: str = "as requested") -> None:
        """From the next batch on, go over to another plan, and say why; no result is lost or comes twice.

        In each partition the plan before it answers until the states that the new one needs are there, which
        may take some batches with rows; the allowance is for the new plan. A restart goes on with it.
        """
        if not self.isActive:
            raise QueryError("the query has ended; start it with plan= and a new checkpointLocation instead")
        if not isinstance(plan, Join):
            raise QueryError(f"a plan is made with weir.plan.join; got {plan!r}")
        self._batches.replan(plan, allowance, reason)

    @property
    def budget(self) -> Budget | None:
        """What the query may use; a new one counts from the next batch on, if the query adapts."""
        return self._batches.budget

    @budget.setter
    def budget(self, budget: Budget) -> None:
        self._batches.budget = budget

    def stop(self) -> None:
        """Stop; the batch that runs is repeated at the next start."""
        self._query.stop()
        self._batches.close()

    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # noqa: N802 - Spark's name
        """Wait for the end, or for `timeout` seconds; raises what ended it."""
        return self._query.awaitTermination(timeout)  # type: ignore[arg-type] # seconds may be fractions

    def processAllAvailable(self) -> None:  # noqa: N802 - Spark's name
        """Wait until all that was there is processed; for tests."""
        self._query.processAllAvailable()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._query, name)

    def __repr__(self) -> str:
        return (
            f"<weir query {self._query.name or self._query.id}, {'active' if self.isActive else 'stopped'}>"
        )

    def _extended(self, progress: Any) -> dict[str, Any]:
        extended = dict(progress)
        batch = self._batches.progress.get(extended["batchId"])
        extended["weir"] = batch
        return extended
