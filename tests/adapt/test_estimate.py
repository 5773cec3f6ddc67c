from __future__ import annotations

import pyarrow as pa
import pytest
from tests.adapt.tables import asked, table

from weir.adapt.estimate import estimate_join_graph
from weir.adapt.table_statistics import measure_tables
from weir.plan.choose import choose
from weir.plan.cost import cost
from weir.plan.tree import join

SECOND = 1_000_000


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


def test_a_stored_row_holds_only_what_is_needed_above_it() -> None:
    found = asked("a.k = b.k AND b.k = c.k", select="a.v, b.k")
    size = estimate_join_graph(found, dict.fromkeys("abc", 1.0)).row_bytes
    assert size is not None
    # Time, key and `v` for a; time and key for c; two times, one key and `v` for both.
    assert (size(frozenset("a")), size(frozenset("c")), size(frozenset("ac"))) == (24, 16, 32)
