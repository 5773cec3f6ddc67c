"""A running query in this process: it learns, and goes by what it has learned."""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import weir
from weir.local.join import LocalJoin
from weir.local.query import LocalQuery
from weir.plan.tree import join as tree

SECOND = 1_000_000
SCHEMA = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64(), "n": pa.int64()})
COLUMNS = "a.n AS an, b.n AS bn, c.n AS cn"
ON = "a.k = b.k AND b.k = c.k"
WITHIN = 5
# Few results of many combinations, so that probing is nearly all of the work on any machine.
PROBING = f"{ON} AND (a.n + b.n + c.n) % 97 = 0"


class Source:
    """Three streams of known rates, keys and lags, a second at a time."""

    def __init__(self, rates: dict[str, float], keys: int = 50, seed: int = 1) -> None:
        self.rates, self.keys, self.rng = rates, keys, np.random.default_rng(seed)
        self.second = 0
        self.given: dict[str, list[pa.Table]] = {name: [] for name in rates}

    def batch(self) -> dict[str, pa.Table]:
        rows = {}
        for name, rate in self.rates.items():
            count = round(rate)
            times = self.second * SECOND + np.sort(self.rng.integers(0, SECOND, count))
            numbers = self.rng.integers(0, 2**60, count)
            keys = self.rng.integers(0, self.keys, count)
            rows[name] = pa.table([pa.array(times).cast(pa.timestamp("us")), keys, numbers], schema=SCHEMA)
            self.given[name].append(rows[name])
        self.second += 1
        return rows

    def oracle(self, on: str = ON) -> Counter[tuple[int, ...]]:
        """All results, by DuckDB: every row less than a window older than the newest of the three."""
        with self.database() as database:
            return Counter(database.sql(exact_join(on)).fetchall())

    def database(self) -> duckdb.DuckDBPyConnection:
        """All rows so far, as tables of DuckDB's."""
        database = duckdb.connect()
        for name, tables in self.given.items():
            database.register(name, pa.concat_tables(tables))
        return database


def exact_join(on: str = ON) -> str:
    newest = "greatest(a.ts, b.ts, c.ts)"
    timely = " AND ".join(f"{newest} - {s}.ts < INTERVAL {WITHIN} SECONDS" for s in "abc")
    return f"SELECT {COLUMNS} FROM a, b, c WHERE {on} AND {timely}"


def start(on: str = ON, **more: Any) -> LocalQuery:
    asked = weir.join(
        streams=dict.fromkeys("abc", SCHEMA), on=on, within=f"{WITHIN} seconds", select=COLUMNS, **more
    )
    assert isinstance(asked, LocalJoin)
    return asked.start()


def settle(query: LocalQuery) -> None:
    """So that what is decided does not hang on how fast this machine is just now."""
    assert query.controller is not None
    query.controller.wait()


def run(query: LocalQuery, source: Source, batches: int) -> Counter[tuple[int, ...]]:
    found: Counter[tuple[int, ...]] = Counter()
    for _ in range(batches):
        found.update(tuple(row.values()) for row in query.process(source.batch()).to_pylist())
        settle(query)
    return found


def watch(query: LocalQuery, source: Source, batches: int) -> None:
    """The same, where results do not matter."""
    for _ in range(batches):
        query.process(source.batch())
        settle(query)


RATES = {"a": 120.0, "b": 60.0, "c": 30.0}


def test_a_budget_that_suffices_changes_no_result() -> None:
    source, query = Source(RATES), start(budget=weir.Budget(cpu=1.0, memory="1g"))
    assert run(query, source, 12) == source.oracle()
    assert query.lastProgress is not None
    assert query.lastProgress["weir"]["estimatedRecall"] == 1.0
    assert query.lastProgress["weir"]["numRowsShed"] == 0


def test_a_silence_changes_nothing() -> None:
    """No stream has a row for ten minutes, and then they go on as before."""
    source, query = Source({"a": 400.0, "b": 200.0, "c": 100.0}, keys=100), start(budget=weir.Budget(cpu=1.0))
    watch(query, source, 12)
    assert query.lastProgress is not None
    before, rates = query.lastProgress["weir"]["decision"]["orders"], query.statistics.rates
    for _ in range(12):
        source.second += 600 * (source.second == 12)
        watch(query, source, 1)
        assert query.lastProgress["weir"]["decision"]["orders"] == before
        assert query.statistics.rates == pytest.approx(rates, rel=0.02)


