from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.adapt.running import SECOND, WINDOW, Machine, asked, lags_at

from weir.adapt.analyse import analyse
from weir.adapt.average import Average
from weir.adapt.calibrate import TYPICAL
from weir.adapt.change_detection import should_analyse
from weir.adapt.fit_join_graph import fit_join_graph
from weir.adapt.lag_drift import lags_differ
from weir.adapt.observed import Observed
from weir.adapt.recommendation import PlanInForce
from weir.adapt.settings import Adapt, Movable
from weir.adapt.statistics import Statistics, iterate_steps
from weir.plan.default_plan import mjoin
from weir.plan.limits import Limits
from weir.plan.tree import Join, hops, join
from weir.shed.allowance import Allowance
from weir.stats.batch import Hop, HopStats, StateSize
from weir.stats.lag_histogram import LagHistogram, LagHistograms

QUERY = asked()
MJOIN = mjoin(QUERY)
TREE = join(join("a", "b"), "c")
TWO = asked("ab", "{0}.k = {1}.k")
LEARNING = Allowance(sample=0.01)
MOVABLE: tuple[Movable, ...] = ("tree", "orders", "nothing")


def two(rows: int = 10, matches: int = 4, **more: Any) -> Observed:
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
    return Observed(**{**given, **more})


def test_a_batch_by_hand() -> None:
    found = Statistics().after(TWO, two(watermark=SECOND // 2, results=20, oldest=3 * SECOND))
    assert found.rates == {"a": 10.0, "b": 10.0}
    # Over a second of ten that a window reaches back, a row finds 95 of the 100 that are there.
    assert found.selectivities(join("a", "b")) == {Hop("a", "(a b)", "b"): pytest.approx(4 / (10 * 95))}
    assert found.gains == {"a": 2.0, "b": 2.0}
    assert found.load.value == pytest.approx(0.2) and found.fixed.value == pytest.approx(0.1)
    assert (found.lag, found.oldest, found.batches) == (1.5, 3.0, 1)


def test_rows_of_the_same_batch_are_seen_by_who_goes_after_them() -> None:
    last = Statistics().after(TWO, two(order=("b", "a")))
    either = Statistics().after(TWO, two(order=None))
    step = (("a",), ("b",))
    assert last.matches[step].over == pytest.approx(10 * (95 + 10))
    assert either.matches[step].over == pytest.approx(10 * (95 + 5))


def test_what_is_dropped_came_all_the_same() -> None:
    found = Statistics().after(TWO, two(allowance=Allowance(drop={"a": 0.75})))
    assert found.rates == {"a": 40.0, "b": 10.0}


def test_where_some_ages_are_looked_at_only_the_sample_counts() -> None:
    hop = Hop("a", "(a b)", "b")
    narrow = HopStats(probes=100, matches=50, narrowed=90, sampled=10, sampled_matches=2)
    found = Statistics().after(TWO, two(per_hop={hop: narrow}, allowance=Allowance(sample=0.1)))
    assert found.selectivities(join("a", "b"))[hop] == pytest.approx(2 / (10 * 95))
    forgot = two(per_hop={hop: narrow}, allowance=Allowance(sample=0.1, forget=True))
    assert not Statistics().after(TWO, forgot).selectivities(join("a", "b"))


def paced(known: Statistics, *spans: float, **more: Any) -> Statistics:
    """With batches of ten rows of each stream more, that go on by so many seconds each."""
    for span in spans:
        found = two(newest={"a": 0}, reached={"a": round(span * SECOND)}, interval=1.0, **more)
        known = known.after(TWO, found)
    return known


def test_a_silence_tells_no_rates() -> None:
    steady = paced(Statistics(), *[1.0] * 12)
    after = paced(steady, 600.0)
    assert after.rates == steady.rates == {"a": pytest.approx(10.0), "b": pytest.approx(10.0)}
    for what in ("matches", "results", "load", "pace", "span"):
        assert getattr(after, what) == getattr(steady, what)
    assert after.batches == 13 and Statistics.from_json(json.loads(json.dumps(after.to_json()))) == after
    assert paced(after, *[1.0] * 5).rates == {"a": pytest.approx(10.0), "b": pytest.approx(10.0)}


@pytest.mark.parametrize("slower", [3.0, 5.0, 600.0])
def test_streams_that_become_slow_are_noticed(slower: float) -> None:
    """Whether as many rows as before come over a longer time, or fewer in the same."""
    steady = paced(Statistics(), *[1.0] * 12, rows=600)
    longer = [paced(steady, *[slower] * count, rows=600).rates["a"] for count in (2, 3)]
    assert longer[0] < 0.7 * 600 and longer[1] == pytest.approx(600 / slower)
    assert paced(steady, *[1.0] * 2, rows=round(600 / slower)).rates["a"] == pytest.approx(600 / slower)


def test_spans_that_vary_and_rows_that_piled_up_are_no_silence() -> None:
    assert paced(Statistics(), *[0.1, 2.0] * 20).rates["a"] == pytest.approx(10 / 1.05, rel=0.2)
    late = paced(paced(Statistics(), *[1.0] * 12), 60.0, rows=300)
    assert late.span == 60.0 and late.rates["a"] < 6


def test_the_first_batch_and_one_of_a_single_moment_tell_no_rate() -> None:
    assert Statistics().after(TWO, two(newest={})).rates == {}
    assert Statistics().after(TWO, two(reached={"a": SECOND, "b": SECOND})).rates == {}
    assert fit_join_graph(TWO, Statistics().after(TWO, two(newest={})), TYPICAL) is None


def test_evidence_outlives_a_plan() -> None:
    machine = Machine(QUERY, {"a": 300.0, "b": 200.0, "c": 100.0})
    known = Statistics()
    for _ in range(4):
        known = known.after(QUERY, machine.step(MJOIN))
    of_tree = known.selectivities(TREE)
    assert of_tree[Hop("a", "(a b)", "b")] == pytest.approx(0.002, rel=0.1)
    assert Hop("c", "((a b) c)", "(a b)") not in of_tree, "nobody has probed that yet"


def test_the_graph_is_what_the_matches_say() -> None:
    machine = Machine(QUERY, {"a": 300.0, "b": 200.0, "c": 100.0})
    known = Statistics()
    for _ in range(6):
        known = known.after(QUERY, machine.step(MJOIN))
    graph = fit_join_graph(QUERY, known, TYPICAL)
    assert graph is not None
    assert graph.rates == {name: pytest.approx(rate, rel=0.1) for name, rate in machine.rates.items()}
    assert graph.selectivities == {pair: pytest.approx(0.002, rel=0.1) for pair in graph.selectivities}
    assert graph.row_bytes is not None and graph.row_bytes(frozenset("a")) == pytest.approx(40)


def test_no_match_says_that_it_takes_more_pairs() -> None:
    hop = {Hop("a", "(a b)", "b"): HopStats(probes=1000, matches=0)}
    known = Statistics().after(TWO, two(rows=1000, per_hop=hop))
    graph = fit_join_graph(TWO, known, TYPICAL)
    assert graph is not None
    (share,) = graph.classes.values()
    assert 1e-6 < share < 1e-4, "95 000 pairs without a match, where one in a hundred was guessed"


def test_more_rows_that_take_longer_are_believed_at_once() -> None:
    known = Statistics()
    for _ in range(10):
        known = known.after(TWO, two(rows=1000))
    assert known.after(TWO, two(rows=5000, work=1.0)).rates == {"a": 5000.0, "b": 5000.0}
    for accident in (two(rows=5000), two(rows=1000, work=1.0)):
        after = known.after(TWO, accident)
        assert after.rates["a"] < 2000 and (after.load.value or 0.0) < 0.5


def test_a_batch_of_next_to_no_time_tells_nothing() -> None:
    """A file of one stream that came alone: what it took is not work per event second, nor its pace."""
    known = Statistics()
    for _ in range(12):
        known = known.after(TWO, two(rows=1000, interval=1.0))
    alone = two(rows=300, interval=1.0, newest={"a": SECOND}, reached={"a": SECOND + 100}, work=0.01)
    after = known.after(TWO, alone)
    assert (after.rates, after.load, after.pace, after.span) == (
        known.rates, known.load, known.pace, known.span,
    )  # fmt: skip
    assert after.after(TWO, alone).span == pytest.approx(1e-4), "two of them are no accident"


def test_windows_that_are_fuller_than_the_rates_of_now_are_not_work_to_come() -> None:
    """Ten seconds of 10 rows a second are 100; where 500 are there yet, a batch takes five times as long."""
    calm = Statistics().after(TWO, two(held={"a": 100.0, "b": 100.0}))
    after = Statistics().after(TWO, two(held={"a": 500.0, "b": 500.0}, work=1.0))
    few = Statistics().after(TWO, two(held={"a": 5.0, "b": 5.0}))
    assert calm.load.value == pytest.approx(0.2)
    assert after.load.value == pytest.approx(0.2, rel=0.1)
    assert few.load.value == pytest.approx(0.2), "rows may be missing for want of memory"


def test_what_was_hardly_known_moves_when_it_is() -> None:
    step = (("a",), ("b",))
    faded, told = Statistics(matches={step: Average(1, 10)}), Statistics(matches={step: Average(100, 10_000)})
    assert should_analyse(faded, told, Adapt(), Limits()) and not should_analyse(
        told, told, Adapt(), Limits()
    )
    few = Statistics(matches={step: Average(2, 40)})
    assert not should_analyse(faded, few, Adapt(), Limits()), "that may be chance"


def test_what_skips_too_much_is_due() -> None:
    known = Statistics(load=Average(0.3, 3.0), span=1.0)
    young = Statistics(load=Average(0.1, 1.0), span=1.0)
    for now, sheds, cpu, found in (
        (known, True, 0.5, True),
        (known, False, 0.5, False),
        (known, True, 0.11, False),
        (young, True, 0.5, False),
    ):
        assert should_analyse(now, now, Adapt(), Limits(cpu), sheds) == found


def test_what_an_earlier_plan_told_gives_way_to_what_this_one_tells() -> None:
    """The mjoin told of b+c and a; the tree never asks them, and sees a and b match ten times as often."""
    machine = Machine(QUERY, {"a": 300.0, "b": 200.0, "c": 100.0}, share=0.002)
    known = Statistics()
    for _ in range(10):
        known = known.after(QUERY, machine.step(MJOIN))
    machine.share = 0.02
    for _ in range(60):
        known = known.after(QUERY, machine.step(TREE))
    graph = fit_join_graph(QUERY, known, TYPICAL)
    assert graph is not None
    assert graph.selectivity(["a"], ["b"]) == pytest.approx(0.02, rel=0.15)
    untold = [
        one for step, one in known.matches.items() if step not in {step for _, step in iterate_steps(TREE)}
    ]
    assert untold and all(one.total <= 1.01 for one in untold)


def test_what_is_kept_is_read_again() -> None:
    machine = Machine(QUERY, {"a": 300.0, "b": 200.0, "c": 100.0}, lags=lags_at(QUERY, 3.0))
    known = Statistics()
    for _ in range(5):
        known = known.after(QUERY, machine.step(MJOIN))
    known = known.restart_load(1.5).after(QUERY, machine.step(TREE))
    assert Statistics.from_json(json.loads(json.dumps(known.to_json()))) == known


def test_lags_that_drift_are_followed_and_few_results_change_little() -> None:
    machine = Machine(QUERY, {"a": 300.0, "b": 200.0, "c": 100.0}, lags=lags_at(QUERY, 3.0))
    known = Statistics()
    for _ in range(5):
        known = known.after(QUERY, machine.step())
    few = replace(machine.step(), lags=lags_at(QUERY, -6.0, results=4))
    assert known.after(QUERY, few).lags.lags["b"].share(2.5, 3.5) > 0.9  # type: ignore[union-attr]
    for results in (15, 400):
        drifted = known.after(QUERY, replace(machine.step(), lags=lags_at(QUERY, -6.0, results)))
        assert drifted.lags is not None and drifted.lags.lags["b"].share(-6.5, -5.5) > 0.9
    assert should_analyse(known, drifted, Adapt(), Limits()) and not should_analyse(
        known, known, Adapt(), Limits()
    )


def test_samples_of_the_same_lags_hardly_ever_differ_and_others_do() -> None:
    rng = np.random.default_rng(3)

    def drawn(middle: float) -> LagHistograms:
        found = np.clip(rng.normal(middle, 2.0, rng.integers(30, 200)), 0, 39).astype(int)
        return LagHistograms(
            "a", {"b": LagHistogram(-WINDOW, WINDOW, tuple(np.bincount(found, minlength=40)))}
        )

    same = [lags_differ(drawn(20), drawn(20), 0.05, results_each=1.0) for _ in range(500)]
    moved = [lags_differ(drawn(20), drawn(26), 0.05, results_each=1.0) for _ in range(500)]
    assert sum(same) <= 3 and all(moved)
    assert not lags_differ(drawn(20), drawn(26), 0.05, results_each=100.0), (
        "a few results, however often each was counted"
    )


counts = st.one_of(st.just(0), st.integers(0, 50), st.integers(0, 10**15))
seconds = st.one_of(st.just(0.0), st.floats(0, 100), st.floats(0, 1e12))


@st.composite
def observed(draw: st.DrawFn, plan: Join) -> Observed:
    names = QUERY.names
    some = st.dictionaries(st.sampled_from(names), counts)
    times = st.dictionaries(st.sampled_from(names), st.integers(-(10**15), 10**15))
    hop = st.builds(
        lambda probes, matches, sampled, found, narrowed: HopStats(
            probes, matches, min(matches, 10**16), sampled=sampled, sampled_matches=found, narrowed=narrowed
        ),
        counts, counts, counts, counts, counts,
    )  # fmt: skip
    return Observed(
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
def test_whatever_is_observed_statistics_are_numbers_and_verdicts_are_valid(data: st.DataObject) -> None:
    plan = data.draw(st.sampled_from([MJOIN, TREE]))
    known = Statistics()
    for _ in range(data.draw(st.integers(1, 5))):
        seen = data.draw(observed(plan))
        known = known.after(QUERY, seen)
    assert Statistics.from_json(json.loads(json.dumps(known.to_json(), allow_nan=False))) == known
    assert all(0 <= rate < math.inf for rate in known.rates.values())
    graph = fit_join_graph(QUERY, known, TYPICAL)
    assert (graph is None) == (known.rates.keys() != set(QUERY.names))
    cpu, memory = (st.sampled_from([least, some, math.inf]) for least, some in ((1e-9, 0.3), (1.0, 1e9)))
    limits = Limits(data.draw(cpu), data.draw(memory))
    running, movable = PlanInForce(plan, seen.allowance), data.draw(st.sampled_from(MOVABLE))
    verdict = analyse(QUERY, known, running, limits, TYPICAL, Adapt(), "auto", movable)
    if graph is None:
        assert verdict is None
        return
    assert verdict is not None
    assert all(0 < share <= 1 for share in (*graph.selectivities.values(), *graph.classes.values()))
    assert 0 <= verdict.recall <= 1 and not math.isnan(verdict.gain) and 0 <= verdict.cpu < math.inf
    assert verdict.reason and "nan" not in verdict.reason
    if verdict.allowance is not None:
        verdict.allowance.check(verdict.plan)
