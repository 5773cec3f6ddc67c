"""Every bar is reached by good records and missed by bad ones."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from weir_lab.aim import Aim
from weir_lab.regret import bars
from weir_lab.regret.outcome import Outcome
from weir_lab.regret.record import Record, name_strategy
from weir_lab.regret.scenarios import Phase, Scenario
from weir_lab.regret.steady import SteadyRun, count_trials
from weir_lab.regret.streams import Shape

from .records import make

_SHAPE = Shape({"a": 1.0, "b": 1.0}, 1)


def _outcome(ours: Sequence[Record], **fixed: Sequence[Record]) -> Outcome:
    phases = tuple(Phase(name, 12, _SHAPE) for name in dict.fromkeys(each.phase for each in ours))
    return Outcome(Scenario("made up", "nothing", phases), ours, fixed)


def _steady(recall: float = 0.5, cpu: float = 0.05, multiple: float = 0.5, **values: Any) -> SteadyRun:
    """A run at a multiple of the exact cost, of which a tenth cannot be skipped."""
    budget = 0.1 * multiple
    budgeted = make(20, results=round(100 * recall), cpu=cpu, budget=budget, **values)
    return SteadyRun(1, 0.1, make(20, cpu=0.1), make(20, cpu=0.01, results=0), {multiple: budgeted})


def _by_name(found: Sequence[Aim]) -> dict[str, bool]:
    return {each.what.partition(": ")[2] or each.what: each.reached for each in found}


def test_steady_streams_that_do_all_they_should() -> None:
    assert all(_by_name(bars.steady_bars([_steady()])).values())
    assert all(_by_name(bars.steady_bars([_steady(1.0, 0.1, 1.3)])).values())


def test_steady_recall_must_follow_the_budget() -> None:
    name = "recall at 0.5 of the exact cost"
    # (0.5 - 0.1) / 0.9 - 0.05 = 0.394
    assert _by_name(bars.steady_bars([_steady(0.40)]))[name]
    assert not _by_name(bars.steady_bars([_steady(0.39)]))[name]
    # One bad run of several is one too many.
    assert not _by_name(bars.steady_bars([_steady(0.5), _steady(0.3)]))[name]
    assert not _by_name(bars.steady_bars([_steady(0.99, 0.1, 1.3)]))["recall at 1.3 of the exact cost"]


def test_steady_cpu_must_keep_the_budget() -> None:
    name = "CPU of any ten batches"
    assert _by_name(bars.steady_bars([_steady(cpu=0.052)]))[name]
    assert not _by_name(bars.steady_bars([_steady(cpu=0.053)]))[name]
    # Unless the exact join took longer, too.
    slower = replace(_steady(cpu=0.055), exact=make(20, cpu=0.11))
    assert _by_name(bars.steady_bars([slower]))[name]


def test_predicted_cpu_must_be_near_the_measured_in_most_batches() -> None:
    def reached(near: int, far: int) -> list[bool]:
        records = make(near, predicted=0.86) + make(far, predicted=1.16) + make(5, predicted=None)
        return [each.reached for each in bars.prediction_bars(records, "steady")]

    assert reached(18, 2) == [True] and reached(17, 3) == [False] and reached(0, 0) == []
    assert not _by_name(bars.steady_bars([_steady(predicted=1.2)]))["predicted CPU"]


def test_what_cannot_be_skipped_must_be_little() -> None:
    costly = replace(_steady(), floor=make(20, cpu=0.031))
    assert not _by_name(bars.steady_bars([costly]))["CPU without any probe"]


def test_trees_may_be_tried_twice() -> None:
    def plans(*names: str) -> list[Record]:
        return [replace(each, plan=plan) for each, plan in zip(make(len(names)), names, strict=True)]

    assert count_trials(plans("x", "x", "y", "x", "z", "z")) == 2
    often = replace(_steady(), budgeted={0.5: plans("x", "y", "x", "y", "z")})
    assert count_trials(often.budgeted[0.5]) == 3
    assert not _by_name(bars.steady_bars([often]))["trials of another tree"]


def test_regret_is_against_the_best_that_keeps_the_budget() -> None:
    rival = {"good": make(12, results=80), "greedy": make(12, results=100, cpu=0.2)}
    reached = [each.reached for each in bars.regret_bars([_outcome(make(12, results=77), **rival)])]
    assert reached == [True, True]
    reached = [each.reached for each in bars.regret_bars([_outcome(make(12, results=70), **rival)])]
    assert reached == [False, True]
    reached = [each.reached for each in bars.regret_bars([_outcome(make(12, results=50), **rival)])]
    assert reached == [False, False]
    assert bars.regret_bars([_outcome(make(12), greedy=rival["greedy"])]) == []


def test_scenarios_must_keep_their_budgets() -> None:
    good, bad = make(12, most_bytes=10), make(12, cpu=0.12, most_bytes=9)
    assert [each.reached for each in bars.budget_bars([_outcome(good)])] == [True] * 5
    reached = [each.reached for each in bars.budget_bars([_outcome(good), _outcome(bad)])]
    assert reached == [False] * 4 + [True]


def test_told_recall_must_be_near_in_every_phase() -> None:
    near, far = make(12, told=0.96), make(12, "burst", 12, told=0.9)
    assert bars.recall_bars([_outcome(near)])[0].reached
    assert not bars.recall_bars([_outcome(near + far)])[0].reached
    assert bars.mean_error(make(6) + make(6, told=0.8)) == pytest.approx(0.1)
    assert bars.mean_error(make(12, told=None)) == 1.0
    # Where there is nothing to find, there is nothing to tell.
    assert bars.mean_error(make(6, told=0.9) + make(6, told=None, exact=0)) == pytest.approx(0.1)


def test_intervals_must_hold_and_be_narrow() -> None:
    def reached(*parts: Sequence[Record]) -> bool:
        return bars.recall_bars([_outcome([each for part in parts for each in part])])[1].reached

    assert reached(make(18), make(2, low=0.2, high=0.4))
    assert not reached(make(16), make(4, low=0.2, high=0.4))
    assert not reached(make(16), make(4, low=None, high=None))
    assert not reached(make(20, low=0.7))
    assert not reached(make(20, low=None, high=None))


def test_a_raised_budget_is_used() -> None:
    before, slow = make(12, results=50), make(2, "raised", 12, results=50, cpu=0.05)
    assert bars.raised_bar(_outcome(before + slow + make(10, "raised", 14, results=80, cpu=0.09))).reached
    assert bars.raised_bar(_outcome(before + slow + make(10, "raised", 14, cpu=0.02))).reached
    assert not bars.raised_bar(_outcome(before + slow + make(10, "raised", 14, results=80, cpu=0.05))).reached


def test_recall_comes_back_after_a_neighbour() -> None:
    before, hog = make(12, results=80), make(3, "hog", 12, results=20)
    slow = make(3, "after", 15, results=20)
    assert bars.neighbour_bar(_outcome(before + hog + slow + make(9, "after", 18, results=76))).reached
    assert not bars.neighbour_bar(_outcome(before + hog + slow + make(9, "after", 18, results=70))).reached


def test_harvesting_must_beat_thinning() -> None:
    def judge(ours: int, thinned: int, harvested: int) -> bool:
        fixed = {
            "(a b) thin 0.5": make(12, results=thinned),
            "(a b) harvest 0.5": make(12, results=harvested),
        }
        return bars.harvest_bar(_outcome(make(12, results=ours), **fixed)).reached

    assert judge(76, 40, 80)
    assert not judge(70, 40, 80)
    assert not judge(80, 78, 80)
    assert not bars.harvest_bar(_outcome(make(12))).reached


def test_no_batch_of_an_overload_is_long() -> None:
    assert bars.overload_bar(3.9, 2.0).reached and not bars.overload_bar(4.1, 2.0).reached


def test_strategies_are_told_from_allowances() -> None:
    nothing: dict[str, Any] = {"probes": {}, "ages": {}, "drop": {}}
    assert name_strategy(None) == name_strategy({**nothing, "probes": {"x": 1.0}}) == "exact"
    assert name_strategy({**nothing, "probes": {"x": 0.0}}) == "probes"
    assert name_strategy({**nothing, "probes": {"x": 0.0}, "ages": {"y": {}}}) == "ages"
    assert name_strategy({**nothing, "probes": {"x": 0.3}, "ages": {"y": {}}}) == "probes and ages"
    assert name_strategy({**nothing, "drop": {"a": 0.1, "b": 0.0}}) == "rows"
