"""A batch that fails again and again gets a smaller decision, unless some of its results can be seen."""

from __future__ import annotations

import pyarrow as pa
import pytest

from weir.kernel.decision import Decision
from weir.kernel.physical_plan import compile_plan
from weir.kernel.plan_migration import PhysicalPlans
from weir.partition.placement import Placement
from weir.plan.tree import Join
from weir.plan.tree import join as tree
from weir.query.build import build_query
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
