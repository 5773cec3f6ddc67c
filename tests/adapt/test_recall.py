"""The told recall is near the true one, its intervals hold it, and nothing is told where nothing is known."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import astuple, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import weir
from weir.adapt.recall import (
    EXACT,
    BatchEvidence,
    Recall,
    RecallEstimate,
    add_composed_windows,
    find_blind_joins,
    sum_paths,
)
from weir.codec import from_json, to_json
from weir.kernel.keys import Floats
from weir.kernel.partial import Group
from weir.kernel.result_weights import _missing_share, _Variance
from weir.local.query import LocalQuery
from weir.plan.tree import Join, hops, join
from weir.query.windows import RowWindow, TimeWindow
from weir.shed.ages import Ages
from weir.shed.allowance import Allowance
from weir.shed.thin import thin
from weir.stats.hop import Hop, HopStats
from weir.stats.weight_sums import WeightSums

SCHEMA = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64(), "n": pa.int64()})
MJOIN = join("a", "b", "c")
TREE = join(join("a", "b"), "c")
# A batch is a third of a window.
BATCH, WINDOW = 1000, 3000
ROW_BYTES = 32


def started(plan: Join, allowance: Allowance | None = None, memory: int | None = None) -> LocalQuery:
    budget: dict[str, Any] = {} if memory is None else {"budget": weir.Budget(memory=memory), "adapt": True}
    return weir.join(
        streams=dict.fromkeys("abc", SCHEMA),
        on="a.k = b.k AND b.k = c.k",
        select="a.n, b.n AS b, c.n AS c",
        within=TimeWindow(WINDOW),
        plan=plan,
        **({"allowance": allowance} if memory is None else budget),
    ).start()


def add_by_result(variance: _Variance, group: Group, weights: Floats) -> float:
    missing = _missing_share(weights)
    variance.add(group, weights, missing)
    variance.count_once(weights, missing)
    return float(weights.sum())


@pytest.mark.parametrize(
    ("plan", "allowance"),
    [
        (MJOIN, thin(MJOIN, 0.3)),
        (MJOIN, thin(MJOIN, 0.3, sample=0.1)),
        (MJOIN, Allowance(ages={hops(MJOIN)[0]: Ages(1000, frozenset({0}))}, sample=0.2)),
        (TREE, thin(TREE, 0.4)),
    ],
    ids=["thinned", "with a sample", "ages", "tree"],
)
def test_sums_by_row_are_those_by_result(
    plan: Join, allowance: Allowance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def weigh() -> list[tuple[float, ...]]:
        query, weights = started(plan, allowance), []
        for tables in batches(6, 60):
            list(query.chunks(tables))
            assert query.last_report is not None
            weights += [astuple(sums) for sums in query.last_report.counts.weights.values()]
        return weights

    by_row = weigh()
    monkeypatch.setattr(_Variance, "add_path", add_by_result)
    by_result = weigh()
    assert by_row and len(by_row) == len(by_result) and sum(variance for _, _, variance, _ in by_row) > 0
    for one, other in zip(by_row, by_result, strict=True):
        assert one == pytest.approx(other, rel=1e-9, abs=1e-6)


def batches(
    count: int, rows: int, first: int = 0, seed: int = 1, keys: int = 40, late_until: int = 0
) -> Iterator[dict[str, pa.Table]]:
    """Steady streams; c is silent until a batch, and then catches up at three times the others' speed."""
    rng, number = np.random.default_rng(seed), 0
    reached = 0
    for n in range(first, first + count):
        tables = {}
        for name in "abc":
            begin, end = n * BATCH, (n + 1) * BATCH
            if name == "c" and late_until:
                begin, end = reached, reached if n < late_until else min(reached + 3 * BATCH, end)
                reached = end
            size = rows * (end - begin) // BATCH
            times = np.sort(rng.integers(begin, end, size)) if size else np.zeros(0, np.int64)
            columns = {"ts": times, "k": rng.integers(0, keys, size), "n": number + np.arange(size)}
            tables[name], number = pa.table(columns).cast(SCHEMA), number + size
        yield tables


def first_hops(plan: Join) -> dict[Hop, None]:
    firsts: dict[tuple[str, str], Hop] = {}
    for hop in hops(plan):
        firsts.setdefault((hop.node, hop.driver), hop)
    return dict.fromkeys(firsts.values())


def share(plan: Join, of_probes: float, **more: Any) -> Allowance:
    return Allowance(dict.fromkeys(hops(plan), of_probes), "hash", **more)


def young(count: int) -> dict[Hop, Ages]:
    return {hop: Ages(600, frozenset(range(count))) for hop in hops(MJOIN)}


