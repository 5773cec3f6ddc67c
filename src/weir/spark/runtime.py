"""The way of a micro-batch on Spark: decide, build, probe, emit, commit (DESIGN 5).

Folded, one action does it all and only descriptors come back; lazy, one action builds and the sink reads the
results as a DataFrame, as often as it likes.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from time import perf_counter
from typing import Any, get_args

from pyspark.sql import DataFrame, SparkSession

from weir.adapt import SECOND_JOB, Held, Recall, Verdict, is_uneven, missing, work
from weir.errors import QueryError
from weir.kernel import (
    Decision,
    Programs,
    Standing,
    answering,
    effort_allowed,
    is_dead,
    watermark_after,
)
from weir.kernel.layout import LINE
from weir.order import LEARNING, DriverOrder, Waiting, order
from weir.plan import Join
from weir.query import Budget
from weir.shed import Allowance
from weir.spark.adaptation import Adaptation
from weir.spark.admission import held, within
from weir.spark.copies import CopyTask
from weir.spark.emission import Emission, Told
from weir.spark.errors import DamagedStateError
from weir.spark.folder import Folder, open_folder
from weir.spark.garbage import SWEEP_EVERY, Garbage
from weir.spark.job import Job
from weir.spark.manifest import Ledger, Manifest
from weir.spark.observe import Run, observed
from weir.spark.phases import reached
from weir.spark.placing import placement_after, relocated
from weir.spark.progress import Progress
from weir.spark.report import Counts, Part, Report
from weir.spark.sinks import Sink
from weir.spark.spread import check_count, check_plan, is_mjoin
from weir.spark.task import REPORT, Assignment, BuildTask
from weir.spark.trigger import Triggers
from weir.spark.union import placed, routed
from weir.spread import SHARED, How, Placement, Resize

_LOG = logging.getLogger("weir")


@dataclass(frozen=True)
class Course:
    """The plan to go by from the next batch on, with what is allowed for it and for those that answer yet."""

    plan: Join
    allowance: Allowance | None
    reason: str
    meanwhile: Allowance | None = None


class MicroBatches:
    """What `foreachBatch` calls: every call is one batch, and may be a repeat of an earlier one."""

    def __init__(self, spark: SparkSession, job: Job, sink: Sink) -> None:
        self._job, self._sink = job, sink
        self._folder: Folder = open_folder(spark, f"{job.checkpoint}/weir")
        self._ledger = Ledger(self._folder)
        self._garbage = Garbage(self._folder, self._ledger, job.settings.batches_to_retain)
        self._emission = Emission(self._folder, job, sink)
        self._session: SparkSession | None = None
        self._cores = spark.sparkContext.defaultParallelism
        # A start goes by what the join says, whatever the number of partitions was before it.
        self._resizes = deque([Resize(job.routing.partitions, "passive")])
        self._spread = job.routing.name
        self._programs = Programs(job.program.query, (job.program,))
        allowance, reason = job.settings.allowance, job.settings.reason
        self._course = Course(job.program.plan, allowance, reason, job.meanwhile)
        self._effort = 0
        adapt, query = job.settings.adapt, job.program.query
        self._adaptation = None if adapt is None else Adaptation(query, adapt, job.scope, self._folder)
        self.triggers = Triggers()
        self.progress: dict[int, Progress] = {}

    def resize(self, change: Resize) -> None:
        """Go over to another number of partitions with the next batch that is decided."""
        check_count(change.nodes)
        if change.how not in get_args(How):
            raise QueryError(f"adjustment is 'passive' or 'aggressive'; got {change.how!r}")
        if self._spread not in SHARED:
            raise QueryError(
                f"the number of partitions cannot change while spread='{self._spread}' says where rows lie; "
                "start the join with spread='share' or 'psp' and a new checkpointLocation"
            )
        self._resizes.append(change)

    def replan(self, plan: Join, allowance: Allowance | None, reason: str) -> None:
        """Go over to another plan with the next batch that is decided."""
        course = self._course
        self._programs.check_change(course.plan, plan)
        if allowance is not None:
            allowance.check(plan)
        check_plan(self._programs.of(plan), self._job.routing, self._spread)
        self._course = Course(plan, allowance, reason, _either(course.allowance, course.meanwhile))

    @property
    def budget(self) -> Budget | None:
        """What the query may use; a new one counts from the next batch on."""
        return self._job.program.query.budget if self._adaptation is None else self._adaptation.budget

    @budget.setter
    def budget(self, budget: Budget) -> None:
        if self._adaptation is None:
            raise QueryError("the budget of a query that does not adapt is fixed; start it with adapt=True")
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
        if before.plan is None:  # written before plans could change
            before = _standing_on(self._job.program.plan, before)
        first = self._garbage.is_new
        self._garbage.collect(before, batch)
        reached("decide", batch)
        deciding = perf_counter()
        decision, attempt = self._decide(before, batch)
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
        reached("build", batch)
        reports = self._build(frame, assignment)
        self._check_times(batch, reports)
        reached("built", batch)
        built = perf_counter()
        # Tasks that lost a race leave hidden files; now and then is soon enough for those.
        sweep = attempt > 1 or first or batch % SWEEP_EVERY == 0
        placement = self._placement(decision)
        told = self._emission.put_out(frame.sparkSession, assignment, placement, reports, sweep)
        reached("emitted", batch)
        emitted = perf_counter()
        answered = _answered(decision, reports)
        after, let_go = self._after(before, batch, decision, answered, reports, told)
        joined = perf_counter()
        after = self._learned(before, after, answered, reports, told, joined - started, first)
        learned = perf_counter()
        self._ledger.write_manifest(after)
        self._garbage.keep(after)
        reached("committed", batch)
        seconds = {
            "decide": decided - deciding,
            "build": built - started,
            "emit": emitted - built,
            "observe": learned - joined,
            "commit": perf_counter() - emitted,
        }
        once = after.rows(self._job.routing.homes)
        self._remember(
            Progress.of(batch, decision, answered, after, once, reports, _sum(told), let_go, seconds)
        )
        if self._adaptation is not None:
            self._adaptation.weigh()

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
            self._resume(decision, before)
            return decision, attempt + 1
        verdict = self._adapt(before)
        job, course = self._job, self._going(before)
        clock = max(before.newest.values(), default=None)
        # A tree finds its partners in one partition.
        routing = job.routing if is_mjoin(course.plan) else replace(job.routing, instead=None)
        placement, why = placement_after(before, job.program.query, routing, self._wanted())
        # Pairs were counted over all partitions, but unless slices are shared they are made within one.
        seen, parts = before.statistics, 1 if self._job.crosses(placement) else placement.partitions
        decision = Decision(
            plan=course.plan,
            driver_order=self._driver_order(before, placement, course.plan),
            clock=clock,
            idle=self._idle(before, clock),
            allowance=course.allowance,
            selectivities={hop: share * parts for hop, share in seen.selectivities(course.plan).items()},
            gains=seen.gains,
            placement=placement,
            reason="; ".join(filter(None, (why, course.reason))),
            meanwhile=course.meanwhile,
            effort=effort_allowed(self._effort),
        )
        if placement.is_shared and not (before.placement or job.routing.start()).is_shared:
            # First, so that no start by key meets a decision to share.
            self._ledger.write_spread(placement.spread)
        self._ledger.write_decision(batch, decision, 1)
        if self._adaptation is not None and verdict is not None:
            self._adaptation.record(batch, decision, verdict)
        return decision, 1

    def _resume(self, decision: Decision, before: Manifest) -> None:
        """Go on from what was decided for a batch that is tried again."""
        if self._adaptation is None and decision.plan == self._course.plan:
            return
        self._course = Course(decision.plan, decision.allowance, decision.reason, decision.meanwhile)
        if self._adaptation is not None:
            self._adaptation.start(decision.plan, decision.allowance, before.statistics)

    def _adapt(self, before: Manifest) -> Verdict | None:
        """Change the course if that is better for what is known now."""
        if self._adaptation is None:
            return None
        self._adaptation.start(self._course.plan, self._course.allowance, before.statistics)
        verdict = self._adaptation.decide()
        if verdict is None:
            return None
        if verdict.plan == self._course.plan:
            self._course = replace(self._course, allowance=verdict.allowance, reason=verdict.reason)
        elif not verdict.moves:
            # It is about the plan that answers until the states of the one decided are there.
            self._course = replace(self._course, meanwhile=verdict.allowance, reason=verdict.reason)
        else:
            try:
                self.replan(verdict.plan, verdict.allowance, verdict.reason)
            except QueryError as error:
                # Rows may have come to lie elsewhere since the start.
                _LOG.info("the plan stays as it is: %s", error)
                self._adaptation.refuse(self._course.plan, self._course.allowance)
                return None
        return verdict

    def _going(self, before: Manifest) -> Course:
        """The course of the next batch, without what was said of plans that no partition has any more."""
        course = self._course
        if course.meanwhile is None or _answering(before) - {course.plan}:
            return course
        return replace(course, meanwhile=None)

    def _towards(self, before: Manifest, plan: Join) -> Manifest:
        """What is left of a manifest when a plan is decided; partitions without new rows are told, too."""
        parts = {number: part.towards(self._programs, plan) for number, part in before.parts.items()}
        return replace(before, parts=parts, plan=plan)

    def _wanted(self) -> Resize | None:
        """The number of partitions last asked for, if that was since the batch before."""
        wanted = None
        while self._resizes:
            wanted = self._resizes.popleft()
        return wanted

    def _placement(self, decision: Decision) -> Placement:
        """Where a batch's rows go; decisions written before there were placements have none."""
        return decision.placement or self._job.routing.start()

    def _move(self, before: Manifest, decision: Decision) -> Manifest:
        """What the batch starts from: the slices where its decision wants them."""
        old, new = before.placement or self._job.routing.start(), self._placement(decision)
        if (new.spread, new.partitions) != (old.spread, old.partitions):
            _LOG.info("batch %d: %s", before.batch + 1, decision.reason)
        self._spread = new.spread
        return relocated(before, new)

    def _driver_order(self, before: Manifest, placement: Placement, plan: Join) -> DriverOrder:
        """Where partitions look at each other's slices, the order is one for all, chosen before the batch."""
        wanted = self._job.driver_order
        if not self._job.crosses(placement) or not isinstance(wanted, str):
            return wanted
        states = before.rows(self._job.routing.homes)
        seen = before.statistics
        # What will come is taken to be like what is there.
        return order(wanted, Waiting(plan, states, states, seen.selectivities(plan), seen.gains))

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
        placement = self._placement(assignment.decision)
        results = None if self._job.crosses(placement) else self._sink.results
        task = BuildTask(assignment, self._job.slots, results)
        rows = routed(self._copied(placed(frame, placement)), placement.partitions)
        found = rows.mapInArrow(task, REPORT).collect()
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

    def _after(
        self,
        before: Manifest,
        batch: int,
        decision: Decision,
        answered: Decision | None,
        reports: list[Report],
        told: Told | None,
    ) -> tuple[Manifest, Mapping[str, int]]:
        """The manifest after a batch, and how many rows of each state had to go for memory."""
        counts, placement = _sum(told), self._placement(decision)
        self._effort = max((one.effort for one in (told or {}).values()), default=0)
        newest = dict(before.newest)
        for report in reports:
            for name, time in report.newest.items():
                newest[name] = max(time, newest.get(name, time))
        now = max(newest.values(), default=None)
        watermark = watermark_after(self._job.program, before.watermark, newest, decision.idle)
        parts = {**before.parts, **{report.partition: report.part for report in reports}}
        alive = {number: _living(part, watermark) for number, part in parts.items()}
        here = {n: part for n, part in alive.items() if part.slices or n < placement.partitions}
        here, let_go = self._admitted(before, here, decision, now)
        balance = before.balance.after(
            sum(_stored(report) for report in reports) if before.newest else 0,
            _advance(before.newest, newest),
            answered is not None and self._is_uneven(answered, reports, told),
        )
        found = Manifest(
            batch=batch,
            watermark=watermark,
            newest=newest,
            parts=here,
            recall=self._recall(before, answered, counts),
            statistics=before.statistics,
            balance=balance,
            placement=placement,
            plan=decision.plan,
            gone=tuple(one for one in (*before.gone, *let_go) if not is_dead(one.deadline, now)),
        )
        return found, {one.node: one.rows for one in let_go}

    def _admitted(
        self, before: Manifest, parts: dict[int, Part], decision: Decision, now: int | None
    ) -> tuple[dict[int, Part], tuple[Held, ...]]:
        """What the budget has memory for, and what it has not."""
        most = None if self._adaptation is None else self._adaptation.most_bytes
        if most is None:
            return parts, ()
        return within(parts, most, self._programs, decision.plan, now, before.statistics.lags)

    def _recall(self, before: Manifest, decision: Decision | None, counts: Counts | None) -> Recall:
        """What is known of the recall; a batch not read to its end, or of two plans, tells nothing."""
        if counts is None or decision is None:
            return before.recall
        lost = missing(before.gone, self._held(before), decision.clock) if before.gone else {}
        return before.recall.after(decision.plan, counts.per_hop(decision.plan), decision.allowance, lost)

    def _held(self, manifest: Manifest) -> list[Held]:
        """What is known of the slices of a manifest; one that is stored by several keys counts once."""
        plan, homes = manifest.plan or self._job.program.plan, self._job.routing.homes
        return [
            one
            for number, part in manifest.parts.items()
            for one in held(part, self._programs, plan)
            if homes is None or homes.is_start(one.node, number)
        ]

    def _learned(
        self,
        before: Manifest,
        after: Manifest,
        answered: Decision | None,
        reports: list[Report],
        told: Told | None,
        seconds: float,
        first: bool,
    ) -> Manifest:
        """The manifest with what is known; a batch not read to its end, or of two plans, tells nothing."""
        job = self._job
        if self._adaptation is None and job.driver_order not in LEARNING:
            return after
        seconds = self.triggers.whole(after.batch, seconds)
        if told is None or answered is None:
            return after
        run = Run(self._held(before), job.routing.homes, self._cores, job.scope.interval)
        seen = observed(run, answered, before, after, reports, told, seconds)
        usual = before.statistics.fixed.value
        if first and usual is not None:
            # With a start, workers start and much is done for the first time.
            seen = replace(seen, seconds=seen.work + usual)
        if self._adaptation is None:
            return replace(after, statistics=before.statistics.after(job.program.query, seen))
        return replace(after, statistics=self._adaptation.learn(seen))

    def _is_uneven(self, decision: Decision, reports: list[Report], told: Told | None) -> bool:
        """True if by key one partition had so much to do that sharing it all would have been cheaper."""
        if told is None or self._job.routing.instead is None or self._placement(decision).is_shared:
            return False
        if not is_mjoin(decision.plan):
            return False
        seconds = [
            work(sum(report.rows_in.values()), told[report.partition].per_hop(decision.plan))
            for report in reports
        ]
        # A sink that wants a DataFrame takes a second job anyway.
        extra = 0.0 if self._sink.results is None else SECOND_JOB
        return is_uneven(seconds, self._job.routing.partitions, self._cores, extra)

    def _remember(self, progress: Progress) -> None:
        self.progress[progress.batch] = progress
        for number in [n for n in self.progress if n <= progress.batch - _KEPT_PROGRESS]:
            del self.progress[number]


