"""Run a micro-batch on Spark: decide, build, probe, emit, commit.

Folded, one action does it all and only descriptors come back; lazy, one action builds and the sink reads the
results as a DataFrame, as often as it likes.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from weir.errors import QueryError
from weir.kernel.decision import Decision
from weir.kernel.plan_migration import PhysicalPlans, answering
from weir.partition.resize import Resize
from weir.plan.tree import Join
from weir.query.model import Budget, not_a_budget
from weir.shed.allowance import Allowance
from weir.spark.adaptation import Adaptation
from weir.spark.batch_events import notify
from weir.spark.commit import Commit
from weir.spark.decide import Decider
from weir.spark.emit import Emission, summed
from weir.spark.errors import DamagedStateError
from weir.spark.filesystem import Folder, open_folder
from weir.spark.job import Job
from weir.spark.ledger import Ledger, Manifest
from weir.spark.memory import check_memory
from weir.spark.progress import Progress
from weir.spark.rebalance import placement_of, relocated
from weir.spark.report import TaskReport
from weir.spark.sinks import FoldedSink, FrameSink, Sink
from weir.spark.task import REPORT, Assignment, BuildTask
from weir.spark.trigger import Triggers
from weir.spark.union import placed, routed
from weir.spark.vacuum import SWEEP_EVERY, Vacuum

_LOG = logging.getLogger("weir")


class MicroBatches:
    """What `foreachBatch` calls: every call is one batch, and may be a repeat of an earlier one."""

    def __init__(self, spark: SparkSession, job: Job, sink: Sink) -> None:
        self._spark, self._job, self._sink = spark, job, sink
        self._folder: Folder = open_folder(spark, f"{job.checkpoint}/weir")
        self._ledger = Ledger(self._folder)
        self._garbage = Vacuum(self._folder, self._ledger, job.settings.batches_to_retain)
        self._emission = Emission(self._folder, job, sink)
        self._session: SparkSession | None = None
        self._programs = PhysicalPlans(job.program.query, (job.program,))
        adapt, query = job.settings.adapt, job.program.query
        self._adaptation = None if adapt is None else Adaptation(query, adapt, job.scope, self._folder)
        self._decider = Decider(job, self._ledger, self._programs, self._adaptation)
        self.triggers = Triggers()
        cores, wants_frame = spark.sparkContext.defaultParallelism, isinstance(sink, FrameSink)
        self._account = Commit(job, self._programs, self._adaptation, self.triggers, cores, wants_frame)
        self.progress: dict[int, Progress] = {}

    def resize(self, change: Resize) -> None:
        """Go over to another number of partitions with the next batch that is decided."""
        self._decider.resize(change)

    def replan(self, plan: Join, allowance: Allowance | None, reason: str) -> None:
        """Go over to another plan with the next batch that is decided."""
        self._decider.replan(plan, allowance, reason)

    @property
    def budget(self) -> Budget | None:
        """What the query may use; a new one counts from the next batch on."""
        return self._job.program.query.budget if self._adaptation is None else self._adaptation.budget

    @budget.setter
    def budget(self, budget: Budget) -> None:
        if self._adaptation is None:
            raise QueryError("the budget of a query that does not adapt is fixed; start it with adapt=True")
        if not isinstance(budget, Budget):
            raise not_a_budget(budget)
        check_memory(self._spark, budget)
        self._adaptation.budget = budget

    def close(self) -> None:
        """Leave no analysis behind; called when the last batch is over."""
        if self._adaptation is not None:
            self._adaptation.close()

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Run one micro-batch; what fails names its batch, and the next start repeats it."""
        try:
            self._run(frame, batch)
        except Exception as error:
            where = type(self._sink).__name__
            error.add_note(f"weir: batch {batch} failed ({where}); the next start repeats it")
            raise

    def _run(self, frame: DataFrame, batch: int) -> None:
        started = perf_counter()
        before = self._ledger.manifest_before(batch)
        if before.batch != batch - 1:
            raise DamagedStateError(
                f"{self._folder.uri}/manifests/{batch - 1}.json is missing, on which batch {batch} builds; "
                "restore it, or start anew with another checkpoint"
            )
        first = self._garbage.is_new
        self._garbage.collect(before, batch)
        notify("decide", batch)
        deciding = perf_counter()
        decision, attempt = self._decider.decide(before, batch)
        decided = perf_counter()
        before = self._move(self._towards(before, decision.plan), decision)
        assignment = Assignment(
            self._programs.of(decision.plan),
            decision,
            batch,
            before.watermark,
            before.parts,
            f"{self._folder.uri}/slices",
        )
        notify("build", batch)
        reports = self._build(frame, assignment)
        self._check_times(batch, reports)
        notify("built", batch)
        built = perf_counter()
        # Tasks that lost a race leave hidden files; now and then is soon enough for those.
        sweep = attempt > 1 or first or batch % SWEEP_EVERY == 0
        placement = placement_of(decision)
        told = self._emission.put_out(frame.sparkSession, assignment, placement, reports, sweep)
        notify("emitted", batch)
        emitted = perf_counter()
        counts = None if told is None else summed(told)
        self._decider.effort = max((one.effort for one in (told or {}).values()), default=0)
        answered = _answered(decision, reports)
        after, let_go = self._account.after(before, batch, decision, answered, reports, told)
        joined = perf_counter()
        after = self._account.learned(before, after, answered, reports, told, joined - started, first)
        learned = perf_counter()
        self._ledger.write_manifest(after)
        self._garbage.keep(after)
        notify("committed", batch)
        seconds = {
            "decide": decided - deciding,
            "build": built - started,
            "emit": emitted - built,
            "observe": learned - joined,
            "commit": perf_counter() - emitted,
        }
        self._remember(Progress.of(batch, decision, answered, after, reports, counts, let_go, seconds))
        if self._adaptation is not None:
            self._adaptation.weigh()

    def _towards(self, before: Manifest, plan: Join) -> Manifest:
        """What is left of a manifest when a plan is decided; partitions without new rows are told, too."""
        parts = {number: part.towards(self._programs, plan) for number, part in before.parts.items()}
        return replace(before, parts=parts, plan=plan)

    def _move(self, before: Manifest, decision: Decision) -> Manifest:
        """What the batch starts from: the slices where its decision wants them."""
        old, new = before.placement or self._job.routing.start(), placement_of(decision)
        if (new.spread, new.partitions) != (old.spread, old.partitions):
            _LOG.info("batch %d: %s", before.batch + 1, decision.reason)
        self._decider.spread = new.spread
        return relocated(before, new)

    def _build(self, frame: DataFrame, assignment: Assignment) -> list[TaskReport]:
        session = frame.sparkSession
        for name, value in _SESSION.items() if session is not self._session else ():
            session.conf.set(name, value)
        self._session = session
        placement, sink = placement_of(assignment.decision), self._sink
        results = sink.results if isinstance(sink, FoldedSink) and not placement.is_shared else None
        task = BuildTask(assignment, self._job.slots, results)
        rows = routed(placed(frame, placement), placement.partitions)
        found = rows.mapInArrow(task, REPORT).collect()
        reports = [TaskReport.from_bytes(bytes(row.report)) for row in found]
        return sorted(reports, key=lambda report: report.partition)

    def _check_times(self, batch: int, reports: list[TaskReport]) -> None:
        if self._job.settings.on_null_time == "drop":
            return
        for report in reports:
            for name, count in report.null_time.items():
                if count:
                    raise QueryError(
                        f"{count} rows of stream '{name}' in batch {batch} have no time, "
                        "and on_null_time is 'fail'"
                    )

    def _remember(self, progress: Progress) -> None:
        self.progress[progress.batch] = progress
        for number in [n for n in self.progress if n <= progress.batch - _KEPT_PROGRESS]:
            del self.progress[number]


_KEPT_PROGRESS = 200
# Made on the batch's own session, never on the user's.
_SESSION: Mapping[str, Any] = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(256 << 20),
}


def _answered(decision: Decision, reports: list[TaskReport]) -> Decision | None:
    """What a batch went by, for the plan that answered; None if that was not the same in all partitions."""
    standings = [report.part.standing for report in reports]
    plans = {standing.plan for standing in standings if standing is not None} or {decision.plan}
    return answering(decision, plans.pop()) if len(plans) == 1 else None
