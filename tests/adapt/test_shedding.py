from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import weir
from weir.adapt.estimate import estimate_join_graph
from weir.adapt.plan_estimator import PlanEstimator
from weir.adapt.shedding import choose_shedding
from weir.local.join import LocalJoin
from weir.plan.cost import cost
from weir.plan.limits import Limits
from weir.plan.tree import hops, join
from weir.query.build import build_query
from weir.query.options import QueryOptions
from weir.query.windows import RowWindow
from weir.stats.unit_costs import TYPICAL

SECOND = 1_000_000
SCHEMA = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64(), "v": pa.float64()})
ON = "a.k = b.k AND b.k = c.k"
RATES = {"a": 2000.0, "b": 2000.0, "c": 2000.0}


def test_what_fits_is_not_shed_and_what_does_not_is_within_the_limit() -> None:
    found = build_query(dict.fromkeys("abc", SCHEMA), QueryOptions(on=ON, within="10 seconds"))
    graph = estimate_join_graph(found, RATES, {frozenset("ab"): 0.01, frozenset("bc"): 0.01}, TYPICAL)
    plan = join("a", "b", "c")
    needed = cost(graph, plan).cpu
    assert choose_shedding(PlanEstimator(found, graph), plan, Limits(cpu=needed * 1.01)) is None
    half, tenth = (
        choose_shedding(PlanEstimator(found, graph), plan, Limits(cpu=needed * share)) for share in (0.5, 0.1)
    )
    assert half is not None and tenth is not None
    assert 0 < tenth.recall < half.recall < 1
    assert half.recall > 0.4, "half of the time gives about half of the results, or more"
    samples = [one.allowance.sample for one in (half, tenth)]
    assert samples == pytest.approx([0.05 * 0.5, 0.05 * 0.1], rel=0.05), "a twentieth of what is allowed"


def test_probes_are_not_skipped_where_that_would_save_next_to_nothing() -> None:
    found = build_query(dict.fromkeys("abc", SCHEMA), QueryOptions(on=ON, within="10 seconds"))
    plan = join("a", "b", "c")
    selectivities = {frozenset("ab"): 0.01, frozenset("bc"): 0.01}
    few = estimate_join_graph(found, dict.fromkeys("abc", 2.0), selectivities, TYPICAL)
    assert choose_shedding(PlanEstimator(found, few), plan, Limits(cpu=0.1 * cost(few, plan).cpu)) is None
    many = estimate_join_graph(found, RATES, selectivities, TYPICAL)
    some = choose_shedding(PlanEstimator(found, many), plan, Limits(cpu=0.1 * cost(few, plan).cpu))
    assert some is not None and some.recall < 0.2 and len(some.warnings) == 1


def test_a_budget_and_rates_shed_from_the_start_and_say_so() -> None:
    tight = weir.Budget(cpu=0.02)
    found = weir.join(
        streams=dict.fromkeys("abc", SCHEMA),
        on=ON,
        within="10 seconds",
        select="a.k, a.v AS av, b.v AS bv, c.v AS cv",
        rates=RATES,
        selectivities={("a", "b"): 0.01, ("b", "c"): 0.01},
        budget=tight,
        adapt=False,
    )
    assert found.planned.shedding is not None
    assert "shedding by jaqpot keeps about" in found.explanation()
    # The least there is, as so little is allowed.
    assert "\n     sample: 0.2% of rows probe everything" in found.explanation()
    exact = weir.join(
        streams=dict.fromkeys("abc", SCHEMA),
        on=ON,
        within="10 seconds",
        select="a.k, a.v AS av, b.v AS bv, c.v AS cv",
    )
    rng = np.random.default_rng(1)
    few, all_of_them = found.start(), exact.start()
    kept: list[tuple[object, ...]] = []
    whole: set[tuple[object, ...]] = set()
    for second in range(6):
        times = second * SECOND + np.sort(rng.integers(0, SECOND, 100))
        rows = {
            name: pa.table(
                [pa.array(times).cast(pa.timestamp("us")), rng.integers(0, 20, 100), rng.random(100)],
                schema=SCHEMA,
            )
            for name in "abc"
        }
        kept += [tuple(row.values()) for row in few.process(rows).to_pylist()]
        whole |= {tuple(row.values()) for row in all_of_them.process(rows).to_pylist()}
    assert len(kept) == len(set(kept))
    assert set(kept) < whole
    assert few.lastProgress["weir"]["numRowsShed"] > 0
    decision = few.lastProgress["weir"]["decision"]
    assert decision["allowance"]["sample"] == 0.002 and min(decision["allowance"]["probes"].values()) < 1
    assert decision["reason"] == "the plan exceeds the CPU limit, so some work is shed"
    assert all_of_them.lastProgress["weir"]["decision"]["allowance"] is None


