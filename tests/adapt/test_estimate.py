from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import weir
from weir.adapt.estimate import estimate_join_graph
from weir.adapt.table_statistics import measure_tables
from weir.plan.choose import choose
from weir.plan.cost import cost
from weir.plan.tree import join
from weir.query.build import query

SECOND = 1_000_000


def table(rows: int, keys: int, seed: int, seconds: int = 100) -> pa.Table:
    rng = np.random.default_rng(seed)
    times = np.sort(rng.integers(0, seconds * SECOND, rows))
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us")),
            "k": rng.integers(0, keys, rows),
            "v": rng.random(rows),
        }
    )


def asked(on: str, within: str = "10 seconds", names: str = "abc", **more: Any) -> Any:
    schemas = {name: table(1, 1, 0).schema for name in names}
    return query(schemas, on=on, within=within, **more)


def test_a_key_that_all_share_is_one_class() -> None:
    graph = estimate_join_graph(
        asked("a.k = b.k AND b.k = c.k"), dict.fromkeys("abc", 10.0), {frozenset("ab"): 0.02}
    )
    assert graph.classes == {frozenset("abc"): pytest.approx(0.02)}
    assert graph.selectivity("abc") == pytest.approx(0.0004)
    assert graph.window_rows("a") == 100


def test_other_conditions_are_edges_and_wide_ones_sets() -> None:
    found = asked("a.k = b.k AND abs(b.v - c.v) <= 0.1 AND a.v + b.v > c.v")
    graph = estimate_join_graph(found, dict.fromkeys("abc", 10.0), {frozenset("bc"): 0.2})
    assert graph.selectivities[frozenset("bc")] == 0.2
    assert graph.narrowing == {frozenset("bc"): 0.2}
    assert graph.selectivity("abc") == pytest.approx(0.01 * 0.2 / 3)


def test_streams_that_only_time_connects_are_connected() -> None:
    found = asked("a.k = b.k", cross=True)
    graph = estimate_join_graph(found, dict.fromkeys("abc", 1.0))
    assert graph.selectivity("a", "c") == 1.0
    assert cost(graph, join("a", "b", "c")).rows == 30


def test_tables_tell_rates_and_selectivities() -> None:
    tables = {"a": table(2000, 50, 1), "b": table(1000, 50, 2), "c": table(500, 50, 3)}
    found = asked("a.k = b.k AND abs(b.v - c.v) <= 0.1 AND a.v < 0.5")
    seen = measure_tables(found, tables)
    assert seen is not None
    assert seen.rates["b"] == pytest.approx(10, rel=0.02)
    assert seen.rates["a"] == pytest.approx(10, rel=0.1), "half of the rows pass the filter"
    assert seen.selectivities[frozenset("ab")] == pytest.approx(1 / 50, rel=0.05)
    assert seen.selectivities[frozenset("bc")] == pytest.approx(0.19, rel=0.1)


def test_a_condition_over_three_streams_alone_connects_them() -> None:
    graph = estimate_join_graph(asked("a.v + b.v > c.v"), dict.fromkeys("abc", 1.0))
    assert graph.selectivity("abc") == pytest.approx(1 / 3)
    assert choose(graph).plan


def test_a_sum_over_two_streams_is_a_key_of_neither() -> None:
    graph = estimate_join_graph(asked("a.k + b.k = c.k"), dict.fromkeys("abc", 1.0))
    assert not graph.classes
    assert graph.selectivity("ac") == 1.0
    assert graph.selectivity("abc") == pytest.approx(0.01)


def test_bounds_on_times_are_tighter_than_windows() -> None:
    found = asked("a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 SECOND", "1 hour", "ab")
    graph = estimate_join_graph(found, dict.fromkeys("ab", 10.0), {frozenset("ab"): 0.01})
    assert graph.window_rows("a") == pytest.approx(10, rel=0.01)
    # Of three streams, c is near b, which may be far from a.
    chain = asked(
        "b.ts BETWEEN a.ts - INTERVAL 5 SECONDS AND a.ts + INTERVAL 1 MINUTE "
        "AND c.ts BETWEEN b.ts AND b.ts + INTERVAL 1 SECOND AND a.k = c.k",
        "1 hour",
    )
    assert estimate_join_graph(chain, dict.fromkeys("abc", 10.0)).selectivity("bc") == pytest.approx(0.1)