def test_a_budget_that_does_not_gives_a_part_of_the_results_once_each() -> None:
    """Half of what the exact join takes, measured beside it, as no two machines take alike."""
    rates, exact = {"a": 600.0, "b": 300.0, "c": 150.0}, start(PROBING)
    works, before = [], Source(rates, keys=40)
    for _ in range(12):
        exact.process(before.batch())
        assert exact.last_report is not None
        works.append(exact.last_report.work)
    source, query = Source(rates, keys=40), start(PROBING, budget=weir.Budget(cpu=0.5 * sorted(works)[6]))
    results: list[pa.Table] = []
    progress: list[dict[str, Any]] = []
    while sum(one["numRowsShed"] > one["numRowsCapped"] for one in progress) < 3 and len(progress) < 40:
        results.append(query.process(source.batch()))
        settle(query)
        assert query.lastProgress is not None
        progress.append(query.lastProgress["weir"])
    exact_results = source.oracle(PROBING)
    found: Counter[tuple[int, ...]] = Counter()
    for table in results:
        found.update(tuple(row.values()) for row in table.to_pylist())
    assert found <= exact_results, "none wrong, none twice"
    assert 0 < found.total() < exact_results.total(), "a part"
    assert all(one["numRowsShed"] == one["numRowsCapped"] for one in progress[:3]), "the first ones calibrate"
    last = progress[-1]
    assert last["numRowsShed"] > 0 and last["estimatedRecall"] < 1
    assert last["decision"]["allowance"]["sample"] > 0
    reasons = [one["decision"]["reason"] for one in progress]
    assert any("of the rows that enter the root probe" in reason for reason in reasons), reasons


@pytest.mark.parametrize("more", [{"adapt": False}, {"allowance": weir.Allowance()}])
def test_it_can_be_turned_off(more: dict[str, Any]) -> None:
    query = start(budget=weir.Budget(cpu=1e-5), **more)
    source = Source(RATES)
    for _ in range(6):
        query.process(source.batch())
    assert query.controller is None and query.statistics.batches == 0
    assert query.lastProgress is not None and query.lastProgress["weir"]["numRowsShed"] == 0
    with pytest.raises(weir.QueryError, match="does not adapt"):
        query.budget = weir.Budget(cpu=0.5)


def test_rates_selectivities_and_lags_are_learned_and_followed() -> None:
    source, query = Source({"a": 400.0, "b": 200.0, "c": 100.0}, keys=100), start(budget=weir.Budget(cpu=1.0))
    watch(query, source, 9)

    def told() -> tuple[dict[str, float], list[float]]:
        known = query.statistics
        return known.rates, list(known.selectivities(query.plan).values())

    rates, shares = told()
    assert rates == {name: pytest.approx(rate, rel=0.1) for name, rate in source.rates.items()}
    assert shares == [pytest.approx(1 / 100, rel=0.15)] * 6
    source.rates = {"a": 100.0, "b": 300.0, "c": 180.0}
    watch(query, source, 5)
    assert told()[0] == {name: pytest.approx(rate, rel=0.15) for name, rate in source.rates.items()}
    lags = query.statistics.lags
    assert lags is not None
    early, late = lags.lags["b"].share(-5, 0), lags.lags["b"].share(0, 5)
    assert 0.25 < early / (early + late) < 0.75


def test_a_plan_changes_while_it_runs_and_no_result_is_lost() -> None:
    """First b and c hardly match and then a and b do not: each time another pair should be joined first."""
    names = ("a", "b", "c")
    on = "a.k = b.k AND b.n % 1000 = c.n % 1000"
    asked = weir.join(
        streams=dict.fromkeys(names, SCHEMA),
        on=on, within=f"{WITHIN} seconds", select=COLUMNS, plan="auto", adapt=True,
    )  # fmt: skip
    assert isinstance(asked, LocalJoin)
    query = asked.start()
    source, found = Source(dict.fromkeys(names, 100.0), keys=3), Counter[tuple[int, ...]]()
    plans = set()
    for keys in (3, 100_000, 3):
        source.keys = keys
        found += run(query, source, 12)
        plans.add(str(query.plan))
    assert found == source.oracle(on)
    assert len(plans) > 1