@pytest.mark.parametrize(
    ("shed", "told"),
    [
        ("thin", "% of arriving rows probe"),
        ("jaqpot", "% of arriving rows probe"),
        ("jaqpot-printed", "% of arriving rows probe"),
        ("grepp", "% of arriving rows probe"),
        ("harvest", "partners aged up to"),
        ("random-drop", "% of rows dropped"),
        ("auto", "shedding by"),
    ],
)
def test_the_way_asked_for_is_taken(shed: Any, told: str) -> None:
    """A nested loop over a few streams: half of its CPU is allowed."""

    def asked(cpu: float, **more: Any) -> LocalJoin:
        found = weir.join(
            streams=dict.fromkeys("abc", SCHEMA),
            on="a.v * b.v > 0.9 AND b.v * c.v > 0.9",
            within="10 seconds",
            rates=dict.fromkeys("abc", 500.0),
            selectivities={("a", "b"): 0.002, ("b", "c"): 0.002},
            budget=weir.Budget(cpu=cpu),
            **more,
        )
        assert isinstance(found, LocalJoin)
        return found

    whole = asked(1.0, plan="mjoin").planned.cost
    assert whole is not None
    found = asked(min(1.0, whole.cpu / 2), shed=shed, **({} if shed != "auto" else {"plan": "mjoin"}))
    if shed in ("auto", "harvest", "random-drop"):
        assert len(found.planned.plan.inputs) == 3
    assert found.planned.shedding is not None and 0.1 < found.planned.shedding.recall < 1
    assert told in found.explanation()
    assert (found.query.basic is not None) == (shed == "harvest")
    assert found.start().process({}).num_rows == 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            {"shed": "jackpot"},
            "unknown strategy 'jackpot' in shed=; did you mean 'jaqpot'[?] Known: 'auto', 'thin', 'jaqpot', "
            "'jaqpot-printed', 'grepp', 'harvest', 'random-drop'$",
        ),
        ({"basic": "11 seconds"}, "do not fit into the longest window, 10 seconds of stream 'a'"),
        ({"basic": "1 millisecond"}, "into more than 1000; make them longer"),
        ({"basic": "0 seconds"}, "must be longer than zero; got 0 seconds"),
        ({"basic": 2}, "basic= is a length of time, like '2 seconds'; got 2"),
        (
            {"shed": "harvest", "plan": join(join("a", "b"), "c")},
            "in an mjoin, not in the tree .*; use plan='mjoin' or shed='jaqpot'",
        ),
        ({"shed": "harvest", "within": "50 rows"}, "stream 'a' has a window of rows"),
    ],
)
def test_what_cannot_be_shed_so_is_refused(more: dict[str, Any], message: str) -> None:
    given = {"within": "10 seconds", "rates": 1e6, "budget": weir.Budget(cpu=0.01), **more}
    with pytest.raises(weir.QueryError, match=message):
        weir.join(streams=dict.fromkeys("abc", SCHEMA), on=ON, **given)


@pytest.mark.parametrize(
    ("on", "within"),
    [
        ("a.k = b.k AND b.k = c.k", {"a": "1 second", "b": "1 hour", "c": "1 minute"}),
        (
            "a.k = b.k AND b.k = c.k AND b.ts BETWEEN a.ts + INTERVAL 5 SECONDS AND a.ts + INTERVAL 1 MINUTE",
            {"a": "10 minutes", "c": "10 minutes"},
        ),
    ],
    ids=["very different windows", "rows that are never stored"],
)
@pytest.mark.parametrize("shed", ["auto", "harvest"])
def test_any_windows_of_time_can_be_shed(on: str, within: Any, shed: Any) -> None:
    found = weir.join(
        streams=dict.fromkeys("abc", SCHEMA),
        on=on,
        within=within,
        rates=2000,
        budget=weir.Budget(cpu=0.001),
        plan="mjoin",
        shed=shed,
    )
    assert isinstance(found, LocalJoin)
    assert found.planned.shedding is not None and found.planned.shedding.recall > 0


def test_a_budget_reaches_plans_whose_joins_have_windows_of_their_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Their states hold the last rows, and starve if they are not refreshed."""

    def asked(fresh: str, cpu: float) -> LocalJoin:
        found = weir.join(
            streams=dict.fromkeys("abc", SCHEMA),
            on=ON,
            within="10 seconds",
            fresh=fresh,
            plan=join(replace(join("a", "b"), window=RowWindow(5000)), "c"),
            rates=RATES,
            selectivities={("a", "b"): 0.001, ("b", "c"): 0.001},
            budget=weir.Budget(cpu=cpu),
        )
        assert isinstance(found, LocalJoin)
        return found

    roomy = asked("1 hour", 0.02)
    assert roomy.planned.shedding is not None and 0 < roomy.planned.shedding.recall < 1
    assert "shedding by jaqpot keeps about" in roomy.explanation()
    assert "as fresh as requested" not in caplog.text
    assert asked("10 seconds 1 millisecond", 0.01).planned.shedding is not None
    assert "as fresh as requested, so stale results will be found and dropped; possible: a 1" in caplog.text


def test_an_allowance_given_by_hand_is_explained() -> None:
    plan = join("a", "b", "c")
    first, *_ = hops(plan)
    found = weir.join(
        streams=dict.fromkeys("abc", SCHEMA),
        on=ON,
        within="10 seconds",
        plan=plan,
        allowance=weir.Allowance({first: 0.25}, sample=0.005),
    )
    assert found.explanation().endswith(
        "shedding by the given allowance:\n"
        "     a ⋉ b in (a b c): 25% of arriving rows probe\n"
        "     sample: 0.5% of rows probe everything"
    )


def test_tables_are_joined_whole(caplog: pytest.LogCaptureFixture) -> None:
    rng = np.random.default_rng(2)
    tables = {
        name: pa.table(
            {
                "ts": pa.array(np.sort(rng.integers(0, 9 * SECOND, 300)), pa.timestamp("us")),
                "k": rng.integers(0, 9, 300),
                "v": rng.random(300),
            }
        )
        for name in "abc"
    }
    tight = weir.join(streams=tables, on=ON, within="5 seconds", budget=weir.Budget(cpu=1e-6))
    assert "no plan fits the budget" in caplog.text
    free = weir.join(streams=tables, on=ON, within="5 seconds")
    assert tight.to_arrow().num_rows == free.to_arrow().num_rows > 0