def test_two_keys_share_what_is_given_for_their_streams() -> None:
    found = asked("a.k = b.k AND a.v = b.v", names="ab")
    assert estimate_join_graph(found, dict.fromkeys("ab", 1.0), {frozenset("ab"): 0.25}).selectivity(
        "ab"
    ) == pytest.approx(0.25)
    tables = {"a": table(2000, 50, 1), "b": table(2000, 50, 2)}
    doubled = {name: one.set_column(2, "v", one["k"].cast(pa.float64())) for name, one in tables.items()}
    seen = measure_tables(found, doubled)
    assert seen is not None
    assert seen.selectivities[frozenset("ab")] == pytest.approx(1 / 50**2, rel=0.1)


def test_pairs_of_one_class_keep_what_is_given_for_them() -> None:
    given = {frozenset("ab"): 0.5, frozenset("bc"): 0.001}
    graph = estimate_join_graph(asked("a.k = b.k AND b.k = c.k"), dict.fromkeys("abc", 1.0), given)
    assert graph.selectivity("ab") == pytest.approx(0.5)
    assert graph.selectivity("bc") == pytest.approx(0.001)


def test_too_little_tells_nothing() -> None:
    found = asked("a.k = b.k", names="ab")
    assert measure_tables(found, {"a": table(10, 5, 1), "b": table(0, 5, 2)}) is None
    assert measure_tables(found, {"a": table(1, 5, 1, 1), "b": table(1, 5, 1, 1)}) is None


def test_a_stored_row_holds_only_what_is_needed_above_it() -> None:
    found = asked("a.k = b.k AND b.k = c.k", select="a.v, b.k")
    size = estimate_join_graph(found, dict.fromkeys("abc", 1.0)).row_bytes
    assert size is not None
    # Time, key and `v` for a; time and key for c; two times, one key and `v` for both.
    assert (size(frozenset("a")), size(frozenset("c")), size(frozenset("ac"))) == (24, 16, 32)


def test_a_budget_makes_tables_be_measured_and_a_plan_chosen() -> None:
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


def test_a_budget_that_nothing_fits_is_told_and_the_query_still_runs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tables = {name: table(500, 20, i) for i, name in enumerate("abc")}
    on = "a.k = b.k AND b.k = c.k"
    tight = weir.join(streams=tables, on=on, within="10 seconds", budget=weir.Budget(memory="1k"))
    assert "no plan fits the budget" in caplog.text
    assert "exceeds them least" in tight.explanation()
    free = weir.join(streams=tables, on=on, within="10 seconds")
    assert tight.to_arrow().num_rows == free.to_arrow().num_rows > 0


def test_rates_by_hand_choose_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
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


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rates": 10**400}, "must be above zero rows a second"),
        ({"rates": 1, "selectivities": {5: 0.5}}, "maps pairs of streams"),
        ({"rates": 0}, "must be above zero rows a second; got 0"),
        ({"rates": {"a": 1}}, "no rate is given for stream 'b'"),
        ({"rates": {"a": 1, "b": 1, "x": 1}}, "'x'"),
        ({"rates": "many"}, "got 'many'"),
        ({"selectivities": {("a", "b"): 0.5}}, "give rates= too"),
        ({"rates": 1, "selectivities": {("a", "b"): 0}}, "above 0 and at most 1; got 0"),
        ({"rates": 1, "selectivities": {("a", "a"): 0.5}}, "two different streams"),
        ({"rates": 1, "selectivities": {"ab": 0.5}}, "maps pairs of streams"),
        ({"rates": 1, "selectivities": {("a", "z"): 0.5}}, "'z'"),
    ],
)
def test_statistics_of_the_wrong_kind(given: dict[str, Any], message: str) -> None:
    schemas = {name: table(1, 1, 0).schema for name in "ab"}
    with pytest.raises(weir.QueryError, match=message):
        weir.join(streams=schemas, on="a.k = b.k", within="1 second", **given)
