from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.adapt.reports import report
from tests.adapt.simulated_machine import SECOND, Machine, asked, lags_at

from weir.adapt.analyse import AdaptationScope, Usage, analyse
from weir.adapt.batch_report import BatchReport
from weir.adapt.change_detection import describe_changes
from weir.adapt.fit_join_graph import fit_join_graph
from weir.adapt.settings import Adapt, Changeable
from weir.adapt.statistics import Statistics
from weir.codec import from_json, to_json
from weir.plan.default_plan import mjoin
from weir.plan.limits import Limits
from weir.plan.tree import Join, hops, join
from weir.shed.allowance import Allowance
from weir.stats.batch_counts import StateSize
from weir.stats.hop import Hop, HopStats
from weir.stats.lag_histogram import LagHistograms
from weir.stats.unit_costs import TYPICAL

QUERY = asked()
MJOIN = mjoin(QUERY)
TREE = join(join("a", "b"), "c")
TWO = asked("ab", "{0}.k = {1}.k")
LEARNING = Allowance(sample=0.01)
CHANGEABLE: tuple[Changeable, ...] = ("tree", "orders", "nothing")


def two(rows: int = 10, matches: int = 4, **more: Any) -> BatchReport:
    """A second of two streams of which a goes first, into states of 100 rows each."""
    hop = {Hop("a", "(a b)", "b"): HopStats(probes=rows, matches=matches)}
    given: dict[str, Any] = {
        "plan": join("a", "b"),
        "allowance": None,
        "rows": {"a": rows, "b": rows},
        "newest": {"a": SECOND, "b": SECOND},
        "reached": {"a": 2 * SECOND, "b": SECOND},
        "per_hop": hop,
        "held": {"a": 100.0, "b": 100.0},
        "seconds": 0.3,
        "work": 0.2,
        "order": ("a", "b"),
    }
    return report(**{**given, **more})


def with_lags(seen: BatchReport, lags: LagHistograms) -> BatchReport:
    return replace(seen, counts=replace(seen.counts, lags=lags))


