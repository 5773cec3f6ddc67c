from __future__ import annotations

import json
import logging
from dataclasses import replace
from threading import Event
from typing import Any

import pytest
from tests.adapt.simulated_machine import Machine, asked, lags_at

from weir.adapt import controller as module
from weir.adapt.analyse import AdaptationScope, Recommendation
from weir.adapt.controller import Controller
from weir.adapt.plan_estimator import PlanInForce
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


class Loop:
    """A machine that follows its controller; it waits for analyses, so that runs are repeatable."""

    def __init__(self, machine: Machine, budget: Budget, **more: Any) -> None:
        self.machine = machine
        self.controller = Controller(machine.query, PlanInForce(MJOIN, LEARNING), budget, **more)
        self.plan: Join = MJOIN
        self.allowance: Allowance | None = LEARNING
        self.works: list[float] = []

    def run(self, batches: int) -> list[Recommendation]:
        decisions = []
        for _ in range(batches):
            recommendation = self.controller.take_recommendation()
            if recommendation is not None:
                decisions.append(recommendation)
                self.plan, self.allowance = recommendation.plan, recommendation.allowance
            seen = self.machine.step(self.plan, self.allowance)
            self.works.append(seen.work)
            self.controller.learn(seen)
            self.controller.start_analysis()
            self.controller.wait()
        return decisions


def full(machine: Machine) -> float:
    """Return the seconds per second of the exact join."""
    return replace(machine, noise=0.0).work(MJOIN, None)


def machine(**more: Any) -> Machine:
    return Machine(QUERY, RATES, noise=0.05, **more)


def test_steady_streams_within_the_budget_change_nothing() -> None:
    loop = Loop(machine(), Budget(cpu=3 * full(machine())))
    assert loop.run(200) == []


def test_steady_streams_beyond_the_budget_settle() -> None:
    cpu = full(machine()) / 2
    loop = Loop(machine(), Budget(cpu=cpu))
    first = loop.run(12)
    assert first and first[-1].recall < 1
    assert len(loop.run(200)) <= 4
    within = [work <= cpu for work in loop.works[12:]]
    assert sum(within) > 0.95 * len(within)


def test_shedding_starts_and_ends_with_a_burst() -> None:
    calm, storm = machine(), {name: 4 * rate for name, rate in RATES.items()}
    cpu = 4 * full(calm)
    loop = Loop(calm, Budget(cpu=cpu))
    assert loop.run(20) == []
    loop.machine.rates = storm
    decided = loop.run(20)
    assert decided and loop.allowance is not None and loop.allowance.sheds
    assert all(work <= cpu for work in loop.works[25:40])
    assert "rates of a, b, c rose" in decided[0].reason
    loop.machine.rates = RATES
    back = loop.run(20)
    assert back[-1].recall == 1 and loop.allowance == LEARNING


def test_the_first_batches_decide_nothing() -> None:
    budget = Budget(cpu=full(machine()) / 3)
    for calibrate in (1, 6):
        loop = Loop(machine(), budget, settings=Adapt(calibrate=calibrate))
        assert loop.run(calibrate) == []
        assert loop.run(2 if calibrate > 1 else 3)


def test_a_larger_budget_is_used() -> None:
    loop = Loop(machine(), Budget(cpu=full(machine()) / 3))
    assert loop.run(10)[-1].recall < 1
    loop.controller.budget = Budget(cpu=2 * full(machine()))
    assert loop.run(10)[-1].recall == 1


def test_stored_statistics_need_no_calibration() -> None:
    source = machine(lags=lags_at(QUERY, 3.0))
    budget = Budget(cpu=full(source) / 3)
    first = Loop(source, budget)
    assert first.run(8)
    kept = from_json(Statistics, json.loads(json.dumps(to_json(first.controller.statistics))))
    again = Controller(QUERY, PlanInForce(MJOIN, first.allowance), budget, statistics=kept)
    again.learn(first.machine.step(MJOIN, first.allowance))
    again.start_analysis()
    again.wait()
    assert again.take_recommendation() is None, "what was best is best"
    assert again.running.reference is not None, "which was analysed at once, without calibration"
    assert again.statistics.batches == 9


def test_a_batch_never_waits_for_an_analysis(monkeypatch: pytest.MonkeyPatch) -> None:
    go, analyse = Event(), module.analyse

    def slow(*given: Any) -> Recommendation | None:
        go.wait(20)
        return analyse(*given)

    monkeypatch.setattr(module, "analyse", slow)
    source = machine()
    slowed = Controller(QUERY, PlanInForce(MJOIN, LEARNING), Budget(cpu=full(source) / 3))
    for _ in range(10):
        assert slowed.take_recommendation() is None
        slowed.learn(source.step(MJOIN, LEARNING))
        slowed.start_analysis()
    assert slowed.statistics.batches == 10, "batches went on"
    go.set()
    slowed.wait()
    recommendation = slowed.take_recommendation()
    assert recommendation is not None and recommendation.recall < 1
    assert slowed.take_recommendation() is None, "a recommendation is returned once"


def test_a_recommendation_for_an_earlier_plan_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    go, analyse = Event(), module.analyse

    def slow(*given: Any) -> Recommendation | None:
        go.wait(20)
        return analyse(*given)

    monkeypatch.setattr(module, "analyse", slow)
    source, other = machine(), join(join("a", "b"), "c")
    slowed = Controller(QUERY, PlanInForce(MJOIN, LEARNING), Budget(cpu=full(source) / 3))
    for _ in range(3):
        slowed.learn(source.step(MJOIN, LEARNING))
        slowed.start_analysis()
    slowed.learn(source.step(other, None))
    slowed.start_analysis()
    go.set()
    slowed.wait()
    assert slowed.take_recommendation() is None
    assert slowed.running == PlanInForce(other), "and it is analysed"


def test_a_refused_plan_is_not_waited_for() -> None:
    loop = Loop(machine(), Budget(cpu=full(machine()) / 3), scope=AdaptationScope("tree"))
    loop.run(4)
    loop.controller.refuse(MJOIN, LEARNING)
    loop.plan, loop.allowance = MJOIN, LEARNING
    decisions = loop.run(8)
    assert decisions and {set(one.plan.inputs) == set(MJOIN.inputs) for one in decisions} == {True}


def test_a_query_that_cannot_be_analysed_warns_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(*given: Any) -> Recommendation | None:
        raise QueryError("nothing ties stream 'a' to the others")

    monkeypatch.setattr(module, "analyse", failing)
    loop = Loop(machine(), Budget(cpu=full(machine()) / 3))
    with caplog.at_level(logging.INFO, "weir"):
        loop.run(8)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "cannot analyse" in caplog.text


def test_a_failed_analysis_is_logged_and_the_query_continues(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(*given: Any) -> Recommendation | None:
        raise ZeroDivisionError("no")

    monkeypatch.setattr(module, "analyse", failing)
    loop = Loop(machine(), Budget(cpu=full(machine()) / 3))
    with caplog.at_level(logging.ERROR, "weir"):
        assert loop.run(5) == []
    assert "the analysis of the running query failed" in caplog.text


def test_fixed_costs_beyond_the_budget_warn_once(caplog: pytest.LogCaptureFixture) -> None:
    loop = Loop(machine(), Budget(cpu=0.0005), scope=AdaptationScope(interval=1.0))
    with caplog.at_level(logging.WARNING, "weir"):
        loop.run(8)
    assert sum("seconds besides its join" in record.message for record in caplog.records) == 1
