"""The way of a micro-batch on Spark: decide, build, probe, emit, commit (DESIGN 5).

Folded, one action does it all and only descriptors come back; lazy, one action builds and the sink reads the
results as a DataFrame, as often as it likes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from time import perf_counter
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from weir.adapt import Matching, Recall
from weir.errors import QueryError
from weir.kernel import Decision, Program, is_dead, result_schema, watermark_after
from weir.kernel.layout import LINE
from weir.order import LEARNING, DriverOrder, Waiting, order
from weir.spark.copies import CopyTask
from weir.spark.errors import DamagedStateError
from weir.spark.folder import Folder, open_folder
from weir.spark.manifest import Ledger, Manifest
from weir.spark.phases import reached
from weir.spark.progress import Progress
from weir.spark.report import Counts, Part, Report
from weir.spark.ring import moves, ring, ring_counts
from weir.spark.settings import Settings
from weir.spark.sinks import Sink
from weir.spark.spread import Routing
from weir.spark.task import REPORT, Assignment, BuildTask, ProbeTask, ResultFiles
from weir.spark.union import Slots, routed


@dataclass(frozen=True)
class Job:
    """A query as it runs: fixed from start to stop."""

    program: Program
    slots: Slots
    driver_order: DriverOrder
    routing: Routing
    checkpoint: str
    settings: Settings


class MicroBatches:
    """What `foreachBatch` calls: every call is one batch, and may be a repeat of an earlier one."""

    def __init__(self, spark: SparkSession, job: Job, sink: Sink) -> None:
        self._job, self._sink = job, sink
        self._folder: Folder = open_folder(spark, f"{job.checkpoint}/weir")
        self._ledger = Ledger(self._folder)
        self._kept: dict[int, frozenset[str]] = {}
        self._session: SparkSession | None = None
        self.progress: dict[int, Progress] = {}

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
        first = not self._kept
        self._collect_garbage(before, batch)
        reached("decide", batch)
        decision, attempt = self._decide(before, batch)
        assignment = Assignment(
            self._job.program,
            decision,
            batch,
            before.watermark,
            before.parts,
            f"{self._folder.uri}/slices",
        )
        reached("build", batch)
        reports = self._build(frame, assignment)
        self._check_times(batch, reports)
        reached("built", batch)
        built = perf_counter()
        # Tasks that lost a race leave hidden files; now and then is soon enough for those.
        sweep = attempt > 1 or first or batch % _SWEEP_EVERY == 0
        counts = self._emit(frame.sparkSession, assignment, reports, sweep)
        reached("emitted", batch)
        emitted = perf_counter()
        after = self._after(before, batch, decision, reports, counts)
        self._ledger.write_manifest(after)
        self._kept[batch] = after.files
        reached("committed", batch)
        seconds = {"build": built - started, "emit": emitted - built, "commit": perf_counter() - emitted}
        once = after.rows(self._job.routing.homes)
        self._remember(Progress.of(batch, decision, after, once, reports, counts, seconds))

    def _decide(self, before: Manifest, batch: int) -> tuple[Decision, int]:
        """What was decided for this batch before a failure, or now; and the how-manieth attempt this is."""
        known = self._ledger.decision(batch)
        if known is not None:
            decision, attempt = known
            if attempt == _ATTEMPTS_AS_DECIDED:
                decision = replace(
                    decision, candidates=_FEW_CANDIDATES, reason=f"smaller after {attempt} failed attempts"
                )
            self._ledger.write_decision(batch, decision, attempt + 1)
            return decision, attempt + 1
        clock = max(before.newest.values(), default=None)
        # Pairs were counted over all partitions, but unless slices are shared they are made within one.
        seen, within = before.matching, 1 if self._job.routing.is_shared else self._job.routing.partitions
        decision = Decision(
            plan=self._job.program.plan,
            driver_order=self._driver_order(before),
            clock=clock,
            idle=self._idle(before, clock),
            allowance=self._job.settings.allowance,
            selectivities={hop: share * within for hop, share in seen.selectivities.items()},
            gains=seen.gains,
            reason=self._job.settings.reason,
        )
        self._ledger.write_decision(batch, decision, 1)
        return decision, 1

    def _driver_order(self, before: Manifest) -> DriverOrder:
        """Where partitions look at each other's slices, the order is one for all, chosen before the batch."""
        wanted = self._job.driver_order
        if not self._job.routing.is_shared or not isinstance(wanted, str):
            return wanted
        states = before.rows(self._job.routing.homes)
        seen = before.matching
        plan = self._job.program.plan
        # What will come is taken to be like what is there.
        return order(wanted, Waiting(plan, states, states, seen.selectivities, seen.gains))

    def _idle(self, before: Manifest, clock: int | None) -> tuple[str, ...]:
        """The streams whose newest row is further behind the clock than `idle` allows."""
        limit = self._job.settings.idle
        if limit is None or clock is None:
            return ()
        names = self._job.program.query.names
        return tuple(name for name in names if before.newest.get(name, clock - limit - 1) < clock - limit)

    def _build(self, frame: DataFrame, assignment: Assignment) -> list[Report]:
        session = frame.sparkSession
        for name, value in _SESSION.items() if session is not self._session else ():
            session.conf.set(name, value)
        self._session = session
        results = None if self._job.routing.is_shared else self._sink.results
        task = BuildTask(assignment, self._job.slots, results)
        found = routed(self._copied(frame), self._job.routing.partitions).mapInArrow(task, REPORT).collect()
        reports = [Report.from_bytes(bytes(row.report)) for row in found]
        return sorted(reports, key=lambda report: report.partition)

    def _copied(self, frame: DataFrame) -> DataFrame:
        """The rows of a batch, as often as they are stored where they are stored by several keys."""
        job = self._job
        if job.routing.homes is None:
            return frame
        return frame.mapInArrow(CopyTask(job.program, job.routing.homes, job.slots), frame.schema)

    def _check_times(self, batch: int, reports: list[Report]) -> None:
        if self._job.settings.on_null_time == "drop":
            return
        for report in reports:
            for name, count in report.null_time.items():
                if count:
                    raise QueryError(
                        f"{count} rows of stream '{name}' in batch {batch} have no time, "
                        "and on_null_time is 'fail'"
                    )

    def _emit(
        self, spark: SparkSession, assignment: Assignment, reports: list[Report], repeated: bool
    ) -> Counts | None:
        """Hand the results to the sink; None if the counts are not all known."""
        reached("emit", assignment.batch)
        folded = self._sink.results
        if folded is not None and not self._job.routing.is_shared:
            files = [name for report in reports for name in report.files]
            self._sink.publish(assignment.batch, files, repeated)
            return reduce(Counts.__add__, (report.counts for report in reports), Counts())
        if folded is None:
            schema = from_arrow_schema(result_schema(self._job.program.query), prefer_timestamp_ntz=True)
            results = self._probed(spark, assignment, reports, None, schema)
            found = spark.createDataFrame([], schema) if results is None else results
            self._sink.emit(found, assignment.batch, repeated)
        else:
            written = self._probed(spark, assignment, reports, folded, REPORT)
            told = [] if written is None else written.collect()
            files = [name for row in told for name in json.loads(bytes(row.report))]
            self._sink.publish(assignment.batch, files, repeated)
        return self._probe_counts(assignment.batch, reports)

    def _probed(
        self,
        spark: SparkSession,
        assignment: Assignment,
        reports: list[Report],
        results: ResultFiles | None,
        schema: StructType | str,
    ) -> DataFrame | None:
        """What built slices give, when it is read: results, or the names of files; None without new rows."""
        if not reports:
            return None
        self._folder.write("stats/.keep", b"")
        routing, stats = self._job.routing, f"{self._folder.uri}/stats"
        numbers, built = self._touched(spark, reports), _built(assignment, reports, routing.is_shared)
        if routing.is_ring:
            return ring(numbers, built, routing.partitions, stats, results, schema, routing.homes)
        return numbers.mapInArrow(ProbeTask(built, stats, routing.is_shared, results), schema)

    def _touched(self, spark: SparkSession, reports: list[Report]) -> DataFrame:
        """The numbers of the partitions that got rows, each in a task of its own."""
        routing = self._job.routing
        numbers = spark.range(0, routing.numbers, 1, routing.partitions)
        return numbers.filter(numbers.id.isin([report.partition for report in reports]))

    def _probe_counts(self, batch: int, reports: list[Report]) -> Counts | None:
        if self._job.routing.is_ring:
            last = moves(self._job.program, self._job.routing.homes)
            counts = ring_counts(self._folder, batch, last, [report.partition for report in reports])
            return None if counts is None else reduce(Counts.__add__, (r.counts for r in reports), counts)
        names = [f"stats/{batch}-{report.partition}.json" for report in reports]
        found = [self._folder.read(name) for name in names]
        for name in names:
            self._folder.delete(name)
        read = [Counts.from_json(json.loads(data)) for data in found if data is not None]
        if len(read) < len(reports):
            return None
        return reduce(Counts.__add__, [*read, *(report.counts for report in reports)], Counts())

    def _after(
        self,
        before: Manifest,
        batch: int,
        decision: Decision,
        reports: list[Report],
        counts: Counts | None,
    ) -> Manifest:
        newest = dict(before.newest)
        for report in reports:
            for name, time in report.newest.items():
                newest[name] = max(time, newest.get(name, time))
        watermark = watermark_after(self._job.program, before.watermark, newest, decision.idle)
        parts = {**before.parts, **{report.partition: report.part for report in reports}}
        alive = {number: _living(part, watermark) for number, part in parts.items()}
        recall = _recall(before.recall, decision, counts)
        states = before.rows(self._job.routing.homes)
        matching = _matching(before, states, decision, reports, counts)
        return Manifest(batch, watermark, newest, alive, recall, matching)

    def _collect_garbage(self, before: Manifest, batch: int) -> None:
        """Forget what no manifest of the last few batches names; called when a later batch has begun."""
        keep_from = before.batch - self._job.settings.batches_to_retain + 1
        if not self._kept:
            self._kept[before.batch] = before.files
            named = self._named_since(keep_from, before)
            for name in self._folder.names("slices"):
                if name not in named:
                    self._folder.delete(f"slices/{name}")
            self._ledger.forget_unfinished()
        old = [number for number in self._kept if number < keep_from]
        gone = frozenset().union(*(self._kept.pop(number) for number in old))
        for name in gone - frozenset().union(*self._kept.values()):
            self._folder.delete(f"slices/{name}")
        if old or batch % _SWEEP_EVERY == 0:
            self._ledger.forget_before(keep_from)

    def _named_since(self, first: int, newest: Manifest) -> frozenset[str]:
        """The files that the retained manifests name, after a restart; their numbers are kept with them."""
        manifest = newest
        while manifest.batch >= max(first, 0):
            self._kept[manifest.batch] = manifest.files
            manifest = self._ledger.manifest_before(manifest.batch)
        return frozenset().union(*self._kept.values())

    def _remember(self, progress: Progress) -> None:
        self.progress[progress.batch] = progress
        for number in [n for n in self.progress if n <= progress.batch - _KEPT_PROGRESS]:
            del self.progress[number]


