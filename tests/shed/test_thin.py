"""Thinning: the root's first hops share one hash share, and recall is that share in any plan."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weir
from weir.local.join import LocalJoin
from weir.plan.tree import Join, hops, join
from weir.query.windows import RowWindow
from weir.shed.expected import ShedForecast
from weir.shed.strategies import choose_strategy
from weir.shed.thin import thin
from weir.stats.join_graph import JoinGraph
from weir.stats.unit_costs import UnitCosts

from .test_hop_network import plans

SECOND = 1_000_000
PLANS = {
    "mjoin": join("a", "b", "c"),
    "tree": join(join("a", "b"), "c"),
    "deep": join(join("a", "b", "c"), "d"),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_only_the_first_hop_of_each_input_of_the_root_is_thinned(plan: Join) -> None:
    allowance = thin(plan, 0.25, sample=0.01)
    allowance.check(plan)
    assert [hop.driver for hop in allowance.probes] == [str(child) for child in plan.inputs]
    assert {hop.node for hop in allowance.probes} == {str(plan)}
    for hop in allowance.probes:
        first = next(other for other in hops(plan) if (other.driver, other.node) == (hop.driver, hop.node))
        assert hop == first
    assert (set(allowance.probes.values()), allowance.choose, allowance.sample) == ({0.25}, "hash", 0.01)


@settings(max_examples=60, deadline=None)
@given(plans(), st.floats(0.01, 1))
def test_results_and_cost_fall_in_a_line(drawn: tuple[JoinGraph, Join], share: float) -> None:
    graph, plan = drawn
    forecast = ShedForecast(replace(graph, costs=UnitCosts(probe=1e-6, match=1e-7)))
    (_, least), (results, most) = (forecast.estimate(plan, thin(plan, z)) for z in (0.0, 1.0))
    found, spent = forecast.estimate(plan, thin(plan, share))
    assert found == pytest.approx(share * results, rel=1e-6)
    assert spent == pytest.approx(least + share * (most - least), rel=1e-6)
    # The strategy solves for the share.
    proposal = choose_strategy(forecast, plan, spent * (1 + 1e-9), "thin")
    assert proposal.results == pytest.approx(found, rel=1e-3, abs=1e-6 * results)


def test_a_tree_whose_inner_joins_take_the_budget_finds_nothing_and_says_so() -> None:
    graph = JoinGraph.of(
        {"a": 100, "b": 100, "c": 0.1}, 10, {("a", "b"): 0.1, ("b", "c"): 0.1}, UnitCosts(match=1e-4)
    )
    forecast, plan = ShedForecast(graph), join(join("a", "b"), "c")
    proposal = choose_strategy(forecast, plan, 0.1 * forecast.estimate_exact(plan)[1], "thin")
    assert set(proposal.allowance.probes.values()) == {0.0} and proposal.results == 0
    (warning,) = proposal.warnings
    assert "so thinning finds nothing; use plan='mjoin' or shed='jaqpot'" in warning


def run(plan: Join, within: Any, allowance: weir.Allowance | None) -> list[tuple[Any, ...]]:
    names = plan.streams
    schema = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64(), "id": pa.int64()})
    pairs = [f"{left}.k = {right}.k" for left, right in pairwise(names)]
    asked = weir.join(
        streams=dict.fromkeys(names, schema), on=" AND ".join(pairs), within=within, plan=plan,
        select=", ".join(f"{name}.id AS {name}" for name in names), allowance=allowance,
    )  # fmt: skip
    assert isinstance(asked, LocalJoin)
    query, rng, results = asked.start(), np.random.default_rng(3), []
    for second in range(6):
        rows = {}
        for name in names:
            times = second * SECOND + np.sort(rng.integers(0, SECOND, 150))
            ids = np.arange(150) + 150 * second
            rows[name] = pa.table(
                [pa.array(times, pa.timestamp("us")), rng.integers(0, 100, 150), ids], schema=schema
            )
        results += [tuple(row.values()) for row in query.process(rows).to_pylist()]
    return results


@pytest.mark.parametrize("within", ["2 seconds", RowWindow(300)], ids=["time", "rows"])
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_recall_is_the_share_in_any_plan_and_window(plan: Join, within: Any) -> None:
    exact = run(plan, within, None)
    assert len(exact) > 3_000
    for share in (0.2, 0.6):
        found = run(plan, within, thin(plan, share))
        assert len(found) == len(set(found)) and set(found) <= set(exact)
        # By far most of the noise is from rows that find many results each.
        assert len(found) / len(exact) == pytest.approx(share, abs=0.04)
    assert sorted(run(plan, within, thin(plan, 1.0))) == sorted(exact)
