from __future__ import annotations

import json
import logging
from dataclasses import replace
from threading import Event
from typing import Any

import pytest
from tests.adapt.simulated_machine import Machine, asked, lags_at

from weir.adapt import background_analysis as module
from weir.adapt.analyse import AdaptationScope
from weir.adapt.batch_report import BatchReport
from weir.adapt.controller import Controller
from weir.adapt.recall import RecallEstimate
from weir.adapt.recommendation import Recommendation
from weir.adapt.settings import Adapt
from weir.adapt.statistics import Statistics
from weir.codec import from_json, to_json
from weir.errors import QueryError
from weir.plan.default_plan import mjoin
from weir.plan.tree import Join, join
from weir.query.model import Budget
from weir.shed.allowance import Allowance

QUERY = asked()
MJOIN = mjoin(QUERY)
RATES = {"a": 300.0, "b": 200.0, "c": 100.0}
LEARNING = Allowance(sample=0.01)
THIN = AdaptationScope(shed="thin")


class Loop:
    """A machine that follows its controller; it waits for analyses, so that runs are repeatable."""

    def __init__(self, machine: Machine, budget: Budget, plan: Join = MJOIN, **more: Any) -> None:
        self.machine, self.plan = machine, plan
        self.allowance: Allowance | None = LEARNING
        self.controller = Controller(machine.query, plan, LEARNING, budget, **more)
        self.works: list[float] = []
        self.recalls: list[float] = []

    def run(self, batches: int) -> list[Recommendation]:
        decisions = []
        for _ in range(batches):
            recommendation = self.controller.take_recommendation()
            if recommendation is not None:
                decisions.append(recommendation)
                self.plan, self.allowance = recommendation.plan, recommendation.allowance
            seen = self.machine.step(self.plan, self.allowance)
            self.works.append(seen.work)
            self.recalls.append(seen.recall or 0.0)
            self.controller.learn(seen)
            self.controller.start_analysis()
            self.controller.wait()
        return decisions

    @property
    def is_exact(self) -> bool:
        return self.allowance is None or not self.allowance.sheds

    def mean_recall(self, batches: int) -> float:
        return sum(self.recalls[-batches:]) / batches

    def worst_ten(self, since: int) -> float:
        """The most that any ten batches took, in the mean."""
        works = self.works[since:]
        return max(sum(works[i : i + 10]) / 10 for i in range(len(works) - 9))


def full(machine: Machine) -> float:
    """Return the seconds per second of the exact join."""
    return replace(machine, noise=0.0).work(MJOIN, None)


def machine(**more: Any) -> Machine:
    return Machine(QUERY, RATES, noise=0.05, **more)


def kept(machine: Machine) -> float:
    """Return the seconds per second that no shedding saves."""
    batch = replace(machine, noise=0.0).step(MJOIN)
    return batch.work - batch.probing


@pytest.mark.parametrize("times", [1.1, 1.3, 3.0])
def test_steady_streams_within_the_budget_change_nothing(times: float) -> None:
    loop = Loop(machine(), Budget(cpu=times * full(machine())), scope=AdaptationScope("tree"))
    assert loop.run(200) == []


@pytest.mark.parametrize("share", [0.4, 0.5, 0.7, 0.85])
@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_steady_streams_find_what_the_budget_pays_for(share: float, scale: float) -> None:
    source = machine(scale=scale)
    exact, cannot = full(source), kept(source)
    loop = Loop(source, Budget(cpu=share * exact), scope=THIN)
    loop.run(60)
    affordable = (share * exact - cannot) / (exact - cannot)
    assert loop.mean_recall(40) > affordable - 0.05
    assert loop.worst_ten(10) < 1.05 * share * exact


def test_shedding_starts_and_ends_with_a_burst() -> None:
    calm, storm = machine(), {name: 4 * rate for name, rate in RATES.items()}
    cpu = 4 * full(calm)
    loop = Loop(calm, Budget(cpu=cpu))
    assert loop.run(20) == []
    loop.machine.rates = storm
    decided = loop.run(20)
    assert decided and not loop.is_exact
    assert loop.worst_ten(25) < 1.05 * cpu
    assert "of the rows that enter the root probe" in decided[0].reason
    loop.machine.rates = RATES
    loop.run(4)
    assert loop.is_exact