_KEPT_PROGRESS = 200
# A batch that failed twice is tried with less in flight, so that it does not poison the query for ever.
_ATTEMPTS_AS_DECIDED = 2
_SWEEP_EVERY = 50
_FEW_CANDIDATES = 1 << 14
# Made on the batch's own session, never on the user's.
_SESSION: Mapping[str, Any] = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(256 << 20),
}


def _built(assignment: Assignment, reports: list[Report], shared: bool) -> Assignment:
    """The assignment with the slices that the batch has built, and where they are shared all others too."""
    parts = {report.partition: report.part for report in reports}
    return replace(assignment, parts={**assignment.parts, **parts} if shared else parts)


def _recall(before: Recall, decision: Decision, counts: Counts | None) -> Recall:
    """What is known of the recall after a batch; one that was not read to its end tells nothing."""
    if counts is None:
        return before
    return before.after(decision.plan, counts.per_hop(decision.plan), decision.allowance)


def _matching(
    before: Manifest,
    states: Mapping[str, int],
    decision: Decision,
    reports: list[Report],
    counts: Counts | None,
) -> Matching:
    """What a policy that learns knows after a batch; one that was not read to its end tells nothing."""
    if counts is None or decision.driver_order not in LEARNING:
        return before.matching
    rows_in = Counter[str]()
    for report in reports:
        rows_in.update(report.rows_in)
    return before.matching.after(counts.per_hop(decision.plan), states, rows_in, counts.results)


def _living(part: Part, watermark: int | None) -> Part:
    live = tuple(
        entry
        for entry in part.slices
        if not is_dead(entry.deadline, watermark) and not entry.node.endswith(LINE)
    )
    return replace(part, slices=live)
