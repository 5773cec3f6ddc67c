"""The engine on Spark: partitions are tasks, slices are files, results go to a sink.

folded sink        one Spark action stores, probes and writes results; only reports come back
DataFrame sink     one action stores; the sink reads the results lazily, as often as it likes
shared spreads     one action stores; a second one probes, since it needs the slices of all partitions
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
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from weir.adapt.skew import SECOND_JOB_SECONDS, estimate_work, is_uneven
from weir.codec import from_json
from weir.errors import QueryError
from weir.kernel.decision import Decision
from weir.kernel.output import result_schema
from weir.options import check_partitions
from weir.partition.placement import SHARED_SPREADS, Placement
from weir.partition.resize import Resize, ResizeMode
from weir.plan.tree import Join
from weir.runtime.commit import FinishedBatch
from weir.runtime.decide import Policy
from weir.runtime.manifest import Manifest
from weir.runtime.micro_batch import Batch, Engine
from weir.runtime.partition_batch import Assignment, TaskReport
from weir.spark.count_files import CountFiles
from weir.spark.durability import Durability
from weir.spark.epoch import Epoch
from weir.spark.filesystem import Folder
from weir.spark.hop_shuffle import SHUFFLED_COLUMNS, HopStage
from weir.spark.job_description import VERSION
from weir.spark.quarantine_files import QuarantineFolder
from weir.spark.rebalance import choose_placement, relocate_slices
from weir.spark.repartition import Repartitioning
from weir.spark.routing import Routing
from weir.spark.sink_batch import SinkBatch
from weir.spark.sinks import FrameSink, Sink
from weir.spark.slice_files import FileStore
from weir.spark.state_names import BatchAndEpoch
from weir.spark.steps import Steps, apply_steps
from weir.spark.task import BuildTask, ProbeTask, ResultFiles, UnionSlots
from weir.spark.task_reports import REPORT, collect_reports
from weir.spark.union import assign_partitions, shuffle_by_partition
from weir.spark.vacuum import CLEAN_UP_EVERY
from weir.stats.batch_counts import BatchCounts

_LOG = logging.getLogger("weir")
# Set on the session of the batches, never on the user's.
_SESSION: Mapping[str, Any] = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(64 << 20),
}


class SparkEngine(Engine[DataFrame]):
    """Runs the batches of one query."""

    parks = True

    def __init__(
        self,
        spark: SparkSession,
        policy: Policy,
        routing: Routing,
        slots: UnionSlots,
        epoch: Epoch,
        durability: Durability,
        sink: Sink,
        steps: Steps,
        filled: tuple[str, ...] = (),
    ) -> None:
        self._query, self._routing, self._slots, self._steps = policy.query, routing, slots, steps
        self._epoch, self._durability = epoch, durability
        self._store = FileStore(f"{epoch.folder.uri}/slices", filled, epoch.number)
        self._quarantine = QuarantineFolder(epoch.folder)
        self._schema = from_arrow_schema(result_schema(policy.query), prefer_timestamp_ntz=True)
        self._session: SparkSession | None = None
        self._repartitioning = Repartitioning(spark, policy.query, routing, self._store)
        self._resizes = deque[Resize](maxlen=1)
        self._overhead = _TriggerOverhead()
        self.sink = sink
        self.cores = spark.sparkContext.defaultParallelism
        self.interval = policy.scope.interval

    def start_with(self, partitions: int) -> None:
        """Use so many partitions from the first batch that is decided on, whatever the checkpoint has."""
        self._resizes.append(Resize(partitions, "passive"))

    def watch(self, query: StreamingQuery) -> None:
        """Read the overhead of triggers from the progress of the started query."""
        self._overhead.query = query

    def clock(self) -> float:
        """Wall seconds: the driver waits while tasks run."""
        return perf_counter()

    def resize(self, resize: Resize, placement: Placement | None) -> None:
        """Change the number of partitions with the next batch that is decided."""
        check_partitions(resize.nodes)
        if resize.how not in get_args(ResizeMode):
            raise QueryError(f"adjustment is 'passive' or 'aggressive'; got {resize.how!r}")
        spread = self._spread_of(placement)
        if spread not in SHARED_SPREADS:
            raise QueryError(
                f"a running query cannot change its partitions while spread='{spread}' says where rows lie; "
                f"stop it and start it with partitions={resize.nodes}"
            )
        self._resizes.append(resize)

    def place(self, before: Manifest, plan: Join) -> tuple[Placement, str]:
        """Choose where the rows of the next batch go, and say why that changes."""
        # The joins of a tree find their partners in one partition, so their rows cannot be shared.
        routing = self._routing if plan.is_mjoin else replace(self._routing, fallback=None)
        resize = self._resizes.pop() if self._resizes else None
        return choose_placement(before, self._query, routing, resize)

    def check_plan(self, plan: Join, placement: Placement | None) -> None:
        """Refuse a plan whose rows would not find their partners."""
        spread = self._spread_of(placement)
        if spread in SHARED_SPREADS and not plan.is_mjoin:
            raise QueryError(
                f"a running query with spread='{spread}' cannot change to the tree {plan}, since its rows "
                "find partners in other partitions; choose other probing orders of the mjoin"
            )

    def relocate(self, before: Manifest, decision: Decision) -> Manifest:
        """Bring stored rows to the partitions that the decision wants, if it says so."""
        old, new = before.placement or self._routing.first_placement(), _placement_of(decision)
        if (new.spread, new.partitions) != (old.spread, old.partitions):
            _LOG.info("batch %d: %s", before.batch + 1, decision.reason)
        if new.relocate and not new.is_shared:
            return self._repartitioning.run(before, decision, new)
        return relocate_slices(before, new)

    def build(self, rows: DataFrame, batch: Batch) -> list[TaskReport]:
        """Store the batch's rows, partition by partition; probe in the same tasks if the sink is folded."""
        self._use_session(rows.sparkSession)
        placement = _placement_of(batch.decision)
        # A probe of other partitions' slices has to wait until all are written.
        results = None if placement.is_shared else self._result_files
        task = BuildTask(batch.assign(self._store), self._slots, results, self._quarantine.uri)
        tasks = 1 if batch.decision.one_task else placement.partitions
        shuffled = shuffle_by_partition(assign_partitions(rows, placement), tasks)
        reports = collect_reports(shuffled.mapInArrow(task, REPORT))
        return sorted((from_json(TaskReport, r) for r in reports), key=lambda report: report.partition)

    def emit(
        self, batch: Batch, tasks: Sequence[TaskReport]
    ) -> Generator[pa.Table, None, Sequence[TaskReport] | None]:
        """Hand the results to the sink; yield none."""
        yield from ()  # a generator only to be an `Engine`: the sink takes all results
        assert self._session is not None, "a batch is built before its results are emitted"
        sink, results = self.sink, self._result_files
        # Failed attempts and speculative tasks leave hidden files behind: look for them now and then.
        cleans_up = batch.attempt > 1 or batch.is_first or batch.number % CLEAN_UP_EVERY == 0
        durability, number = self._durability, batch.number
        sink_batch = SinkBatch(
            number, self._epoch.number, cleans_up, self._before_publish, durability.sync_renames
        )
        if not isinstance(sink, FrameSink) and not _placement_of(batch.decision).is_shared:
            sink.publish(sink_batch, [name for task in tasks for name in task.files])
            self._quarantine.publish(batch.number, [n for task in tasks for n in task.quarantine], cleans_up)
            return tasks
        assignment, quarantine = batch.assign(self._store), self._quarantine.uri
        probe_job = _ProbeJob(self._session, self._epoch, assignment, tasks, quarantine)
        if isinstance(sink, FrameSink):
            frame = probe_job.run(None, self._schema)
            sink.emit(apply_steps(self._steps, frame), sink_batch)
        else:
            files = [name for names in collect_reports(probe_job.run(results, REPORT)) for name in names]
            sink.publish(sink_batch, files)
        reports = probe_job.read_reports()
        self._quarantine.publish(batch.number, probe_job.quarantined_files, cleans_up)
        return reports

    def has_published(self, batch: int) -> bool:
        """True if results of an earlier attempt can be seen, as far as that is known; no more will be."""
        return self.sink.has_published(batch, self._epoch.number)

    def is_skewed(self, batch: FinishedBatch) -> bool:
        """True if by key one partition had so much to do that sharing the work would have been cheaper."""
        decision, routing = batch.active_decision, self._routing
        if decision is None or not batch.is_complete or routing.fallback is None:
            return False
        if _placement_of(decision).is_shared or not decision.plan.is_mjoin:
            return False
        seconds = [estimate_work(sum(task.counts.rows_in.values()), task.counts.hops) for task in batch.tasks]
        # A sink that takes a DataFrame costs a second job anyway.
        extra = 0.0 if isinstance(self.sink, FrameSink) else SECOND_JOB_SECONDS
        return is_uneven(seconds, _placement_of(decision).partitions, self.cores, extra)

    def whole_seconds(self, batch: int, seconds: float) -> float:
        """The seconds of a batch from its trigger to its end."""
        return self._overhead.add(batch, seconds)

    def _spread_of(self, placement: Placement | None) -> str:
        return self._routing.name if placement is None else placement.spread

    @property
    def _result_files(self) -> ResultFiles | None:
        """Where workers write results; None if the sink takes a DataFrame."""
        if isinstance(self.sink, FrameSink):
            return None
        return replace(self.sink.results, epoch=self._epoch.number, spark_types=self._schema.json())

    def _before_publish(self, output: Folder, names: Sequence[str]) -> None:
        self._durability.sync_hidden(output, names)
        self._epoch.check()

    def _use_session(self, session: SparkSession) -> None:
        # Spark gives all batches of a run one session of their own, each time in a new object.
        for name, value in _SESSION.items() if self._session is None else ():
            session.conf.set(name, value)
        self._session = session


