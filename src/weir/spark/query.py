"""A running join: its micro-batches, and an object that follows Spark's StreamingQuery."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from weir.adapt.shedding import AS_REQUESTED
from weir.errors import QueryError
from weir.kernel.physical_plan import compile_plan
from weir.kernel.plan_migration import PhysicalPlans
from weir.options import check_allowance
from weir.partition.resize import Resize, ResizeMode
from weir.plan.tree import Join
from weir.query.model import Budget
from weir.query.pushdown import Pushdown
from weir.runtime.decide import BatchLog, DecidedPlan, Decider, Policy
from weir.runtime.micro_batch import MicroBatches
from weir.shed.allowance import Allowance
from weir.spark.data_errors import name_stream
from weir.spark.engine import SparkEngine
from weir.spark.epoch import Epoch
from weir.spark.errors import TakenOverError
from weir.spark.failure import (
    BatchFailedError,
    BatchInterruptedError,
    Failure,
    find_own_error,
    is_debugging,
    quieten_py4j,
)
from weir.spark.preflight import WorkerCheck, check_memory
from weir.spark.progress import JoinProgress, add_section

# The condition of Spark's error if an entry of its logs is there that it was about to write.
_SPARKS_LOG_TAKEN = "CONCURRENT_STREAM_LOG_UPDATE"


class SparkBatches:
    """What `foreachBatch` calls: every call is one batch, and may be a repeat of an earlier one."""

    def __init__(
        self,
        engine: SparkEngine,
        log: BatchLog,
        policy: Policy,
        start: DecidedPlan,
        on_null_time: str,
        workers: WorkerCheck,
        pushed: Pushdown,
        epoch: Epoch,
    ) -> None:
        plans = PhysicalPlans(policy.query, (compile_plan(policy.query, start.plan),))
        self.engine, self._workers, self._pushed, self._epoch = engine, workers, pushed, epoch
        self.decider = Decider(policy, start, plans, log, engine)
        self._batches = MicroBatches[DataFrame](engine, log, self.decider, plans, on_null_time)
        self.progress = self._batches.progress
        self.failure: Failure | None = None
        self.is_stopping = False
        quieten_py4j()

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Run one micro-batch; an error that ends it is kept."""
        try:
            self._workers.wait()
            for _ in self._batches.run(rows, batch):
                raise AssertionError("on Spark results go to the sink")
        except Exception as error:
            if self.is_stopping:
                raise BatchInterruptedError from None
            self.failure = Failure(self.explain(name_stream(error, self._pushed)), batch)
            # The query raises the original; what is raised here comes back as text inside Java's.
            raise BatchFailedError(str(self.failure)) from (error if is_debugging() else None)

    def explain(self, error: Exception) -> Exception:
        """Return the cause of an error: whatever fails after another driver has taken over fails by that."""
        try:
            self._epoch.check()
        except TakenOverError as cause:
            return cause
        except Exception:
            return error  # the checkpoint cannot be read, which may be why it failed
        if _SPARKS_LOG_TAKEN in str(error):
            uri = self._epoch.folder.uri
            return QueryError(
                f"an earlier driver of the checkpoint {uri} still wrote an entry of Spark's log, so this one "
                "stops; no result is lost: end the earlier driver, and start again"
            )
        return error


