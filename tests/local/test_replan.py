"""Going over to another plan: what is made, how much of it in one batch, what is said, what is refused."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import weir
from weir.errors import QueryError
from weir.kernel import plan_migration as migrate
from weir.kernel.decision import Decision
from weir.kernel.migration_state import MigrationState
from weir.local.query import LocalQuery
from weir.plan.tree import Join, hops
from weir.plan.tree import join as tree
from weir.query.windows import TimeWindow
from weir.shed.allowance import Allowance
from weir.stats.batch_counts import BatchCounts

SCHEMA = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64(), "id": pa.int64()})
MJOIN, BUSHY = tree("a", "b", "c", "d"), tree(tree("a", "b"), tree("c", "d"))
DEEP = tree(tree("a", "b", "c"), "d")
ASKED: dict[str, Any] = {"on": "a.k = b.k AND b.k = c.k AND c.k = d.k", "within": "20 seconds"}


def started(plan: Join, **changes: Any) -> LocalQuery:
    select = ", ".join(f"{name}.id AS {name}" for name in plan.streams)
    return weir.join(
        streams=dict.fromkeys(plan.streams, SCHEMA), **{**ASKED, **changes}, select=select, plan=plan
    ).start()


def batch(number: int, streams: str = "abcd") -> dict[str, pa.Table]:
    """Sixty rows a second of each stream, of two hundred keys."""
    rng = np.random.default_rng(number)

    def table() -> pa.Table:
        times = rng.integers(number * 1_000_000, (number + 1) * 1_000_000, 60)
        columns = {"ts": times, "k": rng.integers(0, 200, 60), "id": number * 60 + np.arange(60)}
        return pa.table({n: pa.array(c).cast(SCHEMA.field(n).type) for n, c in columns.items()}, SCHEMA)

    return {name: table() for name in streams}


def held(query: LocalQuery, node: str) -> Counter[tuple[Any, ...]]:
    """The rows of a state."""
    rows = [one.data.to_pylist() for one in query.state.of(node)]
    return Counter(tuple(sorted(row.items())) for found in rows for row in found)


def decided(query: LocalQuery) -> dict[str, Any]:
    assert query.lastProgress is not None
    found: dict[str, Any] = query.lastProgress["weir"]["decision"]
    return found


def test_the_states_are_those_of_a_query_that_never_had_another_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate, "MIN_MIGRATION_STEPS", 4_000)
    monkeypatch.setattr(migrate, "MIGRATION_SHARE", 0.0)
    query, reference = started(MJOIN), started(DEEP)
    # What the new plan may do once it is active is nothing to what is made for it.
    nothing = Allowance(dict.fromkeys(hops(DEEP), 0.0))
    half_way = 0
    for number in range(18):
        if number == 5:
            query.replan(DEEP, allowance=nothing, reason="pairs are few")
        query.process(batch(number))
        if decided(query)["plan"] == str(DEEP):
            break
        reference.process(batch(number))
        half_way += any(0 < share < 1 for share in decided(query)["building"].values())
    assert half_way > 1 and decided(query)["reason"] == "pairs are few"
    assert held(query, "(a b c)") == held(reference, "(a b c)") != Counter()


def test_the_order_of_the_streams_is_for_the_active_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate, "MIN_MIGRATION_STEPS", 4_000)
    monkeypatch.setattr(migrate, "MIGRATION_SHARE", 0.0)
    # By the first d does not look, and by the second a.
    first, second = (
        Allowance({hop: 0.0 for hop in hops(plan) if hop.driver == idle})
        for plan, idle in ((MJOIN, "d"), (DEEP, "a"))
    )
    query, began = started(MJOIN, allowance=first), Counter[tuple[str, str]]()
    for number in range(18):
        if number == 5:
            query.replan(DEEP, allowance=second)
        query.process(batch(number))
        assert query.last_report is not None and query.last_report.order is not None
        began[decided(query)["plan"], query.last_report.order[0]] += 1
    # The order is fixed before the batch in which the last state is built, and the new plan takes over.
    assert began.pop((str(DEEP), "d")) == 1
    assert set(began) == {(str(MJOIN), "d"), (str(DEEP), "a")} and began[str(MJOIN), "d"] > 5


def test_what_was_given_up_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate, "MIN_MIGRATION_STEPS", 4_000)
    monkeypatch.setattr(migrate, "MIGRATION_SHARE", 0.0)
    query, reference = started(MJOIN), started(BUSHY)
    given_up = None
    for number in range(19):
        if number == 5 or (given_up and number == given_up + 2):
            query.replan(BUSHY)
        assert query.process(batch(number)).num_rows == reference.process(batch(number)).num_rows
        shares = decided(query)["building"]
        if given_up is None and shares.get("(a b)") == 1 != shares["(c d)"]:
            query.replan(DEEP)
            given_up = number
    assert given_up and decided(query)["plan"] == str(BUSHY)
    for node in map(str, BUSHY.inputs):
        assert held(query, node) == held(reference, node) != Counter()


def test_a_batch_makes_no_more_than_it_may() -> None:
    query = started(MJOIN)
    for number in range(12):
        query.process(batch(number))
    migration, counts = MigrationState(MJOIN), BatchCounts()
    for _ in range(3):
        decision = Decision(BUSHY, "auto", migration_steps=2000)
        found = migrate.prepare_plan(
            migrate.PhysicalPlans(query.query), migration, query.state, decision, 12, counts
        )
        migration = found.migration
    assert migration.plan == MJOIN and migration.building is not None
    assert 3 * 1000 < migration.building.steps < 3 * 3000


def test_other_probing_orders_are_taken_at_once() -> None:
    query = started(MJOIN)
    query.process(batch(0))
    orders = [[3, 2, 1], [3, 2, 0], [3, 1, 0], [2, 1, 0]]
    query.replan(tree("a", "b", "c", "d", orders=orders))
    query.process(batch(1))
    assert not decided(query)["building"] and query.last_report is not None
    assert not query.last_report.counts.migration_hops


def test_what_is_not_a_plan_is_refused() -> None:
    query = started(MJOIN)
    with pytest.raises(QueryError, match=r"a plan is made with weir\.plan\.join; got 'mjoin'"):
        query.replan("mjoin")  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="must hold each stream of the query once"):
        query.replan(tree("a", "b"))
    with pytest.raises(QueryError, match=r"which the plan .* does not have"):
        query.replan(BUSHY, allowance=Allowance(dict.fromkeys(hops(MJOIN), 0.5)))


def test_windows_of_rows_and_of_joins_keep_their_plan() -> None:
    rows = started(MJOIN, within={**dict.fromkeys("abc", "20 seconds"), "d": weir.rows(5)})
    with pytest.raises(QueryError, match=r"cannot switch .* stream 'd' has a window of rows"):
        rows.replan(BUSHY)
    rows.replan(tree("a", "b", "c", "d", orders=[[3, 2, 1], [3, 2, 0], [3, 1, 0], [2, 1, 0]]))
    own = Join(BUSHY.inputs[:1] + tree("c", "d").inputs, ((1, 2), (0, 2), (0, 1)))
    inner = own.inputs[0]
    assert isinstance(inner, Join)
    windowed = Join((Join(inner.inputs, inner.orders, TimeWindow(5)), *own.inputs[1:]), own.orders)
    with pytest.raises(QueryError, match=r"cannot switch .* windows of their own"):
        started(MJOIN).replan(windowed)


def test_the_state_can_be_read_while_a_plan_is_migrated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate, "MIN_MIGRATION_STEPS", 10)
    monkeypatch.setattr(migrate, "MIGRATION_SHARE", 0.0)
    query = started(MJOIN)
    for number in range(4):
        query.process(batch(number))
    query.replan(BUSHY)
    query.process(batch(4))
    assert query.plan == MJOIN and set(query.state.slices) > set(query.query.names)


def test_a_refused_batch_after_a_replan_loses_no_state() -> None:
    query = started(DEEP, on_null_time="fail")
    query.process(batch(0))
    before = held(query, "(a b c)")
    query.replan(MJOIN)
    name = query.query.names[0]
    rows = batch(1)[name]
    without_time = rows.set_column(0, "ts", pa.nulls(rows.num_rows, rows.schema.field("ts").type))
    with pytest.raises(weir.QueryError, match="without a time"):
        query.process({name: without_time})
    assert held(query, "(a b c)") == before
    query.replan(DEEP)
    query.process(batch(1))