ROWS, KEYS = 120, 60
WHOLE_STATE = 3 * ROWS * WINDOW // BATCH * ROW_BYTES
SHEDDING: dict[str, Callable[[], LocalQuery]] = {
    "exact": lambda: started(MJOIN),
    "thin": lambda: started(MJOIN, Allowance(dict.fromkeys(first_hops(MJOIN), 0.5), "hash")),
    "several hops": lambda: started(MJOIN, share(MJOIN, 0.6, sample=0.05)),
    "tree": lambda: started(TREE, share(TREE, 0.7)),
    "newest": lambda: started(MJOIN, Allowance(dict.fromkeys(first_hops(MJOIN), 0.5), sample=0.2)),
    "newest in a tree": lambda: started(TREE, Allowance(dict.fromkeys(first_hops(TREE), 0.7), sample=0.2)),
    "ages": lambda: started(MJOIN, Allowance(ages=young(3), sample=0.1)),
    "drop": lambda: started(MJOIN, Allowance(drop={"a": 0.3, "b": 0.2})),
    "drop in a tree": lambda: started(TREE, Allowance(drop={"a": 0.3, "b": 0.2})),
    "all": lambda: started(
        MJOIN, Allowance(dict.fromkeys(hops(MJOIN), 0.8), "hash", 0.1, young(4), {"c": 0.2})
    ),
    "memory": lambda: started(MJOIN, memory=WHOLE_STATE // 2),
}


@pytest.mark.parametrize("kind", [*SHEDDING, "catching up"])
def test_recall_is_near_the_truth_and_intervals_hold_it(kind: str) -> None:
    """So few rows and batches cannot tell 0.9 from 0.7; faults lead to intervals that hold none.

    `weir-lab regret` holds the estimate against narrower bars, with more rows.
    """
    late_until = 7 if kind == "catching up" else 0
    errors, widths, holds, truths = [], [], [], []
    for seed in (1, 2):
        shed = SHEDDING["memory" if late_until else kind]()
        whole = started(MJOIN)
        for number, tables in enumerate(batches(14, ROWS, 0, seed, KEYS, late_until)):
            emitted, exact = shed.process(tables).num_rows, whole.process(tables).num_rows
            assert shed.last_report is not None
            told = shed.last_report.batch_recall
            if number < 3 or not exact:
                continue
            assert told is not None, "every one of these has some chance to be found"
            truths.append(emitted / exact)
            errors.append(abs(told.value - truths[-1]))
            widths.append(told.high - told.low)
            holds.append(told.low - 1e-9 <= truths[-1] <= told.high + 1e-9)
    assert (np.mean(truths) == 1) if kind == "exact" else (0.1 < np.mean(truths) < 0.9)
    assert np.mean(errors) <= (0 if kind == "exact" else 0.07)
    widest = {"exact": 0.0, "catching up": 0.5}.get(kind, 0.3)
    assert np.mean(holds) >= 0.7 and np.mean(widths) <= widest


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    plan=st.sampled_from([MJOIN, TREE]),
    choose=st.sampled_from(["hash", "newest"]),
    probes=st.sampled_from([0.4, 0.8, 1.0]),
    sample=st.sampled_from([0.3, 0.6]),
    ages=st.sampled_from([0, 2, 4]),
    dropped=st.sampled_from([0.0, 0.4]),
    memory=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_the_expected_exact_number_is_right(
    plan: Join, choose: Any, probes: float, sample: float, ages: int, dropped: float, memory: bool, seed: int
) -> None:
    """Over many batches, the told exact number is the true one but for noise of the told size."""
    allowance = Allowance(
        dict.fromkeys(hops(plan), probes),
        choose,
        sample,
        young(ages) if ages and plan is MJOIN else {},
        {"b": dropped},
    )
    shed = started(plan, None if memory else allowance, memory=40 * ROW_BYTES * 3 if memory else None)
    whole, exact, sums = started(MJOIN), 0, WeightSums()
    for tables in batches(25, 25, seed=seed, keys=10):
        exact += whole.process(tables).num_rows
        shed.process(tables)
        assert shed.last_report is not None
        sums += sum(shed.last_report.counts.weights.values(), WeightSums())
    assert sums.results > 0, "all of these find something"
    # Choices that batches share add up over the three batches of a window.
    assert abs(sums.weight - exact) <= 4.5 * math.sqrt(sums.own + 3 * sums.shared) + 0.02 * exact


def test_the_told_variance_is_that_of_the_estimates() -> None:
    """Over many choices among the same rows: the choices depend on the content of rows, here on `n`."""
    tables = [*batches(3, 60, keys=10)]
    told, weights = [], []
    for trial in range(40):
        query = started(MJOIN, Allowance(share(MJOIN, 0.7).probes, "hash", drop={"a": 0.3}))
        for batch in tables:
            renumbered = {
                name: rows.set_column(2, "n", pa.array(np.arange(rows.num_rows) + 1000 * trial))
                for name, rows in batch.items()
            }
            query.process(renumbered)
        assert query.last_report is not None
        sums = sum(query.last_report.counts.weights.values(), WeightSums())
        weights.append(sums.weight)
        told.append(sums.own + sums.shared)
    true = float(np.var(weights))
    assert 0.7 * true <= np.mean(told) <= 3 * true


def told(query: LocalQuery, count: int, first: int = 0) -> list[tuple[float | None, float | None]]:
    """The recall of each batch, and that of its last windows."""
    recalls = []
    for tables in batches(count, 40, first):
        query.process(tables)
        assert query.lastProgress is not None
        shown = query.lastProgress["weir"]
        recalls.append((shown["estimatedRecall"], shown["estimatedRecallOfWindows"]))
    return recalls


def test_without_a_sample_nothing_is_known_of_what_a_rule_skips() -> None:
    query = started(MJOIN, Allowance(dict.fromkeys(hops(MJOIN), 0.5)))
    assert told(query, 2) == [(None, None)] * 2
    query.allow(None)
    # The states are whole. A window is three batches long; in the fourth, all depends on the last rows.
    assert told(query, 3, first=2) == [(1.0, None)] * 3
    assert told(query, 3, first=5)[1:] == [(1.0, 1.0)] * 2
    query.allow(Allowance(dict.fromkeys(hops(MJOIN), 0.5), sample=0.5))
    ((batch, windows),) = told(query, 1, first=8)
    assert batch is not None and windows is not None and batch < 1


@pytest.mark.parametrize(
    "lost", [Allowance(dict.fromkeys(first_hops(TREE), 0.5)), Allowance(drop={"a": 1.0})]
)
def test_what_states_lack_is_unknown_until_it_has_left_the_windows(lost: Allowance) -> None:
    query = started(TREE, lost)
    assert told(query, 2) == [(None, None)] * 2
    query.allow(None)
    assert told(query, 3, first=2) == [(None, None)] * 3
    after = told(query, 8, first=5)
    assert after[2][0] == 1.0 and after[-1] == (1.0, 1.0)
    unknown = [windows is None for _, windows in after]
    assert unknown[2] and unknown == sorted(unknown, reverse=True), "first the batches, then their windows"


def cap_work(query: LocalQuery, cap: int | None) -> None:
    decide = type(query._decider)._decide
    query._decider._decide = lambda *given: replace(  # type: ignore[method-assign]
        decide(query._decider, *given), work_cap=cap
    )


def test_what_a_work_cap_keeps_from_states_is_unknown_until_it_has_left_the_windows() -> None:
    """What is left of a cut at the root is a part of the results, but a state is taken to be whole."""
    query = started(TREE)
    cap_work(query, 100)
    assert told(query, 3)[1:] == [(None, None)] * 2
    assert query.last_report is not None
    assert query.last_report.per_hop[Hop("a", "(a b)", "b")].capped
    cap_work(query, None)
    assert told(query, 3, first=3) == [(None, None)] * 3
    after = told(query, 8, first=6)
    assert after[2][0] == 1.0 and after[-1] == (1.0, 1.0)


def test_what_a_work_cap_keeps_from_the_states_of_the_next_plan_is_unknown() -> None:
    query = started(MJOIN)
    told(query, 4)
    # No step is left to build older rows into the state, so that the old plan goes on for a batch.
    decide = type(query._decider)._decide
    query._decider._decide = lambda *given: replace(  # type: ignore[method-assign]
        decide(query._decider, *given), work_cap=300, migration_steps=1
    )
    query.replan(TREE)
    assert told(query, 1, first=4) == [(None, None)]
    assert query.last_report is not None and query.last_report.plan == MJOIN
    assert any(work.capped for work in query.last_report.counts.migration_hops.values())


def test_rows_that_start_under_a_cap_stand_for_the_others_whether_sampled_or_not() -> None:
    """If sampled rows came first, they would stand for rows that are skipped, and again for those capped."""
    shed, whole = started(MJOIN, Allowance(ages=young(3), sample=0.1)), started(MJOIN)
    cap_work(shed, 40_000)
    estimated = exact = capped = 0.0
    for tables in batches(12, 300, keys=60):
        exact += whole.process(tables).num_rows
        shed.process(tables)
        assert shed.last_report is not None
        counts = shed.last_report.counts
        estimated += sum_paths(counts.weights, MJOIN, counts.hops).weight
        capped += counts.capped
    assert capped > 0.3 * 12 * 900
    assert estimated == pytest.approx(exact, rel=0.3)


def test_a_stream_that_stays_behind_may_still_miss_what_was_lost() -> None:
    query = started(MJOIN, Allowance(drop={"a": 1.0}))
    told(query, 2)
    query.allow(None)
    for tables in batches(8, 40, first=2):
        query.process({**tables, "c": tables["c"].slice(0, 0)})
        assert query.last_report is not None and query.last_report.recall is None
    assert told(query, 2, first=10)[1][0] == 1.0


def test_the_end_of_dropping_is_felt_for_a_window() -> None:
    query = started(MJOIN, Allowance(drop={"a": 0.9, "b": 0.0}))
    before = told(query, 30)
    query.allow(None)
    after = told(query, 12, first=30)
    assert np.mean([windows for _, windows in before[10:] if windows is not None]) < 0.3
    assert after[0][1] < after[2][1] < 1 and after[4][0] == 1.0 and after[-1] == (1.0, 1.0)


def test_dropping_nothing_is_exact() -> None:
    assert told(started(MJOIN, Allowance(drop={"a": 0.0})), 2) == [(1.0, 1.0)] * 2
    assert told(started(TREE, Allowance(sample=0.5)), 2) == [(1.0, 1.0)] * 2


SKIPPED = BatchEvidence(WeightSums(50, 100.0, own=64.0, shared=36.0), sheds=True, newest=0, advance=1)
WHOLE = BatchEvidence(WeightSums(100, 100.0), watermark=10**7, newest=10**8, advance=1)


def test_an_estimate_has_an_interval() -> None:
    """The told number of 100 has a standard deviation of 10, and nine of ten are within 1.645 of them."""
    batch = Recall().after(SKIPPED, keep=None).batch
    assert batch is not None and batch.value == 0.5
    assert batch.low == pytest.approx(0.5 * math.exp(-0.1645)) and batch.high == pytest.approx(
        0.5 * math.exp(0.1645)
    )
    assert RecallEstimate.of(90, 80.0, 10.0) == RecallEstimate(
        1.0, pytest.approx(math.exp(-0.2056), 1e-3), 1.0
    )
    assert RecallEstimate.of(0, 0.0, 0.0) is None
    unseen = replace(SKIPPED, largest=20.0)
    wider = Recall().after(unseen, keep=None).batch
    assert wider is not None and wider.low < batch.low, (
        "perhaps the rarest rows have results that nobody found"
    )


def test_no_clock_tells_when_windows_of_rows_have_forgotten() -> None:
    recall, since = Recall().after(replace(SKIPPED, is_blind=True, leaves_blind=True), None), 0
    while recall.batch is None:
        recall, since = recall.after(WHOLE, None), since + 1
    assert since == 44 and recall.windows == EXACT
    assert Recall().after(SKIPPED, 10**6).after(WHOLE, 10**6).windows == EXACT


def test_the_last_batches_count_most_and_the_sums_can_be_kept() -> None:
    both = Recall().after(SKIPPED, 10).after(replace(WHOLE, watermark=0), 10)
    kept = math.exp(-0.1)
    assert both.batch == EXACT and both.windows is not None
    assert both.windows.value == pytest.approx((kept * 50 + 100) / (kept * 100 + 100))
    assert from_json(Recall, json.loads(json.dumps(to_json(both)))) == both


@pytest.mark.parametrize(
    ("window", "keep"), [(TimeWindow(5_000), 8_000), (RowWindow(9), None), (None, 3_000)]
)
def test_what_a_join_keeps_in_a_window_of_its_own_is_missed_as_long(
    window: TimeWindow | RowWindow | None, keep: int | None
) -> None:
    assert add_composed_windows(join(replace(join("a", "b"), window=window), "c"), 3_000) == keep


def test_what_a_hash_skips_can_be_found_and_what_a_rule_skips_cannot() -> None:
    per_hop = dict.fromkeys(hops(TREE), HopStats(skipped=9))
    assert find_blind_joins(TREE, per_hop, share(TREE, 0.5)) == set()
    assert find_blind_joins(TREE, per_hop, share(TREE, 0.0)) == {"(a b)", "((a b) c)"}
    newest = Allowance(dict.fromkeys(hops(TREE), 0.5))
    assert find_blind_joins(TREE, per_hop, newest) == {"(a b)", "((a b) c)"}
    assert find_blind_joins(TREE, per_hop, replace(newest, sample=0.1)) == set()
    narrowed = {Hop("a", "(a b)", "b"): HopStats(narrowed=1)}
    assert find_blind_joins(TREE, narrowed, newest) == {"(a b)"}
    assert find_blind_joins(TREE, narrowed, None) == set()


def test_rows_that_start_stand_for_those_that_a_cap_keeps_from_the_root_only() -> None:
    below, above = Hop("a", "(a b)", "b"), Hop("c", "((a b) c)", "(a b)")
    cut = HopStats(probes=16, capped=9)
    assert find_blind_joins(TREE, {above: cut}, None) == set()
    assert find_blind_joins(TREE, {below: cut}, None) == {"(a b)"}
    assert find_blind_joins(TREE, {above: HopStats(capped=9)}, Allowance(sample=0.5)) == {"((a b) c)"}
