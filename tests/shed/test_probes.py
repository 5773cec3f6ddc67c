"""The strategies that skip probes: in any plan within the budget, and honest about freshness."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.plan.tree import Join, join
from weir.query.windows import RowWindow
from weir.shed.expected import ShedForecast
from weir.shed.probes import shed_as_printed, shed_by_policy, shed_evenly, shed_probes
from weir.shed.proposal import Overload
from weir.stats.join_graph import JoinGraph
from weir.stats.unit_costs import UnitCosts

from .test_hop_network import plans

COSTS = UnitCosts(probe=1e-6, match=1e-7)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(plans(most=3), st.floats(0.05, 1))
def test_any_plan_stays_within_the_budget(drawn: tuple[JoinGraph, Join], share: float) -> None:
    """With one inner join at most: in deeper trees the forecast only comes near the solved state sizes."""
    graph, plan = drawn
    forecast = ShedForecast(replace(graph, costs=COSTS))
    exact, cost = forecast.estimate_exact(plan)
    overload = Overload(forecast, plan, share * cost)
    for strategy in (shed_probes, shed_as_printed, shed_evenly):
        proposal = strategy(overload)
        proposal.allowance.check(plan)
        assert proposal.allowance.choose == "hash"
        results, spent = forecast.estimate(plan, proposal.allowance)
        assert proposal.results == pytest.approx(results, rel=1e-2, abs=1e-9 * exact)
        assert spent <= overload.budget * (1 + 1e-2) or proposal.warnings
        assert results <= exact * (1 + 1e-6)


def test_a_policy_that_grants_nothing_finds_nothing() -> None:
    graph = JoinGraph.of({"a": 10, "b": 20}, 5.0, {("a", "b"): 0.1}, COSTS)
    idle = shed_by_policy("idle", lambda net, budget: (0.0,) * len(net.links))
    proposal = idle(Overload(ShedForecast(graph), join("a", "b"), 1.0))
    assert (proposal.name, proposal.results) == ("idle", 0)
    assert set(proposal.allowance.probes.values()) == {0.0}


@pytest.mark.parametrize("strategy", [shed_probes, shed_as_printed])
def test_freshness_out_of_reach_is_told(strategy: object) -> None:
    assert callable(strategy)
    graph = JoinGraph.of({"a": 100, "b": 100, "c": 100}, 10.0, {("a", "b"): 0.001, ("b", "c"): 0.001}, COSTS)
    plan = join(replace(join("a", "b"), window=RowWindow(1000)), "c")
    forecast = ShedForecast(graph)
    cost = forecast.estimate_exact(plan)[1]
    roomy = strategy(Overload(forecast, plan, 0.5 * cost, {"a": 600.0}))
    assert not roomy.warnings and roomy.results > 0
    tight = strategy(Overload(forecast, plan, 0.05 * cost, {"a": 15.0}))
    (warning,) = tight.warnings
    assert "as fresh as requested, so stale results will be found and dropped; possible: a " in warning