class SparkQuery:
    """The running query: all that Spark's has, and a `weir` section in its progress."""

    def __init__(self, spark: SparkSession, query: StreamingQuery, batches: SparkBatches) -> None:
        self._spark, self._query, self._batches = spark, query, batches

    @property
    def id(self) -> str:
        """The id of the query, kept across restarts from its checkpoint."""
        return self._query.id

    @property
    def runId(self) -> str:  # noqa: N802 - Spark's name
        """The id of this start of the query."""
        return self._query.runId

    @property
    def name(self) -> str:
        """The name given by `queryName`, or None."""
        return self._query.name

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        """True until the query has ended."""
        return self._query.isActive

    @property
    def status(self) -> dict[str, Any]:
        """What the query is doing now."""
        return self._query.status

    @property
    def lastProgress(self) -> JoinProgress | None:  # noqa: N802 - Spark's name
        """The progress of the last batch; None before the first."""
        last = self._query.lastProgress
        return None if last is None else self._add_section(last)

    @property
    def recentProgress(self) -> list[JoinProgress]:  # noqa: N802 - Spark's name
        """The progress of the last batches."""
        return [self._add_section(progress) for progress in self._query.recentProgress]

    def explain(self, extended: bool = False) -> None:
        """Print Spark's plan of the last batch's input; the join's own plan is in the progress."""
        self._query.explain(extended)

    def exception(self) -> Exception | None:
        """Return the error that ended the query, as `awaitTermination` raises it; None if there is none."""
        reported = self._query.exception()
        return None if reported is None else self._as_raised(reported)

    def repartition(self, partitions: int, adjustment: ResizeMode = "passive") -> None:
        """Change the number of partitions from the next batch on, for the spreads `share` and `psp`.

        With `passive` only new rows go to the new partitions, and old ones stay until their windows have
        passed; with `aggressive` the manifest distributes stored slices again at once. A restart uses
        `partitions=` instead.
        """
        if not self.isActive:
            raise QueryError("the query has ended; start it with partitions= instead")
        self._batches.engine.resize(Resize(partitions, adjustment), self._batches.decider.placement)

    def replan(self, plan: Join, allowance: Allowance | None = None, reason: str = AS_REQUESTED) -> None:
        """Migrate to another plan from the next batch on; no result is lost or comes twice.

        In each partition the earlier plan is active until the states of the new one are built, which may take
        several batches with rows. The allowance is for the new plan, and progress shows the reason. A restart
        keeps the plan.
        """
        if not self.isActive:
            raise QueryError("the query has ended; start it with plan= and a new checkpointLocation instead")
        check_allowance(allowance)
        self._batches.decider.replan(plan, allowance, reason)

    @property
    def budget(self) -> Budget | None:
        """What the query may use; a new budget holds from the next batch on, if the query adapts."""
        return self._batches.decider.budget

    @budget.setter
    def budget(self, budget: Budget) -> None:
        if isinstance(budget, Budget):
            check_memory(self._spark, budget)
        self._batches.decider.budget = budget

    def stop(self) -> None:
        """Stop; the next start repeats a batch that was interrupted."""
        self._batches.is_stopping = True
        self._query.stop()
        self._batches.decider.close()

    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # noqa: N802 - Spark's name
        """Wait for the end, or for `timeout` seconds; raise the error that ended the query."""
        with self._raise_failure():
            return self._query.awaitTermination(timeout)  # type: ignore[arg-type] # may be fractions

    def processAllAvailable(self) -> None:  # noqa: N802 - Spark's name
        """Wait until all input that was available has been processed; for tests."""
        with self._raise_failure():
            self._query.processAllAvailable()

    def __repr__(self) -> str:
        state = "active" if self.isActive else "stopped"
        return f"<weir query {self._query.name or self._query.id}, {state}>"

    @contextmanager
    def _raise_failure(self) -> Iterator[None]:
        try:
            yield
        except StreamingQueryException as reported:
            raised = self._as_raised(reported)
            if raised is reported:
                raise
        else:
            return
        raise raised

    def _as_raised(self, reported: StreamingQueryException) -> Exception:
        """The error to raise in place of the one that Spark reports, if Spark did not fail by itself."""
        if self._batches.failure is not None:
            return self._batches.failure.as_raised(reported)
        return find_own_error(self._batches.explain(reported)) or reported

    def _add_section(self, progress: StreamingQueryProgress) -> JoinProgress:
        return add_section(progress, self._batches.progress.get(progress.batchId))