def test_one_slow_batch_changes_little_and_is_forgotten() -> None:
    source = machine()
    loop = Loop(source, Budget(cpu=1.2 * full(source)), scope=THIN)
    loop.run(20)
    source.scale *= 5
    loop.run(1)
    source.scale /= 5
    loop.run(1)
    assert loop.is_exact, "nothing is shed for one batch"
    source.scale *= 3
    loop.run(3)
    assert not loop.is_exact
    source.scale /= 3
    loop.run(3)
    assert loop.mean_recall(1) > 0.95


def test_the_first_batches_decide_nothing() -> None:
    budget = Budget(cpu=full(machine()) / 2)
    for calibrate in (1, 6):
        loop = Loop(machine(), budget, settings=Adapt(calibrate=calibrate), scope=THIN)
        assert loop.run(calibrate) == []
        assert loop.run(3)


def test_a_larger_budget_is_used_at_once() -> None:
    loop = Loop(machine(), Budget(cpu=full(machine()) / 2), scope=THIN)
    loop.run(10)
    assert not loop.is_exact
    loop.controller.budget = Budget(cpu=2 * full(machine()))
    loop.run(2)
    assert loop.is_exact


def test_lags_that_pay_win_their_trial_and_go_when_they_change() -> None:
    source = machine(lags=lags_at(QUERY, 3.0))
    thinned = Loop(machine(), Budget(cpu=full(source) / 2), scope=THIN)
    loop = Loop(source, Budget(cpu=full(source) / 2))
    loop.run(40)
    thinned.run(40)
    assert loop.allowance is not None and loop.allowance.ages
    assert loop.mean_recall(10) > 1.3 * thinned.mean_recall(10)
    source.lags = lags_at(QUERY, 7.0)
    loop.run(40)
    assert loop.mean_recall(10) > thinned.mean_recall(10) - 0.05


class Untold(Machine):
    """A machine that tells nothing true of what ages miss: few rows are sampled."""

    def step(self, plan: Join = MJOIN, allowance: Allowance | None = None) -> BatchReport:
        seen = super().step(plan, allowance)
        if allowance is None or not allowance.ages:
            return seen
        return replace(seen, batch_recall=RecallEstimate(0.1, 0.0, 1.0))


def test_a_trial_counts_results() -> None:
    source = Untold(QUERY, RATES, lags=lags_at(QUERY, 3.0))
    loop = Loop(source, Budget(cpu=full(source) / 2))
    loop.run(40)
    assert loop.allowance is not None and loop.allowance.ages, "though it is told to find a tenth"


def test_another_tree_is_tried_and_left_if_it_is_not_better(caplog: pytest.LogCaptureFixture) -> None:
    """The model likes a tree that takes as much as the mjoin here, whatever it promises."""
    source = Machine(QUERY, {"a": 2000.0, "b": 20.0, "c": 20.0}, share=1e-4, noise=0.05)
    budget = Budget(cpu=0.6 * full(source))

    class Level(Machine):
        def _split(self, plan: Join, allowance: Allowance | None) -> tuple[float, float]:
            cannot, can = super()._split(MJOIN, None if plan != MJOIN else allowance)
            return (cannot, can) if plan == MJOIN else (cannot + 0.5 * can, 0.5 * can)

    level = Level(QUERY, source.rates, share=1e-4, noise=0.05)
    loop = Loop(level, budget, scope=AdaptationScope("tree"))
    plans = {str(recommendation.plan) for recommendation in loop.run(60)}
    assert len(plans) <= 2 and str(loop.plan) == str(MJOIN)


def test_a_tree_that_is_better_stays() -> None:
    source = Machine(QUERY, {"a": 2000.0, "b": 20.0, "c": 20.0}, share=1e-4, noise=0.05)
    loop = Loop(source, Budget(cpu=0.7 * full(source)), scope=AdaptationScope("tree"))
    loop.run(60)
    assert str(loop.plan) != str(MJOIN) and loop.mean_recall(20) > 0.95