def test_memory_is_held_by_letting_go_what_is_worth_least() -> None:
    source, allowed = Source(RATES), 9000
    query = start(budget=weir.Budget(memory=allowed), plan="mjoin")
    found: Counter[tuple[int, ...]] = Counter()
    for _ in range(12):
        found += run(query, source, 1)
        assert query.last_report is not None
        assert sum(size.bytes for size in query.last_report.state.values()) <= allowed
    whole = source.oracle()
    assert found and found < whole
    progress = query.lastProgress
    assert progress is not None and progress["weir"]["numRowsShed"] > 0
    recall = progress["weir"]["estimatedRecall"]
    assert recall == pytest.approx(sum(found.values()) / sum(whole.values()), abs=0.2)
    assert progress["weir"]["decision"]["reason"].endswith("; slices are evicted to keep the memory budget")
    query.budget = weir.Budget(memory="1g")
    watch(query, source, 2)
    assert query.lastProgress is not None and query.lastProgress["weir"]["numRowsShed"] == 0
    assert "slices were evicted" in query.lastProgress["weir"]["decision"]["reason"]
    watch(query, source, 10)
    assert query.lastProgress is not None
    reason = query.lastProgress["weir"]["decision"]["reason"]
    assert "evicted" not in reason, "all that is missing has expired"


@pytest.mark.parametrize("fixed", [{"adapt": False}, {"allowance": weir.Allowance({})}], ids=list)
def test_a_query_that_does_not_adapt_keeps_its_memory(fixed: dict[str, Any]) -> None:
    source, query = Source(RATES), start(budget=weir.Budget(memory=9000), plan="mjoin", **fixed)
    for _ in range(8):
        query.process(source.batch())
        assert query.last_report is not None and query.controller is None
        assert sum(size.bytes for size in query.last_report.state.values()) <= 9000
    assert query.lastProgress is not None and query.lastProgress["weir"]["numRowsShed"] > 0


@pytest.mark.parametrize("allowed", [8_000, 30_000, 200_000])
def test_a_small_memory_does_not_make_many_slices(allowed: int) -> None:
    """Every slice probes every other, so many tiny ones take many times the CPU."""
    source = Source({"a": 8000.0, "b": 8000.0, "c": 100.0}, keys=20_000)
    query = start(budget=weir.Budget(memory=allowed), plan="mjoin")
    for _ in range(8):
        watch(query, source, 1)
        assert query.lastProgress is not None
        states = query.lastProgress["weir"]["state"].values()
        assert sum(state["memoryUsedBytes"] for state in states) <= allowed
        assert max(state["numSlices"] for state in states) <= 24


def test_a_batch_that_alone_is_too_large_is_not_the_end() -> None:
    source, query = Source(RATES), start(budget=weir.Budget(memory=100), plan="mjoin")
    found = run(query, source, 4)
    assert found and found < source.oracle(), "rows of one batch still find each other"


def test_memory_that_row_windows_exceed_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    asked = weir.join(
        streams=dict.fromkeys("abc", SCHEMA), on=ON, within=weir.rows(50), budget=weir.Budget(memory="2k")
    )
    assert isinstance(asked, LocalJoin)
    watch(asked.start(), Source(RATES), 6)
    told = [record.message for record in caplog.records if "row windows are never evicted" in record.message]
    assert len(told) == 1 and "budget of 2 KiB" in told[0]


def test_rests_of_what_was_let_go_fit_though_a_stream_is_silent() -> None:
    source, query = Source({**RATES, "c": 0.0}), start(budget=weir.Budget(memory=9000), plan="mjoin")
    held = []
    for _ in range(24):
        query.process(source.batch())
        assert query.last_report is not None
        held.append(sum(size.bytes for size in query.last_report.state.values()))
    assert query.last_report is not None and query.last_report.watermark is None
    assert 0 < max(held) <= 9000 and query.manifest.recall.batch is None


def test_a_budget_is_never_nothing() -> None:
    query = start(budget=weir.Budget(cpu=0.5))
    with pytest.raises(weir.QueryError, match=r"a budget is written weir\.Budget\(.*; got None"):
        query.budget = None  # type: ignore[assignment]
    query.process(Source(RATES).batch())


def test_the_oldest_age_put_out_is_told() -> None:
    source, query = Source(RATES), start(fresh="6 seconds")
    ages = []
    for _ in range(10):
        query.process(source.batch())
        assert query.lastProgress is not None
        ages.append(query.lastProgress["weir"]["oldestAge"])
    assert ages[0] == 0, "what came with this batch"
    assert 4 * SECOND < max(ages) <= 6 * SECOND
    assert start().process(source.batch()) is not None


def test_by_hand_the_plan_stays() -> None:
    plan = tree(tree("a", "c"), "b")
    # Few keys, so that probing is nearly all of the work.
    source = Source({"a": 800.0, "b": 400.0, "c": 200.0}, keys=40)
    query = start(budget=weir.Budget(cpu=1e-5), plan=plan)
    watch(query, source, 8)
    assert query.plan == plan
    assert any(one["weir"]["numRowsShed"] > 0 for one in query.recentProgress)
