"""Decide what the next batch does: its plan, what it skips, where rows go, which stream goes first.

The decision is recorded before the batch begins, and a batch that is tried again obeys it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from weir.adapt.analyse import AdaptationScope
from weir.adapt.batch_report import BatchReport
from weir.adapt.controller import Controller
from weir.adapt.describe_decision import describe_decision
from weir.adapt.recommendation import Recommendation
from weir.adapt.settings import Adapt
from weir.adapt.shedding import AS_REQUESTED
from weir.adapt.statistics import Statistics
from weir.adapt.work_cap import (
    assume_step_seconds,
    derive_work_cap,
    estimate_step_seconds,
    find_batch_length,
)
from weir.errors import QueryError
from weir.expr.zones import find_zone
from weir.kernel.decision import Decision
from weir.kernel.output import result_schema
from weir.kernel.plan_migration import PhysicalPlans, limit_migration_steps
from weir.order.policies import LEARNING_POLICIES, DriverOrder, PendingRows, choose_order
from weir.partition.placement import Placement
from weir.plan.tree import Join
from weir.query.model import Budget, Query, wrong_budget
from weir.runtime.manifest import Manifest
from weir.runtime.partition_batch import TaskReport
from weir.runtime.shedding_order import choose_driver_order
from weir.runtime.wall_clock import WallClock
from weir.runtime.watermark import find_idle_streams, limit_times
from weir.shed.allowance import Allowance

_LOG = logging.getLogger("weir")
# A batch that failed twice is tried with fewer candidates in flight, so that it does not fail for ever.
_ATTEMPTS_AS_DECIDED = 2
# A batch after one of fewer steps runs in one task: bringing rows to several takes longer than the join.
_SMALL_BATCH_STEPS = 2_000_000
# Taking in a row takes about as long as this many steps of a hop.
_STEPS_PER_ROW = 50
# Under a memory budget, slices are cut so that about this many fit into it; fewer, where they would be tiny.
_SLICES_IN_MEMORY = 32
_FEW_CANDIDATES = 1 << 14


class BatchLog(Protocol):
    """Where decisions and manifests are kept: in memory, or in the checkpoint."""

    def begin(self, batch: int) -> Manifest:
        """Return what a batch starts from, the manifest of the batch before it."""

    def decision(self, batch: int) -> tuple[Decision, int] | None:
        """What was decided for a batch, and how often it was tried; None if nothing is kept."""
        return None

    def record(self, batch: int, decision: Decision, attempt: int) -> None:
        """Keep what a batch will do, before it does anything; by default, nothing is kept."""
        return

    def record_history(self, batch: int, line: dict[str, Any]) -> None:
        """Keep a line about a change of plan or allowance, for people."""
        return

    def sync_batch(self, batch: int, tasks: Sequence[TaskReport]) -> None:
        """Make durable what a batch has built, before any of it is published; nothing by default."""
        return

    def sync_results(self, manifest: Manifest) -> None:
        """Make durable what was published, and the manifest, before the batch is committed."""
        return

    def commit(self, manifest: Manifest) -> None:
        """Keep what a batch leaves behind; from here on it is not run again."""


class Placer(Protocol):
    """Where the rows of a batch go."""

    cores: int = 1  # how many partitions can run at once

    def place(self, before: Manifest, plan: Join) -> tuple[Placement, str]:
        """The placement of the next batch, and why it differs from the last; "" if it does not."""

    def check_plan(self, plan: Join, placement: Placement | None) -> None:
        """Refuse a plan that cannot run where rows lie; in one partition every plan can."""
        return

    def has_published(self, batch: int) -> bool:
        """True if results of an earlier attempt can be seen, as far as that is known; no more will be."""
        return False


@dataclass(frozen=True)
class DecidedPlan:
    """The plan from the next batch on, with its allowance, and one for earlier plans still active."""

    plan: Join
    allowance: Allowance | None = None
    reason: str = AS_REQUESTED
    interim_allowance: Allowance | None = None


@dataclass(frozen=True)
class Policy:
    """What a query's decisions follow from its start on.

    `idle`: a stream of which no row arrives for so long (µs) stops holding the watermark; None: it always
    holds it. `ahead`: rows so far (µs) beyond all clocks are dropped; None: none is. Both need a wall clock.
    `adapt`: when decisions change while the query runs; None: never. `keeps_dropped`: rows that are dropped
    for their event time go into the quarantine. `knows_rates`: the user has told the rates, so that the first
    rows are no backlog.
    """

    query: Query
    driver_order: DriverOrder
    idle: int | None = None
    ahead: int | None = None
    wall_clock: WallClock | None = None
    adapt: Adapt | None = None
    scope: AdaptationScope = field(default_factory=AdaptationScope)
    keeps_dropped: bool = False
    knows_rates: bool = False

    @property
    def learns(self) -> bool:
        """True if decisions follow from what earlier batches counted."""
        return self.adapt is not None or self.driver_order in LEARNING_POLICIES


class Decider:
    """Decides before each batch what it does, and learns from its report after it."""

    def __init__(
        self, policy: Policy, start: DecidedPlan, plans: PhysicalPlans, log: BatchLog, placer: Placer
    ) -> None:
        self._policy, self._plans, self._log, self._placer = policy, plans, log, placer
        self._decided, self._budget = start, policy.query.budget
        self.placement: Placement | None = None  # by the last decision
        self._steps = 0
        self._is_small = False  # the last batch
        self._now: tuple[int, int] | None = None  # a batch, and the wall clock when it was first decided
        self._has_capped = False
        self.controller: Controller | None = None

    @property
    def budget(self) -> Budget | None:
        """What the query may use; a new one counts from the next batch on, if the query adapts."""
        return self._budget

    @budget.setter
    def budget(self, budget: Budget) -> None:
        if self._policy.adapt is None:
            raise QueryError("the budget of a query that does not adapt is fixed; start it with adapt=True")
        if not isinstance(budget, Budget):
            raise wrong_budget(budget)
        self._budget = budget

    @property
    def max_bytes(self) -> int | None:
        """How much the state may take after the batch that runs; None without a memory budget."""
        budget = self._policy.query.budget if self.controller is None else self.controller.budget
        return None if budget is None else budget.bytes

    def allow(self, allowance: Allowance | None, reason: str, active: Join) -> None:
        """From the next batch on, give the active plan this allowance."""
        if allowance is not None:
            allowance.check(active)
        if active == self._decided.plan:
            self._decided = replace(self._decided, allowance=allowance, reason=reason)
        else:
            self._decided = replace(self._decided, interim_allowance=allowance, reason=reason)

    def replan(self, plan: Join, allowance: Allowance | None, reason: str) -> None:
        """From the next batch on, migrate to another plan."""
        if not isinstance(plan, Join):
            raise QueryError(f"a plan is made with weir.plan.join; got {plan!r}")
        decided = self._decided
        self._plans.check_change(decided.plan, plan)
        if allowance is not None:
            allowance.check(plan)
        self._placer.check_plan(plan, self.placement)
        interim_allowance = _merge_allowances(decided.allowance, decided.interim_allowance)
        self._decided = DecidedPlan(plan, allowance, reason, interim_allowance)

    def decide(self, before: Manifest, batch: int, span: float | None = None) -> tuple[Decision, int]:
        """Return what was decided for this batch before a failure, or decide now; and the attempt number.

        `span` are the event seconds that the batch's rows bring, if they are known.
        """
        known = self._log.decision(batch)
        recommendation = None if known is not None else self._adapt(before)
        decision, attempt = (
            (self._decide(before, batch, span), 1) if known is None else self._retry(*known, before)
        )
        self._log.record(batch, decision, attempt)
        if recommendation is not None and recommendation.is_notable:
            predicted = {name: getattr(recommendation, name) for name in ("recall", "cpu", "memory")}
            line = {"predicted": predicted, "analysisSeconds": recommendation.seconds}
            self._log.record_history(batch, {**describe_decision(decision), **line})
        self.placement = decision.placement
        return decision, attempt

    def observe(self, known: Statistics, report: BatchReport) -> Statistics:
        """Learn from a batch; return all that is known after it.

        Batches that the sink did not read to the end, or that ran two plans, are not learned from.
        """
        self._steps, policy = report.steps, self._policy
        if report.counts.capped and not self._has_capped:
            self._has_capped = True
            _LOG.warning(
                "batch %d would have exceeded the budget of %s by far, so %d rows did not probe once it had "
                "taken %s steps; numRowsCapped counts such rows, and a larger budget has fewer of them",
                report.batch,
                self._budget,
                report.counts.capped,
                f"{report.decision.work_cap:,}",
            )
        rows = sum(report.counts.rows_in.values())
        self._is_small = report.is_complete and report.steps + _STEPS_PER_ROW * rows < _SMALL_BATCH_STEPS
        if not policy.learns or not report.is_complete or report.is_mixed:
            return known
        if self.controller is None:
            return known.after(policy.query, report)
        self.controller.learn(report)
        return self.controller.statistics

    def analyse(self) -> None:
        """Begin to analyse, if what was learned calls for it; the analysis runs in a thread of its own."""
        if self.controller is not None:
            self.controller.start_analysis()

    def close(self) -> None:
        """Analyse no more."""
        if self.controller is not None:
            self.controller.close()

    def _retry(self, decision: Decision, attempts: int, before: Manifest) -> tuple[Decision, int]:
        is_smaller = decision.max_candidates == _FEW_CANDIDATES
        may_change = attempts >= _ATTEMPTS_AS_DECIDED and not is_smaller
        if may_change and not self._placer.has_published(before.batch + 1):
            reason = f"smaller after {attempts} failed attempts"
            decision = replace(decision, max_candidates=_FEW_CANDIDATES, reason=reason)
        if self._policy.adapt is not None or decision.plan != self._decided.plan:
            plan, interim_allowance = decision.plan, decision.interim_allowance
            self._decided = DecidedPlan(plan, decision.allowance, decision.reason, interim_allowance)
            self._start_controller(before)
        return decision, attempts + 1

    def _decide(self, before: Manifest, batch: int, span: float | None) -> Decision:
        if not before.active_plans - {self._decided.plan}:
            self._decided = replace(self._decided, interim_allowance=None)
        decided, seen = self._decided, before.statistics
        placement, why = self._placer.place(before, decided.plan)
        # Pairs were counted over all partitions, but unless slices are shared they are made within one.
        partitions = 1 if placement.is_shared else placement.partitions
        shares = seen.selectivities(decided.plan)
        names, policy = self._policy.query.names, self._policy
        now = self._read_wall_clock(batch)
        return Decision(
            plan=decided.plan,
            driver_order=self._driver_order(before, placement),
            clock=self._choose_clock(now, before),
            arrivals=before.arrivals,
            now=now,
            idle=find_idle_streams(names, before.last_arrivals, now, policy.idle),
            latest=limit_times(names, before.newest, self._show_local(now, before), policy.ahead),
            keeps_dropped=policy.keeps_dropped,
            slice_bytes=None if self.max_bytes is None else max(1, self.max_bytes // _SLICES_IN_MEMORY),
            allowance=decided.allowance,
            work_cap=self._cap_work(before, placement, span),
            selectivities={hop: share * partitions for hop, share in shares.items()},
            learns=self._policy.learns,
            results_per_row=seen.results_per_row,
            placement=placement,
            one_task=self._is_small,
            reason="; ".join(filter(None, (why, decided.reason))),
            interim_allowance=decided.interim_allowance,
            migration_steps=limit_migration_steps(self._steps),
        )

    def _read_wall_clock(self, batch: int) -> int | None:
        """Read the wall clock once for a batch: a repeat that nothing recorded goes by it too."""
        if self._policy.wall_clock is None:
            return None
        if self._now is None or self._now[0] != batch:
            self._now = batch, self._policy.wall_clock()
        return self._now[1]

    def _choose_clock(self, now: int | None, before: Manifest) -> int | None:
        """The clock by which freshness is judged; a wall clock that was set back stands still."""
        if self._policy.query.clock == "event" or now is None:
            return before.clock
        return max([now, *before.arrivals.values()])

    def _cap_work(self, before: Manifest, placement: Placement, span: float | None) -> int | None:
        """Return the steps that a partition may take; None without a CPU budget, or if it may not adapt.

        A batch that is meant to take more than its budget, because shedding could not keep it, may do so.
        With `psp`, partials move between partitions and are nowhere followed along their whole path.
        """
        policy, seen = self._policy, before.statistics
        cpu = None if self._budget is None else self._budget.cpu
        if before.clock is None and not policy.knows_rates:
            span = None
        length = find_batch_length(policy.scope.interval, span, seen.span)
        if policy.adapt is None or cpu is None or length is None or placement.spread == "psp":
            return None
        at_once = 1 if self._is_small else self._placer.cores
        overrun = 1.0 if self.controller is None else self.controller.expected_overrun
        cpu_seconds = overrun * cpu * length * min(1.0, at_once / placement.partitions)
        assumed = assume_step_seconds(policy.scope.costs, len(result_schema(policy.query)))
        return derive_work_cap(cpu_seconds, estimate_step_seconds(seen.step_seconds, assumed))

    def _show_local(self, now: int | None, before: Manifest) -> int | None:
        """The wall clock as event times show it: those without a zone, in local time of the query's session.

        A clock that has gone back since rows arrived is wrong, and those rows tell how far it was.
        """
        query = self._policy.query
        if now is None:
            return None
        now = max([now, *before.last_arrivals.values()])
        if all(stream.has_zone for stream in query.streams):
            return now
        return int(find_zone(query.session.time_zone).to_local(now))

    def _start_controller(self, before: Manifest) -> None:
        """Begin to adapt from what is known, if that is asked for and has not begun."""
        policy, decided = self._policy, self._decided
        if policy.adapt is not None and self.controller is None:
            self.controller = Controller(
                policy.query,
                decided.plan,
                decided.allowance,
                self._budget or Budget(),
                policy.adapt,
                policy.scope,
                before.statistics,
            )

    def _adapt(self, before: Manifest) -> Recommendation | None:
        """Follow the controller's recommendation, if it has one."""
        self._start_controller(before)
        if self.controller is None:
            return None
        self.controller.budget = self._budget or Budget()
        recommendation = self.controller.take_recommendation()
        if recommendation is None:
            return None
        plan, allowance, reason = recommendation.plan, recommendation.allowance, recommendation.reason
        if plan == self._decided.plan or not recommendation.changes_plan:
            self.allow(allowance, reason, plan)
        else:
            try:
                self.replan(plan, allowance, reason)
            except QueryError as error:
                # Rows may have come to lie elsewhere since the start.
                _LOG.info("the plan stays as it is: %s", error)
                self.controller.refuse(self._decided.plan)
                return None
        return recommendation

    def _driver_order(self, before: Manifest, placement: Placement) -> DriverOrder:
        """Where partitions probe each other's slices, fix one order for all of them before the batch."""
        plan, allowance, seen = self._decided.plan, self._decided.allowance, before.statistics
        migrations = (part.migration for part in before.parts.values() if part.migration is not None)
        if waiting := [migration.plan for migration in migrations if migration.missing(plan)]:
            # An earlier plan is still active, in some partitions at least: the order is for what it skips.
            interim_allowance = self._decided.interim_allowance
            plan, allowance = waiting[0], interim_allowance and interim_allowance.restrict_to(waiting[0])
        wanted = choose_driver_order(self._policy.driver_order, plan, allowance, seen.lags)
        if not placement.is_shared or not isinstance(wanted, str):
            return wanted
        # What will come is taken to be like what is there.
        rows = Counter({node: size.rows for node, size in before.sizes.items()})
        shares = seen.selectivities(plan)
        return choose_order(wanted, PendingRows(plan, rows, rows, shares, seen.results_per_row))


def _merge_allowances(newer: Allowance | None, older: Allowance | None) -> Allowance | None:
    """Return what plans that are still active somewhere may do; of a hop that several have, the newest."""
    if newer is None or older is None:
        return newer or older
    return replace(newer, probes={**older.probes, **newer.probes}, ages={**older.ages, **newer.ages})
