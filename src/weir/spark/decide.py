"""What the next batch on Spark will do: its plan, what is skipped, where rows go, which stream goes first.

All of it is in the checkpoint before the batch begins, and a batch that is tried again obeys it.
"""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass, replace
from typing import get_args

from weir.adapt.analyse import Recommendation
from weir.adapt.driver import driver_order
from weir.errors import QueryError
from weir.kernel.decision import Decision
from weir.kernel.plan_migration import PhysicalPlans, effort_allowed
from weir.order.pending import PendingRows
from weir.order.policies import DriverOrder, order
from weir.partition.placement import SHARED, Placement
from weir.partition.resize import How, Resize
from weir.plan.tree import Join
from weir.shed.allowance import Allowance
from weir.spark.adaptation import Adaptation
from weir.spark.job import Job
from weir.spark.ledger import Ledger, Manifest
from weir.spark.rebalance import placement_after
from weir.spark.routing import check_count, check_plan, is_mjoin

_LOG = logging.getLogger("weir")
# A batch that failed twice is tried with less in flight, so that it does not poison the query for ever.
_ATTEMPTS_AS_DECIDED = 2
_FEW_CANDIDATES = 1 << 14


@dataclass(frozen=True)
class DecidedPlan:
    """The plan to go by from the next batch on, with what is allowed for it and for those that answer yet."""

    plan: Join
    allowance: Allowance | None
    reason: str
    meanwhile: Allowance | None = None


class Decider:
    """Says before each batch what it will do; `effort` is what the last one spent on its own rows.

    `spread` is that of the batch decided last.
    """

    def __init__(
        self, job: Job, ledger: Ledger, programs: PhysicalPlans, adaptation: Adaptation | None
    ) -> None:
        self._job, self._ledger, self._programs = job, ledger, programs
        self._adaptation = adaptation
        # A start goes by what the join says, whatever the number of partitions was before it.
        self._resizes = deque([Resize(job.routing.partitions, "passive")])
        self._course = DecidedPlan(
            job.program.plan, job.settings.allowance, job.settings.reason, job.meanwhile
        )
        self.spread = job.routing.name
        self.effort = 0

    def resize(self, change: Resize) -> None:
        """Go over to another number of partitions with the next batch that is decided."""
        check_count(change.nodes)
        if change.how not in get_args(How):
            raise QueryError(f"adjustment is 'passive' or 'aggressive'; got {change.how!r}")
        if self.spread not in SHARED:
            raise QueryError(
                f"the number of partitions cannot change while spread='{self.spread}' says where rows lie; "
                "start the join with spread='share' or 'psp' and a new checkpointLocation"
            )
        self._resizes.append(change)

    def replan(self, plan: Join, allowance: Allowance | None, reason: str) -> None:
        """Go over to another plan with the next batch that is decided."""
        course = self._course
        self._programs.check_change(course.plan, plan)
        if allowance is not None:
            allowance.check(plan)
        check_plan(plan, self.spread)
        self._course = DecidedPlan(plan, allowance, reason, _either(course.allowance, course.meanwhile))

    def decide(self, before: Manifest, batch: int) -> tuple[Decision, int]:
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
        seen, parts = before.statistics, 1 if placement.is_shared else placement.partitions
        decision = Decision(
            plan=course.plan,
            driver_order=self._driver_order(before, placement, course),
            clock=clock,
            idle=self._idle(before, clock),
            allowance=course.allowance,
            selectivities={hop: share * parts for hop, share in seen.selectivities(course.plan).items()},
            gains=seen.gains,
            placement=placement,
            reason="; ".join(filter(None, (why, course.reason))),
            meanwhile=course.meanwhile,
            effort=effort_allowed(self.effort),
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
        self._course = DecidedPlan(decision.plan, decision.allowance, decision.reason, decision.meanwhile)
        if self._adaptation is not None:
            self._adaptation.start(decision.plan, decision.allowance, before.statistics)

    def _adapt(self, before: Manifest) -> Recommendation | None:
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

    def _going(self, before: Manifest) -> DecidedPlan:
        """The course of the next batch, without what was said of plans that no partition has any more."""
        course = self._course
        if course.meanwhile is None or _answering(before) - {course.plan}:
            return course
        return replace(course, meanwhile=None)

    def _wanted(self) -> Resize | None:
        """The number of partitions last asked for, if that was since the batch before."""
        wanted = None
        while self._resizes:
            wanted = self._resizes.popleft()
        return wanted

    def _driver_order(self, before: Manifest, placement: Placement, course: DecidedPlan) -> DriverOrder:
        """Where partitions look at each other's slices, the order is one for all, chosen before the batch."""
        plan, allowance, seen = course.plan, course.allowance, before.statistics
        standings = (part.standing for part in before.parts.values() if part.standing is not None)
        if waiting := [standing.plan for standing in standings if standing.missing(plan)]:
            # Another plan answers yet, in some partitions at least: the order is for what is skipped in it.
            plan, allowance = waiting[0], course.meanwhile and course.meanwhile.within(waiting[0])
        wanted = driver_order(self._job.driver_order, plan, allowance, seen.lags)
        if not placement.is_shared or not isinstance(wanted, str):
            return wanted
        states = {node: size.rows for node, size in before.sizes().items()}
        # What will come is taken to be like what is there.
        return order(wanted, PendingRows(plan, states, states, seen.selectivities(plan), seen.gains))

    def _idle(self, before: Manifest, clock: int | None) -> tuple[str, ...]:
        """The streams whose newest row is further behind the clock than `idle` allows."""
        limit = self._job.settings.idle
        if limit is None or clock is None:
            return ()
        names = self._job.program.query.names
        return tuple(name for name in names if before.newest.get(name, clock - limit - 1) < clock - limit)


def _answering(manifest: Manifest) -> set[Join]:
    """The plans that answer in partitions."""
    return {part.standing.plan for part in manifest.parts.values() if part.standing is not None}


def _either(newer: Allowance | None, older: Allowance | None) -> Allowance | None:
    """What is known of plans that still answer somewhere; of a hop that several have, the newest."""
    if newer is None or older is None:
        return newer or older
    return replace(newer, probes={**older.probes, **newer.probes}, ages={**older.ages, **newer.ages})
