"""At each hop the allowed share of rows probes, chosen by their content; skipped rows are counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weir
from weir.kernel.batch import build, probe
from weir.kernel.decision import Decision
from weir.kernel.physical_plan import PhysicalPlan, compile_plan
from weir.kernel.state import State, end_batch
from weir.local.join import LocalJoin
from weir.plan.tree import Join, hops, join
from weir.query.windows import RowWindow, TimeWindow
from weir.shed.allowance import Allowance
from weir.stats.batch_counts import BatchCounts
from weir.stats.hop import Hop

NAMES = ("a", "b", "c", "d")
SCHEMA = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64(), "id": pa.int64()})
PLANS = {
    "mjoin": join(*NAMES),
    "bjtree": join(join(join("a", "b"), "c"), "d"),
    "bushy": join(join("a", "b"), join("c", "d")),
    "mixed": join(join("a", "b"), "c", "d"),
}
WINDOW = TimeWindow(12)
Tables = dict[str, pa.Table]
Results = Counter[tuple[int, ...]]


def rows(times: Sequence[int], keys: Sequence[int], first: int = 0) -> pa.Table:
    return pa.table([[*map(int, times)], list(keys), range(first, first + len(times))], schema=SCHEMA)


def batches(seed: int, count: int = 3, per_batch: int = 12, keys: int = 3) -> list[Tables]:
    """Ten microseconds per batch; several rows of one time."""
    rng = np.random.default_rng(seed)
    return [
        {
            name: rows(
                10 * n + rng.integers(0, 10, per_batch), rng.integers(0, keys, per_batch), n * per_batch
            )
            for name in NAMES
        }
        for n in range(count)
    ]


def asked(plan: Join, within: Any = WINDOW, **more: Any) -> LocalJoin:
    names = plan.streams
    on = " AND ".join(f"{names[0]}.k = {name}.k" for name in names[1:])
    select = ", ".join(f"{name}.id AS {name}" for name in sorted(names))
    return weir.join(
        streams=dict.fromkeys(names, SCHEMA), on=on, select=select, within=within, plan=plan, **more
    )


def bag(tables: Sequence[pa.Table]) -> Results:
    return Results(
        row for table in tables for row in zip(*(c.to_pylist() for c in table.columns), strict=True)
    )


@cache
def compiled(plan: Join, within: Any) -> PhysicalPlan:
    return compile_plan(asked(plan, within).query, plan)


@dataclass(frozen=True)
class Ran:
    """Per batch: results, and per hop (probes, skipped, matches) and (sampled probes, sampled matches)."""

    results: list[Results]
    counts: list[dict[Hop, tuple[int, int, int]]]
    sampled: list[dict[Hop, tuple[int, int]]]

    @property
    def whole(self) -> Results:
        return sum(self.results, Results())


def run(
    plan: Join,
    fed: Sequence[Tables],
    allowance: Allowance | None = None,
    within: Any = WINDOW,
    order: tuple[str, ...] | None = None,
    candidates: int | None = None,
) -> Ran:
    physical, state = compiled(plan, within), State()
    decision = Decision(plan, order or plan.streams, max_candidates=candidates, allowance=allowance)
    ran = Ran([], [], [])
    for number, tables in enumerate(fed):
        counts = BatchCounts()
        state = build(physical, decision, state, tables, number, counts)
        ran.results.append(bag(list(probe(physical, decision, state, number, counts))))
        ran.counts.append({h: (s.probes, s.skipped, s.matches) for h, s in counts.hops.items()})
        ran.sampled.append({h: (s.sampled, s.sampled_matches) for h, s in counts.hops.items()})
        state = end_batch(physical, state)
    return ran


@st.composite
def allowances(draw: st.DrawFn, plan: Join) -> Allowance:
    shares = st.one_of(st.sampled_from((0.0, 1.0)), st.floats(0, 1))
    probes = {hop: draw(shares) for hop in hops(plan) if draw(st.booleans())}
    sample = draw(st.one_of(st.just(0.0), st.floats(0, 1)))
    return Allowance(probes, draw(st.sampled_from(("newest", "hash"))), sample)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.data())
def test_results_are_a_subset_and_a_repeat_gives_the_same(data: st.DataObject) -> None:
    plan = PLANS[data.draw(st.sampled_from(sorted(PLANS)))]
    fed = batches(data.draw(st.integers(0, 99)), data.draw(st.integers(1, 3)), per_batch=7)
    order = tuple(data.draw(st.permutations(NAMES)))
    within = data.draw(st.sampled_from((TimeWindow(12), RowWindow(7))))
    allowance = data.draw(allowances(plan))
    exact = run(plan, fed, None, within, order)
    shed = run(plan, fed, allowance, within, order)
    assert run(plan, fed, replace(allowance, sample=0.0), within, order).whole <= shed.whole <= exact.whole
    assert run(plan, fed, replace(allowance, sample=1.0), within, order).whole == exact.whole
    turned = [{name: table[::-1] for name, table in reversed(tables.items())} for tables in fed]
    assert run(plan, turned, allowance, within, order, candidates=40) == shed
    no_shedding = replace(allowance, probes=dict.fromkeys(hops(plan), 1.0), sample=0.0)
    assert run(plan, fed, no_shedding, within, order) == exact


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.data())
def test_shedding_with_composed_windows(data: st.DataObject) -> None:
    window = data.draw(st.sampled_from((TimeWindow(9), RowWindow(9))))
    inner = replace(join("a", "b"), window=window)
    plan = data.draw(
        st.sampled_from((join(inner, "c", "d"), join(replace(join(inner, "c"), window=window), "d")))
    )
    fed = batches(data.draw(st.integers(0, 99)), 3, per_batch=6)
    allowance = data.draw(allowances(plan))
    shed = run(plan, fed, allowance)
    assert run(plan, [{n: t[::-1] for n, t in tables.items()} for tables in fed], allowance) == shed
    # Fewer rows stay longer in a window that counts them, so only time windows give a part of the exact join.
    exact = (
        run(plan, fed) if isinstance(window, TimeWindow) else run(join(*NAMES), fed, within=TimeWindow(99))
    )
    assert shed.whole <= exact.whole


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_results_of_other_drivers_remain_when_one_is_shed(plan: Join) -> None:
    driver = str(plan.inputs[0])
    at_root = [hop for hop in hops(plan) if hop.node == str(plan)]
    closed = {hop: 0.0 for hop in at_root if hop.driver == driver}
    others = {hop: 0.0 for hop in at_root if hop.driver != driver}
    fed = batches(5)
    exact, shed, alone = (run(plan, fed, Allowance(probes)) for probes in ({}, closed, others))
    assert shed.whole and alone.whole
    assert [f + a for f, a in zip(shed.results, alone.results, strict=True)] == exact.results
    entrance, *beyond = closed
    for counts in shed.counts[1:]:
        probes, skipped, matches = counts[entrance]
        assert (probes, matches) == (0, 0) and skipped > 0
        assert all(counts[hop] == (0, 0, 0) for hop in beyond)


def test_the_newest_rows_probe_whichever_slices_hold_them() -> None:
    plan = join("a", "b")
    hop = Hop("b", "(a b)", "a")
    fed = [{"a": rows([0], [1]), "b": rows(range(100), [1] * 100)}]
    shed = run(plan, fed, Allowance({hop: 0.25}), within=TimeWindow(1000))
    assert shed.whole == Results((0, b) for b in range(75, 100))
    assert shed.counts == [{hop: (25, 75, 25)}]


def test_the_newest_outputs_of_a_join_probe_whichever_stream_completed_them() -> None:
    plan = join(join("a", "b"), "c")
    hop = Hop("(a b)", str(plan), "c")
    before = {"c": rows([0], [1])}
    pairs = {"a": rows([1, 12, 3, 14], [1, 2, 3, 4]), "b": rows([11, 2, 13, 4], [1, 2, 3, 4])}
    on = "a.k = b.k"
    query = weir.join(
        streams=dict.fromkeys("abc", SCHEMA),
        on=on,
        cross=True,
        within=TimeWindow(99),
        plan=plan,
        select="a.k",
    ).start()
    query.process(before)
    query.allow(Allowance({hop: 0.5}))
    assert sorted(query.process(pairs)["k"].to_pylist()) == [3, 4]
    query.allow(None)
    assert sorted(query.process(c=rows([20], [1]))["k"].to_pylist()) == [1, 2, 3, 4]


@pytest.mark.parametrize("choose", ["newest", "hash"])
def test_at_a_later_hop_each_partial_is_judged_alone(choose: Any) -> None:
    """The size of a run of candidates does not change which partials probe."""
    plan = join("a", "b", "c")
    hop = Hop("c", "(a b c)", "b")
    fed = [{"a": rows(range(40), [1] * 40), "b": rows([1], [1]), "c": rows(range(50), [1] * 50)}]
    how: dict[str, Any] = {"within": TimeWindow(1000), "order": ("a", "b", "c")}
    allowed = Allowance({hop: 0.3}, choose)
    shed = run(plan, fed, allowed, **how)
    probes, skipped, _ = shed.counts[0][hop]
    assert probes + skipped == 2000 and shed.whole.total() == probes
    assert abs(probes - 600) < 4 * np.sqrt(2000 * 0.3 * 0.7)
    for candidates in (1, 7, 130):
        assert run(plan, fed, allowed, candidates=candidates, **how) == shed
    # Nor do the other partials.
    alone = [{**fed[0], "c": fed[0]["c"][:20]}]
    few = run(plan, alone, allowed, **how).whole
    assert few == Results({ids: n for ids, n in shed.whole.items() if ids[2] < 20})


@pytest.mark.parametrize("choose", ["newest", "hash"])
@pytest.mark.parametrize("per_batch", [1, 3, 500])
def test_the_share_is_right_on_average(choose: Any, per_batch: int) -> None:
    """Of n rows floor(share n + u) probe, so the share is right even with one row per batch."""
    plan, share, count = join("a", "b"), 0.3, 400 if per_batch < 10 else 12
    hop = Hop("b", "(a b)", "a")
    rng = np.random.default_rng(1)
    fed = [{"a": rows([0], [1])}]
    fed += [{"b": rows(rng.integers(0, 50, per_batch), [1] * per_batch, n)} for n in range(count)]
    shed = run(plan, fed, Allowance({hop: share}, choose), within=TimeWindow(1000))
    probes = np.array([counts[hop][0] for counts in shed.counts[1:]])
    assert all(counts[hop][0] + counts[hop][1] == per_batch for counts in shed.counts[1:])
    assert set(probes) <= {int(share * per_batch), int(share * per_batch) + 1}
    # u is uniform over [0, 1): four standard deviations of a mean of that many.
    assert abs(probes.mean() - share * per_batch) <= 4 * 0.5 / np.sqrt(count)


def test_a_hash_chooses_among_all_rows_and_differs_by_batch_and_hop() -> None:
    plan = join("a", "b", "c")
    to_a, to_c = Hop("b", "(a b c)", "a"), Hop("b", "(a b c)", "c")
    start = {"a": rows([0], [1]), "c": rows([0], [1])}
    delta = {"b": rows(range(1, 1001), [1] * 1000)}
    how: dict[str, Any] = {"within": TimeWindow(9999)}
    ids = [
        {b for _, b, _ in results}
        for results in run(plan, [start, delta, delta], Allowance({to_a: 0.5}, "hash"), **how).results
    ]
    assert len(ids[1] & set(range(500))) == pytest.approx(250, abs=60)
    assert len(ids[1] & ids[2]) == pytest.approx(250, abs=60)
    both = run(plan, [start, delta], Allowance({to_a: 0.5, to_c: 0.5}, "hash"), **how)
    assert both.counts[1][to_a][:2] == (500, 500)
    assert sum(both.counts[1][to_c][:2]) == 500
    assert both.counts[1][to_c][0] == pytest.approx(250, abs=60)
    assert {b for _, b, _ in both.results[1]} < ids[1]


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_a_sampled_row_finds_every_match_in_its_states(plan: Join) -> None:
    """All other rows are shed at the root, so each result is that of a sampled row."""
    closed = {hop: 0.0 for hop in hops(plan) if hop.node == str(plan)}
    fed = batches(8, per_batch=40, keys=8)
    exact = run(plan, fed, Allowance(sample=0.3))
    shed = run(plan, fed, Allowance(closed, sample=0.3))
    assert exact.whole == run(plan, fed).whole
    # With or without shedding, the same rows are sampled and find the same.
    assert shed.sampled == exact.sampled
    for counts, sampled in zip(shed.counts, shed.sampled, strict=True):
        for hop in closed.keys() & counts.keys():
            probes, _, matches = counts[hop]
            assert sampled[hop] == (probes, matches)
    assert 0 < shed.whole.total() < exact.whole.total()


def test_the_sample_is_a_share_of_the_driver_rows() -> None:
    plan = join("a", "b", "c")
    to_a, to_c = Hop("b", "(a b c)", "a"), Hop("b", "(a b c)", "c")
    fed = [{"a": rows([0], [1]), "c": rows([0], [1])}, {"b": rows(range(1, 5001), [1] * 5000)}]
    how: dict[str, Any] = {"within": TimeWindow(9999)}
    shed = run(plan, fed, Allowance({to_a: 0.5, to_c: 0.0}, sample=0.04), **how)
    sampled = shed.sampled[1][to_a][0]
    assert abs(sampled - 200) < 4 * np.sqrt(200)
    # On top of the share: half of the sampled rows are among the newest anyway.
    assert shed.counts[1][to_a][0] == pytest.approx(2600, abs=40)
    assert shed.counts[1][to_c] == (sampled, shed.counts[1][to_a][0] - sampled, sampled)
    assert shed.sampled[1][to_c] == (sampled, sampled)
    assert run(plan, fed, Allowance({to_a: 0.5}), **how).sampled[1][to_a] == (0, 0)


@pytest.mark.parametrize("sample", [-0.1, 1.5, float("nan")])
def test_a_sample_is_a_share_from_0_to_1(sample: float) -> None:
    with pytest.raises(weir.QueryError, match="the sample of an allowance must be a share from 0 to 1; got"):
        Allowance(sample=sample)


def test_skipped_rows_are_counted() -> None:
    plan = join(join("a", "b"), "c", "d")
    hop = hops(plan)[1]
    query = asked(plan, allowance=Allowance({hop: 0.25}), driver_order=plan.streams).start()
    query.process(batches(3, 1)[0])
    assert query.last_report is not None and query.lastProgress is not None
    assert query.last_report.shed == query.last_report.per_hop[hop].skipped == 9
    assert query.lastProgress["weir"]["numRowsShed"] == 9
    assert query.lastProgress["weir"]["hops"][str(hop)]["skipped"] == 9
    assert query.lastProgress["weir"]["hops"][str(hop)]["probes"] == 3
    query.allow(None)
    query.process(batches(3, 1)[0])
    assert query.last_report.shed == 0


def test_results_are_never_stale() -> None:
    """An inner join without new outputs keeps its last rows; results beyond the bound are held back."""
    plan = join(replace(join("a", "b"), window=RowWindow(5)), "c")
    query = asked(plan, weir.rows(5), fresh={"a": "8 rows"}).start()
    query.process(a=rows([1], [1]), b=rows([1], [1]))
    query.allow(Allowance({hop: 0.0 for hop in hops(plan) if hop.node == "(a b)"}))
    fed = [{"a": rows([n], [1], n), "b": rows([n], [1], n), "c": rows([n], [1], n)} for n in range(2, 13)]
    shed = [query.process(tables).num_rows for tables in fed]
    stale = [progress["weir"]["numRowsStale"] for progress in query.recentProgress[1:]]
    assert [f + s for f, s in zip(shed, stale, strict=True)] == [1] * len(fed)
    assert stale == [0] * 7 + [1] * 4


def test_an_allowance_for_an_unknown_hop_is_rejected() -> None:
    plan = join("a", "b")
    wrong = Allowance({Hop("a", "(a b)", "c"): 0.5})
    says = r"hop a ⋉ c in \(a b\), which the plan \(a b\) does not have; it has 'a ⋉ b in \(a b\)', 'b ⋉ a"
    with pytest.raises(weir.QueryError, match=says):
        asked(plan, allowance=wrong)
    with pytest.raises(weir.QueryError, match=says):
        asked(plan).start().allow(wrong)
    with pytest.raises(weir.QueryError, match=says):
        Decision(plan, ("a", "b"), allowance=wrong)
    with pytest.raises(weir.QueryError, match="got dict"):
        asked(plan, allowance={})
    with pytest.raises(weir.QueryError, match=says):
        tables = dict.fromkeys("ab", SCHEMA)
        weir.sql("SELECT a.k FROM a, b WHERE a.k = b.k WINDOW 1 MINUTE", streams=tables, allowance=wrong)