_KEPT_PROGRESS = 200
# A batch that failed twice is tried with less in flight, so that it does not poison the query for ever.
_ATTEMPTS_AS_DECIDED = 2
_FEW_CANDIDATES = 1 << 14
# Made on the batch's own session, never on the user's.
_SESSION: Mapping[str, Any] = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(256 << 20),
}


def _sum(told: Told | None) -> Counts | None:
    return None if told is None else reduce(Counts.__add__, told.values(), Counts())


def _stored(report: Report) -> int:
    """The rows of a batch that a partition has kept; some that a filter drops are counted too."""
    gone = (report.late, report.null_time, report.dropped)
    return sum(report.rows_in.values()) - sum(sum(one.values()) for one in gone)


def _advance(before: Mapping[str, int], after: Mapping[str, int]) -> int:
    """How far the newest time of all streams went on, which the first rows do not tell."""
    return max(after.values()) - max(before.values()) if before and after else 0


def _answering(manifest: Manifest) -> set[Join]:
    """The plans that answer in partitions."""
    return {part.standing.plan for part in manifest.parts.values() if part.standing is not None}


def _answered(decision: Decision, reports: list[Report]) -> Decision | None:
    """What a batch went by, for the plan that answered; None if that was not the same in all partitions."""
    standings = [report.part.standing for report in reports]
    plans = {standing.plan for standing in standings if standing is not None} or {decision.plan}
    return answering(decision, plans.pop()) if len(plans) == 1 else None


def _standing_on(plan: Join, before: Manifest) -> Manifest:
    parts = {number: replace(part, standing=Standing(plan)) for number, part in before.parts.items()}
    return replace(before, parts=parts)


def _either(newer: Allowance | None, older: Allowance | None) -> Allowance | None:
    """What is known of plans that still answer somewhere; of a hop that several have, the newest."""
    if newer is None or older is None:
        return newer or older
    return replace(newer, probes={**older.probes, **newer.probes}, ages={**older.ages, **newer.ages})


def _living(part: Part, watermark: int | None) -> Part:
    live = tuple(
        entry
        for entry in part.slices
        if not is_dead(entry.deadline, watermark) and not entry.node.endswith(LINE)
    )
    return replace(part, slices=live)
