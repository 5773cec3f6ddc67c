"""The estimated recall is near the true one, and says nothing where it knows nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import weir
from weir.adapt.recall import Recall
from weir.codec import from_json, to_json
from weir.local.query import LocalQuery
from weir.plan.tree import Join, hops, join
from weir.query.windows import RowWindow, TimeWindow
from weir.shed.ages import Ages
from weir.shed.allowance import Allowance
from weir.stats.hop import Hop, HopStats

SCHEMA = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64()})
MJOIN = join("a", "b", "c")
TREE = join(join("a", "b"), "c")
SAMPLED = Allowance(sample=0.1)


def started(plan: Join, allowance: Allowance | None) -> LocalQuery:
    return weir.join(
        streams=dict.fromkeys("abc", SCHEMA),
        on="a.k = b.k AND b.k = c.k",
        select="a.k",
        within=TimeWindow(3000),
        plan=plan,
        allowance=allowance,
    ).start()


def batches(count: int, rows: int, first: int = 0) -> Iterator[dict[str, pa.Table]]:
    """A batch is a third of a window."""
    rng = np.random.default_rng(1)
    for n in range(first, first + count):
        times = {name: np.sort(1000 * n + rng.integers(0, 1000, rows)) for name in "abc"}
        yield {
            name: pa.table({"ts": ts, "k": rng.integers(0, 40, rows)}).cast(SCHEMA)
            for name, ts in times.items()
        }


@pytest.mark.parametrize(
    "skipped",
    [
        Allowance(ages={hop: Ages(600, frozenset({1, 2})) for hop in hops(MJOIN)}, sample=0.1),
        Allowance(drop={"a": 0.5, "b": 0.2}),
        Allowance(drop={"c": 0.4}, ages={hops(MJOIN)[0]: Ages(600, frozenset({0}))}, sample=0.1),
    ],
    ids=["ages", "drops", "both"],
)
def test_ages_not_looked_at_and_rows_dropped_count(skipped: Allowance) -> None:
    shed, whole = started(MJOIN, skipped), started(MJOIN, None)
    emitted = exact = 0.0
    for tables in batches(15, 200):
        emitted = 0.9 * emitted + shed.process(tables).num_rows
        exact = 0.9 * exact + whole.process(tables).num_rows
    assert shed.last_report is not None and shed.last_report.recall is not None
    assert emitted / exact < 0.8
    assert shed.last_report.recall == pytest.approx(emitted / exact, rel=0.25)


@pytest.mark.parametrize("choose", ["newest", "hash"])
@pytest.mark.parametrize("plan", [MJOIN, TREE], ids=["mjoin", "tree"])
def test_the_estimate_is_near_the_truth(plan: Join, choose: Any) -> None:
    """Within a quarter of it: over other seeds its error has a standard deviation of 4 to 8 in a hundred."""
    shed = started(plan, Allowance(dict.fromkeys(hops(plan), 0.5), choose, sample=0.1))
    whole = started(plan, None)
    emitted = exact = 0.0
    for tables in batches(15, 200):
        emitted = 0.9 * emitted + shed.process(tables).num_rows
        exact = 0.9 * exact + whole.process(tables).num_rows
    assert shed.last_report is not None and shed.lastProgress is not None
    assert 0.1 < emitted / exact < 0.5
    assert shed.last_report.recall == pytest.approx(emitted / exact, rel=0.25)
    assert shed.lastProgress["weir"]["estimatedRecall"] == shed.last_report.recall
    assert [one["weir"]["estimatedRecall"] for one in whole.recentProgress] == [1.0] * 15


def told(query: LocalQuery, count: int, first: int = 0) -> list[float | None]:
    found = []
    for tables in batches(count, 40, first):
        query.process(tables)
        assert query.last_report is not None
        found.append(query.last_report.recall)
    return found


def test_without_a_sample_nothing_is_known_until_what_was_skipped_has_left_the_windows() -> None:
    query = started(MJOIN, Allowance(dict.fromkeys(hops(MJOIN), 0.5)))
    assert told(query, 2) == [None, None]
    query.allow(None)
    # A window is as long as three batches; in the fourth, all depends on when their last rows came.
    assert told(query, 3, first=2) == [None, None, None]
    assert told(query, 3, first=5)[1:] == [1.0, 1.0]
    query.allow(Allowance(dict.fromkeys(hops(MJOIN), 0.5), sample=0.5))
    (known,) = told(query, 1, first=8)
    assert known is not None and known < 1


def test_a_stream_that_stays_behind_may_still_miss_what_was_skipped() -> None:
    query = started(MJOIN, Allowance(dict.fromkeys(hops(MJOIN), 0.5)))
    told(query, 2)
    query.allow(None)
    for tables in batches(8, 40, first=2):
        query.process({**tables, "c": tables["c"].slice(0, 0)})
        assert query.last_report is not None and query.last_report.recall is None
    assert told(query, 2, first=10)[1] == 1.0


def test_no_clock_tells_when_windows_of_rows_have_forgotten() -> None:
    plan = join("a", "b")
    (hop,) = path("a", "(a b)", "b")
    skipped, later = Recall().after(plan, {hop: HopStats(skipped=9)}, None, clock=(0, 1)), (10**7, 10**8)
    found, since = skipped, 0
    while found.estimate(plan) is None:
        found, since = found.after(plan, {hop: HopStats(matches=9)}, None, clock=later), since + 1
    assert since == 44
    quiet = skipped.after(plan, {hop: HopStats(matches=9)}, None, clock=later, keep=10**6)
    assert quiet.estimate(plan) == 1.0


@pytest.mark.parametrize(
    ("window", "passed", "found"),
    [
        (TimeWindow(5_000), 7_000, None),
        (TimeWindow(5_000), 9_000, 1.0),
        (RowWindow(9), 10**9, None),
        (None, 4_000, 1.0),
    ],
)
def test_what_a_join_keeps_in_a_window_of_its_own_is_missed_as_long(
    window: TimeWindow | RowWindow | None, passed: int, found: float | None
) -> None:
    plan = join(replace(join("a", "b"), window=window), "c")
    skipped = Recall().after(plan, {}, Allowance(drop={"a": 0.5}), clock=(0, 0))
    after = skipped.after(plan, {}, None, clock=(passed, passed), keep=3_000)
    assert after.estimate(plan) == found


def test_open_gates_and_a_sample_are_the_whole_join() -> None:
    assert told(started(TREE, Allowance(sample=0.5)), 2) == [1.0, 1.0]


def path(driver: str, node: str, *partners: str) -> list[Hop]:
    return [Hop(driver, node, partner) for partner in partners]


def test_what_is_missing_below_is_missing_above() -> None:
    """Worked by hand: of 200 pairs 100 are made, and of what they would give a quarter is kept."""
    (a,), (b,) = path("a", "(a b)", "b"), path("b", "(a b)", "a")
    (c,), (pair,) = path("c", "((a b) c)", "(a b)"), path("(a b)", "((a b) c)", "c")
    per_hop = {
        a: HopStats(matches=60, skipped=9, sampled_matches=16),  # of 160
        b: HopStats(matches=40),  # nothing skipped: of 40
        c: HopStats(matches=30, skipped=5, sampled_matches=2),  # 20 of the pairs stored, so 40 of all
        pair: HopStats(matches=20, skipped=5, sampled_matches=8),  # 80 of the pairs made, so 160 of all
    }
    assert Recall().after(TREE, per_hop, SAMPLED).estimate(TREE) == pytest.approx(50 / 200)
    # A window of so many rows is as full as ever: c would find 20.
    counted = join(replace(join("a", "b"), window=RowWindow(9)), "c")
    assert Recall().after(counted, per_hop, SAMPLED).estimate(counted) == pytest.approx(50 / 180)
    # Nothing sampled has matched in the lower join.
    blind = {**per_hop, a: HopStats(matches=60, skipped=9)}
    assert Recall().after(TREE, blind, SAMPLED).estimate(TREE) is None


def test_the_last_batches_count_most_and_the_sums_can_be_kept() -> None:
    plan = join("a", "b")
    (hop,) = path("a", "(a b)", "b")
    half = {hop: HopStats(matches=50, skipped=9, sampled_matches=10)}
    one = Recall().after(plan, half, SAMPLED)
    assert one.estimate(plan) == 0.5
    both = one.after(plan, {hop: HopStats(matches=100)}, None)
    assert both.estimate(plan) == pytest.approx((0.9 * 50 + 100) / (0.9 * 100 + 100))
    assert from_json(Recall, json.loads(json.dumps(to_json(both)))) == both
    # More found than the sample made expect is no more than all.
    assert Recall().after(plan, {hop: replace(half[hop], matches=500)}, SAMPLED).estimate(plan) == 1.0


def test_the_end_of_dropping_is_felt_for_a_window() -> None:
    query = started(MJOIN, Allowance(drop={"a": 0.9, "b": 0.0}))
    told = []
    for number, tables in enumerate(batches(40, 30)):
        if number == 30:
            query.allow(None)
        query.process(tables)
        assert query.last_report is not None
        told.append(query.last_report.recall)
    assert told[29] < 0.2 and told[30] < told[31] < told[32] < 1 and told[34:] == [1.0] * 6


def test_dropping_nothing_is_exact() -> None:
    query = started(MJOIN, Allowance(drop={"a": 0.0}))
    query.process(next(batches(1, 30)))
    assert query.last_report is not None and query.last_report.recall == 1.0