def test_a_batch_by_hand() -> None:
    found = Statistics().after(TWO, two(watermark=SECOND // 2, results=20, oldest=3 * SECOND))
    assert found.rates == {"a": 10.0, "b": 10.0}
    # Over a second of ten that a window reaches back, a row finds 95 of the 100 that are there.
    assert found.selectivities(join("a", "b")) == {Hop("a", "(a b)", "b"): pytest.approx(4 / (10 * 95))}
    assert found.results_per_row == {"a": 2.0, "b": 2.0}
    assert found.fixed.value == pytest.approx(0.1)
    assert (found.watermark_delay, found.oldest, found.batches) == (1.5, 3.0, 1)


def test_rows_of_a_batch_are_reachable_for_drivers_after_them() -> None:
    last = Statistics().after(TWO, two(order=("b", "a")))
    either = Statistics().after(TWO, two(order=None))
    step = (("a",), ("b",))
    assert last.matches[step].exposure == pytest.approx(10 * (95 + 10))
    assert either.matches[step].exposure == pytest.approx(10 * (95 + 5))


def test_dropped_rows_count_in_rates() -> None:
    found = Statistics().after(TWO, two(allowance=Allowance(drop={"a": 0.75})))
    assert found.rates == {"a": 40.0, "b": 10.0}


def test_with_ages_skipped_only_the_sample_counts() -> None:
    hop = Hop("a", "(a b)", "b")
    narrow = HopStats(probes=100, matches=50, narrowed=90, sampled=10, sampled_matches=2)
    found = Statistics().after(TWO, two(per_hop={hop: narrow}, allowance=Allowance(sample=0.1)))
    assert found.selectivities(join("a", "b"))[hop] == pytest.approx(2 / (10 * 95))


def paced(known: Statistics, *spans: float, **more: Any) -> Statistics:
    """With batches of ten rows of each stream more, that go on by so many seconds each."""
    for span in spans:
        found = two(newest={"a": 0}, reached={"a": round(span * SECOND)}, interval=1.0, **more)
        known = known.after(TWO, found)
    return known


def test_a_gap_leaves_rates_unchanged() -> None:
    steady = paced(Statistics(), *[1.0] * 12)
    after = paced(steady, 600.0)
    assert after.rates == steady.rates == {"a": pytest.approx(10.0), "b": pytest.approx(10.0)}
    for what in ("matches", "results", "load", "event_time_speed", "span"):
        assert getattr(after, what) == getattr(steady, what)
    assert after.batches == 13 and from_json(Statistics, json.loads(json.dumps(to_json(after)))) == after
    assert paced(after, *[1.0] * 5).rates == {"a": pytest.approx(10.0), "b": pytest.approx(10.0)}


@pytest.mark.parametrize("slower", [3.0, 5.0, 600.0])
def test_streams_that_become_slow_are_noticed(slower: float) -> None:
    """Whether as many rows as before come over a longer time, or fewer in the same."""
    steady = paced(Statistics(), *[1.0] * 12, rows=600)
    longer = [paced(steady, *[slower] * count, rows=600).rates["a"] for count in (2, 3)]
    assert longer[0] < 0.7 * 600 and longer[1] == pytest.approx(600 / slower)
    assert paced(steady, *[1.0] * 2, rows=round(600 / slower)).rates["a"] == pytest.approx(600 / slower)


def test_varying_spans_and_a_backlog_are_no_gap() -> None:
    assert paced(Statistics(), *[0.1, 2.0] * 20).rates["a"] == pytest.approx(10 / 1.05, rel=0.2)
    late = paced(paced(Statistics(), *[1.0] * 12), 60.0, rows=300)
    assert late.span == 60.0 and late.rates["a"] < 6


def test_the_first_batch_and_a_single_time_give_no_rate() -> None:
    assert Statistics().after(TWO, two(newest={})).rates == {}
    assert Statistics().after(TWO, two(reached={"a": SECOND, "b": SECOND})).rates == {}
    assert fit_join_graph(TWO, Statistics().after(TWO, two(newest={})), TYPICAL) is None


def test_selectivities_outlive_a_plan() -> None:
    machine = Machine(QUERY, {"a": 300.0, "b": 200.0, "c": 100.0})
    known = Statistics()
    for _ in range(4):
        known = known.after(QUERY, machine.step(MJOIN))
    of_tree = known.selectivities(TREE)
    assert of_tree[Hop("a", "(a b)", "b")] == pytest.approx(0.002, rel=0.1)
    assert Hop("c", "((a b) c)", "(a b)") not in of_tree, "nobody has probed that yet"


def test_more_rows_and_more_work_confirm_each_other() -> None:
    known = Statistics()
    for _ in range(10):
        known = known.after(TWO, two(rows=1000))
    assert known.after(TWO, two(rows=5000, work=1.0)).rates == {"a": 5000.0, "b": 5000.0}
    for accident in (two(rows=5000), two(rows=1000, work=1.0)):
        after = known.after(TWO, accident)
        assert after.rates["a"] < 2000


def test_a_sliver_is_left_out() -> None:
    """A file of one stream that came alone: what it took is not work per event second, nor its pace."""
    known = Statistics()
    for _ in range(12):
        known = known.after(TWO, two(rows=1000, interval=1.0))
    alone = two(rows=300, interval=1.0, newest={"a": SECOND}, reached={"a": SECOND + 100}, work=0.01)
    after = known.after(TWO, alone)
    assert (after.rates, after.load, after.event_time_speed, after.span) == (
        known.rates, known.load, known.event_time_speed, known.span,
    )  # fmt: skip
    assert after.after(TWO, alone).span == pytest.approx(1e-4), "two of them are no accident"


def test_statistics_survive_json() -> None:
    machine = Machine(QUERY, {"a": 300.0, "b": 200.0, "c": 100.0}, lags=lags_at(QUERY, 3.0))
    known = Statistics()
    for _ in range(5):
        known = known.after(QUERY, machine.step(MJOIN))
    known = known.after(QUERY, machine.step(TREE))
    assert from_json(Statistics, json.loads(json.dumps(to_json(known)))) == known


def test_lags_that_drift_replace_earlier_ones() -> None:
    machine = Machine(QUERY, {"a": 300.0, "b": 200.0, "c": 100.0}, lags=lags_at(QUERY, 3.0))
    known = Statistics()
    for _ in range(5):
        known = known.after(QUERY, machine.step())
    few = with_lags(machine.step(), lags_at(QUERY, -6.0, results=4))
    assert known.after(QUERY, few).lags.lags["b"].share(2.5, 3.5) > 0.9  # type: ignore[union-attr]
    for results in (15, 400):
        drifted = known.after(QUERY, with_lags(machine.step(), lags_at(QUERY, -6.0, results)))
        assert drifted.lags is not None and drifted.lags.lags["b"].share(-6.5, -5.5) > 0.9
    assert describe_changes(known, drifted, Adapt()) and not describe_changes(known, known, Adapt())


def test_lags_of_few_rows_are_not_relied_on() -> None:
    """Of the results of one row, only one counts."""
    machine = Machine(QUERY, {"a": 300.0, "b": 200.0, "c": 100.0})
    report = machine.step()
    each = Statistics().after(QUERY, report).results_each
    few, enough = (with_lags(report, lags_at(QUERY, 3.0, round(rows * each))) for rows in (15, 30))
    assert Statistics().after(QUERY, few).reliable_lags is None
    known = Statistics().after(QUERY, enough)
    assert known.reliable_lags is known.lags is not None
    assert "lags between streams changed" in describe_changes(Statistics().after(QUERY, few), known, Adapt())


counts = st.one_of(st.just(0), st.integers(0, 50), st.integers(0, 10**15))
seconds = st.one_of(st.just(0.0), st.floats(0, 100), st.floats(0, 1e12))


@st.composite
def observed(draw: st.DrawFn, plan: Join) -> BatchReport:
    names = QUERY.names
    some = st.dictionaries(st.sampled_from(names), counts)
    times = st.dictionaries(st.sampled_from(names), st.integers(-(10**15), 10**15))
    hop = st.builds(
        lambda probes, matches, sampled, found, narrowed: HopStats(
            probes, matches, min(matches, 10**16), sampled=sampled, sampled_matches=found, narrowed=narrowed
        ),
        counts, counts, counts, counts, counts,
    )  # fmt: skip
    return report(
        plan=plan,
        allowance=draw(st.sampled_from([None, LEARNING, replace(LEARNING, probes={hops(plan)[0]: 0.3})])),
        rows=draw(some),
        newest=draw(times),
        reached=draw(times),
        per_hop={one: draw(hop) for one in hops(plan) if draw(st.booleans())},
        held=draw(some),
        seconds=draw(seconds),
        work=draw(seconds),
        order=draw(st.sampled_from([None, names])),
        watermark=draw(st.none() | st.integers(-(10**15), 10**15)),
        state={name: StateSize(draw(counts), draw(counts), 1) for name in names},
        results=draw(counts),
        lags=draw(st.sampled_from([None, lags_at(QUERY, 3.0), lags_at(QUERY, -9.0, results=0)])),
        oldest=draw(st.none() | counts),
    )


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_batch_gives_finite_statistics_and_valid_candidates(data: st.DataObject) -> None:
    plan = data.draw(st.sampled_from([MJOIN, TREE]))
    known = Statistics()
    for _ in range(data.draw(st.integers(1, 5))):
        seen = data.draw(observed(plan))
        known = known.after(QUERY, seen)
    assert from_json(Statistics, json.loads(json.dumps(to_json(known), allow_nan=False))) == known
    assert all(0 <= rate < math.inf for rate in known.rates.values())
    graph = fit_join_graph(QUERY, known, TYPICAL)
    assert (graph is None) == (known.rates.keys() != set(QUERY.names))
    cpu, memory = (st.sampled_from([least, some, math.inf]) for least, some in ((1e-9, 0.3), (1.0, 1e9)))
    limits = Limits(data.draw(cpu), data.draw(memory))
    scope, measured = AdaptationScope(data.draw(st.sampled_from(CHANGEABLE))), st.floats(0, 1e6)
    usage = data.draw(st.none() | st.builds(Usage, measured, measured))
    analysis = analyse(QUERY, known, plan, limits, scope, usage)
    if graph is None:
        assert analysis is None
        return
    assert analysis is not None
    assert all(0 < share <= 1 for share in (*graph.selectivities.values(), *graph.classes.values()))
    for candidate in (analysis.best, analysis.running):
        assert 0 <= candidate.recall <= 1 and 0 <= candidate.cpu < math.inf
        if candidate.base.allowance is not None:
            candidate.base.allowance.check(candidate.base.plan)
    assert not math.isnan(analysis.gain)
