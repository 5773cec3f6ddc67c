"""A batch that fails again and again gets a smaller decision; a hopeless one, a larger work cap."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from weir.adapt.analyse import AdaptationScope
from weir.adapt.controller import Controller
from weir.adapt.settings import Adapt
from weir.kernel.decision import Decision
from weir.kernel.physical_plan import compile_plan
from weir.kernel.plan_migration import PhysicalPlans
from weir.partition.placement import Placement
from weir.plan.tree import Join
from weir.plan.tree import join as tree
from weir.query.build import build_query
from weir.query.model import Budget
from weir.query.options import QueryOptions
from weir.runtime.decide import BatchLog, DecidedPlan, Decider, Placer, Policy
from weir.runtime.manifest import Manifest

PLAN = tree("a", "b")
ROW = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64()})
QUERY = build_query(dict.fromkeys("ab", ROW), QueryOptions(on="a.k = b.k", within="10 seconds"))


class Recorded(BatchLog):
    """Keeps the decision of one batch."""

    def __init__(self, attempts: int) -> None:
        self.known = Decision(PLAN, ("a", "b")), attempts

    def begin(self, batch: int) -> Manifest:
        return Manifest()

    def decision(self, batch: int) -> tuple[Decision, int]:
        return self.known

    def record(self, batch: int, decision: Decision, attempt: int) -> None:
        self.known = decision, attempt

    def commit(self, manifest: Manifest) -> None:
        raise AssertionError("it never succeeds")


class Sink(Placer):
    """Tells whether results of a batch can be seen."""

    def __init__(self, has_published: bool) -> None:
        self._has_published = has_published

    def place(self, before: Manifest, plan: Join) -> tuple[Placement, str]:
        return Placement("hash", 1), ""

    def has_published(self, batch: int) -> bool:
        assert batch == 0
        return self._has_published


@pytest.mark.parametrize(("has_published", "smaller_from"), [(False, 3), (True, None)])
def test_a_smaller_decision_needs_a_batch_that_has_published_nothing(
    has_published: bool, smaller_from: int | None
) -> None:
    log, sink = Recorded(attempts=1), Sink(has_published)
    plans = PhysicalPlans(QUERY, (compile_plan(QUERY, PLAN),))
    decider = Decider(Policy(QUERY, ("a", "b")), DecidedPlan(PLAN), plans, log, sink)
    smaller = {}
    for _ in range(4):
        decision, attempt = decider.decide(Manifest(), 0)
        smaller[attempt] = decision.max_candidates is not None
    expected = {attempt: smaller_from is not None and attempt >= smaller_from for attempt in (2, 3, 4, 5)}
    assert smaller == expected


class Hopeless(Controller):
    """Lets batches take four times what the budget allows: all that is left until the next trigger."""

    expected_overrun = 4.0


class Forgetful(BatchLog):
    """Keeps nothing."""

    def begin(self, batch: int) -> Manifest:
        return Manifest()

    def commit(self, manifest: Manifest) -> None:
        return


def test_a_batch_is_not_cut_at_a_budget_that_it_is_meant_to_exceed() -> None:
    budget = Budget(cpu=0.1)
    query = replace(QUERY, budget=budget)
    policy = Policy(query, ("a", "b"), adapt=Adapt(), scope=AdaptationScope(interval=10.0))
    plans = PhysicalPlans(query, (compile_plan(query, PLAN),))
    caps = []
    for kind in (Controller, Hopeless):
        decider = Decider(policy, DecidedPlan(PLAN), plans, Forgetful(), Sink(False))
        decider.controller = kind(query, PLAN, None, budget, policy.adapt, policy.scope)
        caps.append(decider.decide(Manifest(), 0)[0].work_cap)
    usual, hopeless = caps
    assert usual is not None and hopeless == pytest.approx(4 * usual, rel=1e-6)
