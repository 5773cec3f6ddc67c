from __future__ import annotations

import pytest
from tests.adapt.tables import table

import weir


def test_with_a_budget_tables_are_measured_and_a_plan_is_chosen() -> None:
    tables = {"a": table(2000, 5, 1), "b": table(2000, 2000, 2), "c": table(2000, 2000, 3)}
    generous = weir.join(
        streams=tables,
        on="a.k = b.k AND b.k = c.k",
        within="10 seconds",
        budget=weir.Budget(memory="1g"),
    )
    assert generous.planned.choice is not None
    assert generous.planned.choice.qualified
    assert "why: it fits the limits" in generous.explanation()


def test_a_budget_that_no_plan_fits_is_warned_of_and_the_query_runs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tables = {name: table(500, 20, i) for i, name in enumerate("abc")}
    on = "a.k = b.k AND b.k = c.k"
    tight = weir.join(streams=tables, on=on, within="10 seconds", budget=weir.Budget(memory="1k"))
    assert "no plan fits the budget" in caplog.text
    assert "exceeds them least" in tight.explanation()
    free = weir.join(streams=tables, on=on, within="10 seconds")
    assert tight.to_arrow().num_rows == free.to_arrow().num_rows > 0


def test_given_rates_decide_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    schemas = {name: table(1, 1, 0).schema for name in "abc"}
    found = weir.join(
        streams=schemas,
        on="a.k = b.k AND abs(b.v - c.v) <= 0.5",
        within="10 seconds",
        rates={"a": 100, "b": 100, "c": 1000},
        selectivities={("a", "b"): 0.001, ("b", "c"): 0.75},
    )
    assert str(found.planned.plan) in ("((a b) c)", "(c (a b))")
    text = found.explanation()
    assert "found by exhaustive search" in text
    assert "the mjoin (a b c) would take" in text
    found.explain("mermaid")
    assert capsys.readouterr().out.startswith("flowchart TB")
