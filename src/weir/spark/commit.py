"""What a batch on Spark leaves behind: the manifest after it, and what was learned from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from weir.adapt.recall import Recall
from weir.adapt.skew import SECOND_JOB, is_uneven, work
from weir.adapt.slice_summary import SliceSummary, lost_results
from weir.kernel.decision import Decision
from weir.kernel.plan_migration import PhysicalPlans
from weir.kernel.state import is_dead, watermark_after
from weir.kernel.state_schema import LINE
from weir.order.policies import LEARNING
from weir.spark.adaptation import Adaptation
from weir.spark.admission import held, within
from weir.spark.emit import Told, summed
from weir.spark.job import Job
from weir.spark.ledger import Manifest
from weir.spark.observe import Run, observed
from weir.spark.rebalance import placement_of
from weir.spark.report import PartitionState, TaskReport
from weir.spark.routing import is_mjoin
from weir.spark.trigger import Triggers


class Commit:
    """Draws up the manifest after each batch of a query; `wants_frame` is its sink's wish for a DataFrame."""

    def __init__(
        self,
        job: Job,
        programs: PhysicalPlans,
        adaptation: Adaptation | None,
        triggers: Triggers,
        cores: int,
        wants_frame: bool,
    ) -> None:
        self._job, self._programs, self._adaptation = job, programs, adaptation
        self._triggers, self._cores, self._wants_frame = triggers, cores, wants_frame

    def after(
        self,
        before: Manifest,
        batch: int,
        decision: Decision,
        answered: Decision | None,
        reports: list[TaskReport],
        told: Told | None,
    ) -> tuple[Manifest, Mapping[str, int]]:
        """The manifest after a batch, and how many rows of each state had to go for memory."""
        placement = placement_of(decision)
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
            sum(sum(report.entered.values()) for report in reports) if before.newest else 0,
            _advance(before.newest, newest),
            answered is not None and self._is_uneven(answered, reports, told),
        )
        found = Manifest(
            batch=batch,
            watermark=watermark,
            newest=newest,
            parts=here,
            recall=self._recall(before, answered, told, now),
            statistics=before.statistics,
            balance=balance,
            placement=placement,
            plan=decision.plan,
            gone=tuple(one for one in (*before.gone, *let_go) if not is_dead(one.deadline, now)),
        )
        return found, {one.node: one.rows for one in let_go}

    def _admitted(
        self, before: Manifest, parts: dict[int, PartitionState], decision: Decision, now: int | None
    ) -> tuple[dict[int, PartitionState], tuple[SliceSummary, ...]]:
        """What the budget has memory for, and what it has not."""
        most = None if self._adaptation is None else self._adaptation.most_bytes
        if most is None:
            return parts, ()
        return within(parts, most, self._programs, decision.plan, now, before.statistics.lags)

    def _recall(
        self, before: Manifest, decision: Decision | None, told: Told | None, now: int | None
    ) -> Recall:
        """What is known of the recall; a batch not read to its end, or of two plans, tells nothing."""
        if told is None or decision is None:
            return before.recall
        counts = summed(told)
        lags = before.statistics.lags
        lost = lost_results(before.gone, self._held(before), decision.clock, lags) if before.gone else {}
        per_hop, reach = counts.per_hop(decision.plan), self._job.program.query.reach
        clock = before.watermark, now
        return before.recall.after(decision.plan, per_hop, decision.allowance, lost, clock, reach)

    def _held(self, manifest: Manifest) -> list[SliceSummary]:
        """What is known of the slices of a manifest."""
        plan = manifest.plan or self._job.program.plan
        return [one for part in manifest.parts.values() for one in held(part, self._programs, plan)]

    def learned(
        self,
        before: Manifest,
        after: Manifest,
        answered: Decision | None,
        reports: list[TaskReport],
        told: Told | None,
        seconds: float,
        first: bool,
    ) -> Manifest:
        """The manifest with what is known; a batch not read to its end, or of two plans, tells nothing."""
        job = self._job
        if self._adaptation is None and job.driver_order not in LEARNING:
            return after
        seconds = self._triggers.whole(after.batch, seconds)
        if told is None or answered is None:
            return after
        run = Run(self._held(before), self._cores, job.scope.interval)
        seen = observed(run, answered, before, after, reports, told, seconds)
        usual = before.statistics.fixed.value
        if first and usual is not None:
            # With a start, workers start and much is done for the first time.
            seen = replace(seen, seconds=seen.work + usual)
        if self._adaptation is None:
            return replace(after, statistics=before.statistics.after(job.program.query, seen))
        return replace(after, statistics=self._adaptation.learn(seen))

    def _is_uneven(self, decision: Decision, reports: list[TaskReport], told: Told | None) -> bool:
        """True if by key one partition had so much to do that sharing it all would have been cheaper."""
        if told is None or self._job.routing.instead is None or placement_of(decision).is_shared:
            return False
        if not is_mjoin(decision.plan):
            return False
        seconds = [
            work(sum(report.rows_in.values()), told[report.partition].per_hop(decision.plan))
            for report in reports
        ]
        # A sink that wants a DataFrame takes a second job anyway.
        extra = 0.0 if self._wants_frame else SECOND_JOB
        return is_uneven(seconds, self._job.routing.partitions, self._cores, extra)


def _advance(before: Mapping[str, int], after: Mapping[str, int]) -> int:
    """How far the newest time of all streams went on, which the first rows do not tell."""
    return max(after.values()) - max(before.values()) if before and after else 0


def _living(part: PartitionState, watermark: int | None) -> PartitionState:
    live = tuple(
        entry
        for entry in part.slices
        if not is_dead(entry.deadline, watermark) and not entry.node.endswith(LINE)
    )
    return replace(part, slices=live)
