"""Slices that are combined in memory give the same results as slices that are searched one by one."""

from __future__ import annotations

from collections import Counter

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import weir
from weir.kernel import slice as slices
from weir.kernel import slice_index
from weir.kernel.slice_index import SliceIndex
from weir.plan.tree import join as tree

SCHEMA = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64(), "n": pa.int64()})
WINDOW = 60
PLANS = {"mjoin": tree("a", "b", "c"), "tree": tree(tree("a", "b"), "c")}


def make_batches(count: int, rows: int) -> list[dict[str, pa.Table]]:
    rng = np.random.default_rng(5)
    batches: list[dict[str, pa.Table]] = []
    for number in range(count):
        tables = {}
        for name in "abc":
            times = np.sort(number * 50 + rng.integers(0, 50, rows))
            columns = [pa.array(times).cast(pa.timestamp("us")), rng.integers(0, 12, rows)]
            numbers = np.arange(rows) + number * rows
            tables[name] = pa.table([*columns, numbers], schema=SCHEMA)
        batches.append(tables)
    return batches


def oracle(batches: list[dict[str, pa.Table]]) -> Counter[tuple[int, ...]]:
    timely = " AND ".join(
        f"greatest(a.ts, b.ts, c.ts) - {s}.ts < INTERVAL {WINDOW} MICROSECONDS" for s in "abc"
    )
    with duckdb.connect() as database:
        for name in "abc":
            database.register(name, pa.concat_tables(batch[name] for batch in batches))
        sql = f"SELECT a.n, b.n, c.n FROM a, b, c WHERE a.k = b.k AND b.k = c.k AND {timely}"
        return Counter(database.sql(sql).fetchall())


@pytest.mark.parametrize("order", ["auto", "timestamp", "round-robin"])
@pytest.mark.parametrize("plan", PLANS)
def test_combined_slices_give_the_results_of_the_join(
    plan: str, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    combined: list[int] = []

    def combine(given: list[slices.Slice], sort: slices.Spec) -> slices.Slice:
        combined.append(len(given))
        return slices.combine_slices(given, sort)

    monkeypatch.setattr(slices, "ROWS", 8)
    monkeypatch.setattr(slice_index, "_STEPS_OF_CALLS", 10**9)
    monkeypatch.setattr(slice_index, "combine_slices", combine)
    batches = make_batches(6, 40)
    query = weir.join(
        streams=dict.fromkeys("abc", SCHEMA),
        on="a.k = b.k AND b.k = c.k",
        within=f"{WINDOW} microseconds",
        select="a.n AS an, b.n AS bn, c.n AS cn",
        plan=PLANS[plan],
        driver_order=order,
    ).start()
    found: Counter[tuple[int, ...]] = Counter()
    for batch in batches:
        found.update(tuple(row.values()) for row in query.process(batch).to_pylist())
    assert found == oracle(batches) and found
    assert len(combined) > 10 and max(combined) > 2


@pytest.mark.parametrize("calls", [0, 10**9])
def test_combined_slices_count_as_visited_each_for_itself(
    calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch of b whose rows reach all ten slices of a, in one slice or one by one."""
    monkeypatch.setattr(slices, "ROWS", 4)
    monkeypatch.setattr(slice_index, "_STEPS_OF_CALLS", calls)
    monkeypatch.setattr(slice_index, "_STEPS_TO_SORT_A_ROW", 10**6)
    query = weir.join(
        streams=dict.fromkeys("ab", SCHEMA), on="a.k = b.k", within="1 second", plan="mjoin"
    ).start()
    times = pa.array(np.arange(40) * 100_000 // 40 * 10).cast(pa.timestamp("us"))
    rows = pa.table([times, np.zeros(40, np.int64), np.arange(40)], schema=SCHEMA)
    query.process(a=rows)
    (kept,) = [
        state["numSlices"] for name, state in query.lastProgress["weir"]["state"].items() if name == "a"
    ]
    query.process(b=rows.slice(39))
    hops = query.lastProgress["weir"]["hops"].values()
    assert sum(hop["slicesVisited"] for hop in hops) == kept > 5


def test_few_probes_and_wide_rows_are_not_worth_combining(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "ROWS", 8)
    monkeypatch.setattr(slice_index, "_STEPS_OF_CALLS", 0)
    query = weir.join(
        streams={"a": SCHEMA, "b": SCHEMA}, on="a.k = b.k", within=f"{WINDOW} microseconds", select="a.n"
    ).start()
    (batch,) = make_batches(1, 100)
    query.process({name: batch[name] for name in "ab"})
    state = list(query.state.of("a"))
    spec = state[0].sorted_by
    assert len(state) > 2 and isinstance(spec, slice_index.ByKey)

    def combine(probes: int, seen: list[slices.Slice] = state) -> list[slices.Slice]:
        return SliceIndex(state).combine(seen, spec, 1, 0, probes)

    assert combine(1) == state
    assert combine(10**6, state[:1]) == state[:1]
    (one,) = combine(10**6)
    assert one.rows == sum(s.rows for s in state) and one.span == (
        min(s.span[0] for s in state),
        max(s.span[1] for s in state),
    )
    monkeypatch.setattr(slice_index, "_BYTES_COPIED_IN_A_STEP", 1)
    assert combine(one.bytes // len(state)) == state, "the rows are too wide for so few probes"
    assert SliceIndex(state, combines=False).combine(state, spec, 1, 0, 10**6) == state
    assert combine(10**6) != state
    monkeypatch.setattr(slice_index, "_MOST_BYTES_COMBINED", one.bytes - 1)
    assert combine(10**6) == state
