"""The engine on Spark: partitions are tasks, slices are files, results go to a sink.

Folded, one action builds and probes, and only descriptors come back; lazy, one action builds and the sink
reads the results as a DataFrame, as often as it likes.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, get_args

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from weir.adapt.skew import SECOND_JOB_SECONDS, estimate_work, is_uneven
from weir.errors import QueryError
from weir.kernel.decision import Decision
from weir.options import check_partitions
from weir.partition.placement import SHARED_SPREADS, Placement
from weir.partition.resize import Resize, ResizeMode
from weir.plan.tree import Join
from weir.runtime.commit import FinishedBatch
from weir.runtime.manifest import Manifest
from weir.runtime.micro_batch import Batch
from weir.runtime.partition_batch import Assignment, TaskReport
from weir.spark.emit import Emission
from weir.spark.filesystem import Folder
from weir.spark.job import Job
from weir.spark.rebalance import placement_after, placement_of, relocated
from weir.spark.routing import check_plan, is_mjoin
from weir.spark.sinks import FrameSink, Sink
from weir.spark.slice_files import FileStore
from weir.spark.task import REPORT, BuildTask, read_report
from weir.spark.trigger import Triggers
from weir.spark.union import placed, routed

_LOG = logging.getLogger("weir")
# Made on the batch's own session, never on the user's.
_SESSION: Mapping[str, Any] = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(256 << 20),
}


class SparkEngine:
    """Runs the batches of one query; `triggers` tells how long Spark's own part of a batch takes."""

    def __init__(self, spark: SparkSession, job: Job, sink: Sink, folder: Folder) -> None:
        self._job, self._sink = job, sink
        self._store = FileStore(f"{folder.uri}/slices")
        self._emission = Emission(folder, job, sink)
        self._session: SparkSession | None = None
        # A start goes by what the join says, whatever the number of partitions was before it.
        self._resizes = deque([Resize(job.routing.partitions, "passive")])
        self.triggers = Triggers()
        self.cores = spark.sparkContext.defaultParallelism
        self.interval = job.scope.interval

    def clock(self) -> float:
        """Wall seconds: the driver waits while tasks run."""
        return perf_counter()

    def resize(self, change: Resize, placement: Placement | None) -> None:
        """Go over to another number of partitions with the next batch that is decided."""
        check_partitions(change.nodes)
        if change.how not in get_args(ResizeMode):
            raise QueryError(f"adjustment is 'passive' or 'aggressive'; got {change.how!r}")
        spread = self._job.routing.name if placement is None else placement.spread
        if spread not in SHARED_SPREADS:
            raise QueryError(
                f"the number of partitions cannot change while spread='{spread}' says where rows lie; "
                "start the join with spread='share' or 'psp' and a new checkpointLocation"
            )
        self._resizes.append(change)

    def place(self, before: Manifest, plan: Join) -> tuple[Placement, str]:
        """Where the rows of the next batch go, by what was asked and how even the work was."""
        # A tree finds its partners in one partition.
        routing = self._job.routing if is_mjoin(plan) else replace(self._job.routing, instead=None)
        resize = None
        while self._resizes:
            resize = self._resizes.popleft()
        return placement_after(before, self._job.physical.query, routing, resize)

    def check_plan(self, plan: Join, placement: Placement | None) -> None:
        """Refuse a plan whose rows would not find their partners."""
        check_plan(plan, self._job.routing.name if placement is None else placement.spread)

    def relocate(self, before: Manifest, decision: Decision) -> Manifest:
        """Give slices to other partitions, in the manifest only, if the decision says so."""
        old, new = before.placement or self._job.routing.start(), placement_of(decision)
        if (new.spread, new.partitions) != (old.spread, old.partitions):
            _LOG.info("batch %d: %s", before.batch + 1, decision.reason)
        return relocated(before, new)

    def build(self, rows: DataFrame, batch: Batch) -> list[TaskReport]:
        """Store the batch's rows, one task a partition; if the sink is folded, probe in the same tasks."""
        self._use(rows.sparkSession)
        placement = placement_of(batch.decision)
        # Who probes the slices of other partitions must wait until they are all there.
        results = None if placement.is_shared else self._emission.result_files
        task = BuildTask(self._assign(batch), self._job.slots, results)
        reports = routed(placed(rows, placement), placement.partitions).mapInArrow(task, REPORT).collect()
        return sorted((read_report(bytes(row.report)) for row in reports), key=lambda task: task.partition)

    def emit(
        self, batch: Batch, tasks: Sequence[TaskReport]
    ) -> Generator[pa.Table, None, Sequence[TaskReport] | None]:
        """Hand the results to the sink; none of them come through here."""
        yield from ()
        assert self._session is not None, "a batch is built before its results are emitted"
        return self._emission.emit(self._session, self._assign(batch), tasks, batch)

    def is_skewed(self, batch: FinishedBatch) -> bool:
        """True if by key one partition had so much to do that sharing it all would have been cheaper."""
        decision, routing = batch.answered, self._job.routing
        if decision is None or not batch.is_complete or routing.instead is None:
            return False
        if placement_of(decision).is_shared or not is_mjoin(decision.plan):
            return False
        seconds = [estimate_work(sum(task.counts.rows_in.values()), task.counts.hops) for task in batch.tasks]
        # A sink that wants a DataFrame takes a second job anyway.
        extra = 0.0 if isinstance(self._sink, FrameSink) else SECOND_JOB_SECONDS
        return is_uneven(seconds, routing.partitions, self.cores, extra)

    def whole_seconds(self, batch: int, seconds: float) -> float:
        """The seconds from the trigger to the end."""
        return self.triggers.add_overhead(batch, seconds)

    def _assign(self, batch: Batch) -> Assignment:
        before = batch.before
        return Assignment(
            batch.plan, batch.decision, batch.number, before.watermark, before.parts, self._store
        )

    def _use(self, session: SparkSession) -> None:
        for name, value in _SESSION.items() if session is not self._session else ():
            session.conf.set(name, value)
        self._session = session