def test_stored_statistics_need_no_calibration() -> None:
    source = machine()
    budget = Budget(cpu=full(source) / 2)
    first = Loop(source, budget, scope=THIN)
    first.run(8)
    stored = from_json(Statistics, json.loads(json.dumps(to_json(first.controller.statistics))))
    again = Controller(QUERY, MJOIN, LEARNING, budget, scope=THIN, statistics=stored)
    thinned = again.take_recommendation()
    assert thinned is not None and thinned.allowance is not None and thinned.allowance.sheds


def test_a_batch_never_waits_for_an_analysis(monkeypatch: pytest.MonkeyPatch) -> None:
    go, analyse = Event(), module.analyse

    def slow(*given: Any) -> Any:
        go.wait(20)
        return analyse(*given)

    monkeypatch.setattr(module, "analyse", slow)
    source = machine(lags=lags_at(QUERY, 3.0))
    slowed = Controller(QUERY, MJOIN, LEARNING, Budget(cpu=full(source) / 2))
    allowance: Allowance | None = LEARNING
    for _ in range(30):
        thinned = slowed.take_recommendation()
        allowance = allowance if thinned is None else thinned.allowance
        assert allowance is None or not allowance.ages
        slowed.learn(source.step(MJOIN, allowance))
        slowed.start_analysis()
    assert slowed.statistics.batches == 30, "batches went on"
    go.set()
    slowed.wait()
    tried = slowed.take_recommendation()
    assert tried is not None and tried.allowance is not None and tried.allowance.ages
    assert "try it for a window" in tried.reason


def test_a_plan_that_somebody_else_chose_is_taken_as_it_is() -> None:
    source, other = machine(), join(join("a", "b"), "c")
    controller = Controller(QUERY, MJOIN, LEARNING, Budget(cpu=full(source) / 2))
    for _ in range(6):
        controller.take_recommendation()
        controller.learn(source.step(other, None))
    thinned = controller.take_recommendation()
    assert thinned is None or thinned.plan == other


def test_a_refused_plan_is_not_waited_for() -> None:
    source = Machine(QUERY, {"a": 2000.0, "b": 20.0, "c": 20.0}, share=1e-4, noise=0.05)
    loop = Loop(source, Budget(cpu=0.7 * full(source)), scope=AdaptationScope("tree"))
    for _ in range(60):
        if loop.plan != MJOIN:
            break
        loop.run(1)
    loop.controller.refuse(MJOIN)
    loop.plan, loop.allowance = MJOIN, LEARNING
    assert {set(one.plan.inputs) == set(MJOIN.inputs) for one in loop.run(20)} == {True}


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (QueryError("nothing ties stream 'a' to the others"), "cannot analyse"),
        (ZeroDivisionError(), "failed"),
    ],
)
def test_an_analysis_that_fails_is_logged_and_the_query_continues(
    error: Exception, said: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(*given: Any) -> None:
        raise error

    monkeypatch.setattr(module, "analyse", failing)
    loop = Loop(machine(), Budget(cpu=full(machine()) / 2))
    with caplog.at_level(logging.WARNING, "weir"):
        loop.run(30)
    assert said in caplog.text and not loop.is_exact


def test_costs_that_shedding_cannot_save_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    loop = Loop(machine(), Budget(cpu=0.5 * kept(machine())))
    with caplog.at_level(logging.WARNING, "weir"):
        loop.run(12)
    assert sum("skipping probes would hardly help" in record.message for record in caplog.records) == 1
    assert loop.is_exact, "nothing is destroyed in vain"
    expected = full(machine()) / (0.5 * kept(machine()))
    assert loop.controller.expected_overrun == pytest.approx(expected, rel=0.15)


def test_a_budget_that_can_be_kept_is_not_meant_to_be_exceeded() -> None:
    loop = Loop(machine(), Budget(cpu=0.7 * full(machine())), scope=THIN)
    loop.run(12)
    assert not loop.is_exact and loop.controller.expected_overrun == 1.0