def _placement_of(decision: Decision) -> Placement:
    assert decision.placement is not None, "on Spark every decision places its rows"
    return decision.placement


class _ProbeJob:
    """The probes of one batch whose slices are written; `tasks` are the reports of those who wrote them.

    Tasks write what they count into files, since a sink may read results twice, in part or not at all.
    """

    def __init__(
        self,
        spark: SparkSession,
        epoch: Epoch,
        assignment: Assignment,
        tasks: Sequence[TaskReport],
        quarantine: str,
    ) -> None:
        self._spark, self._folder, self._tasks, self._quarantine = spark, epoch.folder, tasks, quarantine
        self.quarantined_files = [name for task in tasks for name in task.quarantine]
        written = BatchAndEpoch(assignment.batch, epoch.number)
        self._counts = CountFiles(epoch.folder.uri, epoch.id, written, VERSION)
        self._placement = _placement_of(assignment.decision)
        parts = {**assignment.parts, **{task.partition: task.part for task in tasks}}
        self._assignment = replace(assignment, parts=parts)
        self._shuffles = len(assignment.physical.query.names) - 1 if self._placement.spread == "psp" else 0

    def run(self, results: ResultFiles | None, schema: StructType | str) -> DataFrame:
        """Return a DataFrame of the results, or of reports that name the files which tasks wrote."""
        if not self._tasks:
            return self._spark.createDataFrame([], schema)
        self._folder.write("stats/.keep", b"")
        counts, partitions = self._counts, self._placement.partitions
        # One row for each partition that got rows of the batch, divided over as many tasks as partitions.
        numbers = self._spark.range(0, partitions, 1, partitions)
        numbers = numbers.filter(numbers.id.isin([task.partition for task in self._tasks]))
        if self._placement.spread != "psp":
            task = ProbeTask(self._assignment, counts, results, self._quarantine)
            return numbers.mapInArrow(task, schema)
        # Partitions that were given up are probed until their last slice is dead.
        partitions = max(partitions, 1 + max(self._assignment.parts))
        last, partials = self._shuffles, numbers
        for number in range(last):
            stage = HopStage(self._assignment, counts, number, last, None, self._quarantine)
            partials = shuffle_by_partition(partials.mapInArrow(stage, SHUFFLED_COLUMNS), partitions)
        stage = HopStage(self._assignment, counts, last, last, results, self._quarantine)
        return partials.mapInArrow(stage, schema)

    def read_reports(self) -> list[TaskReport] | None:
        """Return the reports with all probes counted; None if not all results were read."""
        counts = self._read_counts()
        if counts is None:
            return None
        tasks, reports = {task.partition: task for task in self._tasks}, []
        for number, probed in counts.items():
            # Partitions that got no rows were probed by those that did.
            idle = TaskReport(number, self._assignment.part(number), BatchCounts(), {}, {})
            task = tasks.get(number, idle)
            seconds = {**task.seconds, "probe": task.seconds.get("probe", 0.0) + probed.hop_seconds}
            reports.append(replace(task, counts=task.counts + probed, seconds=seconds))
        return reports

    def _read_counts(self) -> dict[int, BatchCounts] | None:
        """Read and delete what each partition counted in all stages; None if one did not run to its end."""
        is_complete, names = True, []
        totals: dict[int, BatchCounts] = {}
        partitions = [task.partition for task in self._tasks]
        for stage in range(self._shuffles + 1):
            sent_to: set[int] = set()
            for partition in partitions:
                names.append(self._counts.name(partition, stage))
                stage_counts = self._counts.parse(self._folder.read(names[-1]), partition, stage)
                if stage_counts is None:
                    is_complete = False
                    continue
                totals[partition] = totals.get(partition, BatchCounts()) + stage_counts.counts
                self.quarantined_files += stage_counts.quarantine
                sent_to.update(stage_counts.sent_to)
            partitions = sorted(sent_to)
        for name in names:
            self._folder.delete(name)
        return totals if is_complete else None


class _TriggerOverhead:
    """Estimates what Spark adds to a batch: planning before weir is called, and its commit afterwards."""

    def __init__(self) -> None:
        self.query: StreamingQuery | None = None
        self._last_batch: tuple[int, float] | None = None
        self._seconds = 0.0
        self._is_first = True

    def add(self, batch: int, seconds: float) -> float:
        """Add the overhead of the batch before to the seconds of a batch."""
        last: Any = None if self.query is None else self.query._jsq.lastProgress()
        if last is not None and self._last_batch is not None and last.batchId() == self._last_batch[0]:
            self._seconds = max(0.0, last.durationMs().get("triggerExecution") / 1000 - self._last_batch[1])
        # Skip the first batch after a start, in which Spark initialises much that is not repeated.
        self._last_batch, self._is_first = None if self._is_first else (batch, seconds), False
        return seconds + self._seconds
