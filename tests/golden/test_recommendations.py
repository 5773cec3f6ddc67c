"""The controller recommends what it did, for a simulated machine whose streams and budgets change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from tests.adapt.simulated_machine import Machine, asked, lags_at

import weir
from weir.adapt.analyse import AdaptationScope
from weir.adapt.controller import Controller
from weir.adapt.settings import Adapt
from weir.plan import mjoin

from . import names, normal
from .record import check

RATES = {"a": 300.0, "b": 200.0, "c": 100.0}
LEARNING = weir.Allowance(sample=0.01)
QUERY, EQUAL = asked(), asked("abcd", "{0}.k = {1}.k")
BATCHES = 30


@dataclass(frozen=True)
class Story:
    """A machine with a share of the CPU that all of it would take, and what happens before some batches."""

    share: float | None
    events: Mapping[int, Callable[[Machine, Controller], None]] = field(default_factory=dict)
    machine: Mapping[str, Any] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)
    memory: str | None = None
    query: Any = QUERY


def rates(times: float, *streams: str) -> Callable[[Machine, Controller], None]:
    def change(machine: Machine, controller: Controller) -> None:
        machine.rates = {n: r * (times if n in streams else 1) for n, r in machine.rates.items()}

    return change


def budget(**given: Any) -> Callable[[Machine, Controller], None]:
    def change(machine: Machine, controller: Controller) -> None:
        controller.budget = weir.Budget(**given)

    return change


def lags(middle: float) -> Callable[[Machine, Controller], None]:
    def change(machine: Machine, controller: Controller) -> None:
        machine.lags = lags_at(machine.query, middle)

    return change


def slower(times: float) -> Callable[[Machine, Controller], None]:
    def change(machine: Machine, controller: Controller) -> None:
        machine.scale *= times

    return change


STORIES = {
    "enough": Story(3.0, {15: rates(0.5, "a")}),
    "storm": Story(4.0, {8: rates(4, "a", "b", "c"), 20: rates(0.25, "a", "b", "c")}),
    "budgets": Story(0.5, {10: budget(cpu=1.0), 20: budget(cpu=0.002)}),
    "lags": Story(0.3, {12: lags(-6.0), 22: lags(1.0)}, {"lags": lags_at(QUERY, 3.0)}),
    "slower machine": Story(1.5, {10: slower(3.0), 20: slower(0.2)}),
    "jaqpot": Story(0.4, {15: rates(2, "c")}, more={"scope": AdaptationScope(shed="jaqpot")}),
    "harvest": Story(
        0.4, {15: rates(2, "c")}, {"lags": lags_at(QUERY, 3.0)}, {"scope": AdaptationScope(shed="harvest")}
    ),
    "random drop": Story(0.4, {15: rates(2, "c")}, more={"scope": AdaptationScope(shed="random-drop")}),
    "another tree": Story(
        0.8,
        {10: rates(5, "d"), 20: rates(0.1, "a")},
        {"share": 0.001},
        {"scope": AdaptationScope("tree")},
        query=EQUAL,
    ),
    "other orders": Story(
        1.2,
        {10: rates(8, "b"), 20: rates(0.05, "b")},
        {"share": 0.001},
        {"scope": AdaptationScope("orders")},
        query=EQUAL,
    ),
    "memory": Story(
        None,
        {12: rates(3, "a", "b")},
        {"share": 0.001},
        {"scope": AdaptationScope("tree")},
        memory="300k",
        query=EQUAL,
    ),
    "hasty, by triggers": Story(
        0.6,
        {10: rates(2, "a")},
        more={"scope": AdaptationScope(interval=1.0), "settings": Adapt(change=0.3, gain=0.2, calibrate=1)},
    ),
}


@pytest.mark.parametrize(("name", "story"), STORIES.items(), ids=STORIES)
def test_recommendations(name: str, story: Story) -> None:
    start = {stream: RATES.get(stream, 150.0) for stream in story.query.names}
    machine = Machine(story.query, start, noise=0.05, **story.machine)
    plan, allowance = mjoin(story.query), LEARNING
    cpu = None if story.share is None else story.share * replace(machine, noise=0.0).work(plan, None)
    given = weir.Budget(cpu=cpu, memory=story.memory)
    controller = names.recommends(story.query, plan, allowance, given, **story.more)
    found = []
    for batch in range(BATCHES):
        story.events.get(batch, lambda machine, controller: None)(machine, controller)
        advice = controller.take_recommendation()
        if advice is not None:
            found.append({"before_batch": batch, **normal.recommendation(advice)})
            plan, allowance = advice.plan, advice.allowance
        controller.learn(machine.step(plan, allowance))
        controller.start_analysis()
        controller.wait()
    check(file_name(name), normal.changes(found))


def file_name(story: str) -> str:
    return f"recommendations-{story.replace(',', '').replace(' ', '-')}"
