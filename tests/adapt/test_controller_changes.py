"""A controller whose budget, load, plan or process changes while challengers are tried or have won."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from tests.adapt.simulated_machine import Machine, asked, lags_at
from tests.adapt.test_controller import LEARNING, MJOIN, QUERY, RATES, THIN, Loop, full, kept, machine

from weir.adapt import background_analysis
from weir.adapt.analyse import AdaptationScope, Usage
from weir.adapt.controller import Controller
from weir.adapt.statistics import Statistics
from weir.codec import from_json, to_json
from weir.plan.tree import Join, join
from weir.query.model import Budget
from weir.shed.allowance import Allowance

TREE_RATES = {"a": 2000.0, "b": 20.0, "c": 20.0}


class Disappointing(Machine):
    """Finds less than it should by harvesting, and by a tree: these shares of it."""

    by_ages = 0.1
    by_trees = 1.0

    def recall(self, plan: Join, allowance: Allowance | None) -> float:
        by_ages = self.by_ages if allowance is not None and allowance.ages else 1.0
        return super().recall(plan, allowance) * by_ages * (1.0 if plan.is_mjoin else self.by_trees)


def harvest() -> Loop:
    """A query of which harvesting has won its trial."""
    source = machine(lags=lags_at(QUERY, 3.0))
    loop = Loop(source, Budget(cpu=full(source) / 2))
    loop.run(40)
    assert loop.allowance is not None and loop.allowance.ages
    return loop


def better_tree() -> Loop:
    """A query of which another tree has won its trial."""
    source = Disappointing(QUERY, TREE_RATES, share=1e-4, noise=0.05)
    loop = Loop(source, Budget(cpu=0.7 * full(source)), scope=AdaptationScope("tree"))
    loop.run(40)
    assert not loop.plan.is_mjoin
    return loop


def watch_usage(monkeypatch: pytest.MonkeyPatch) -> list[Usage]:
    """What analyses are told that the query takes."""
    told, analyse = [], background_analysis.analyse

    def watched(*given: Any) -> Any:
        told.append(given[5])
        return analyse(*given)

    monkeypatch.setattr(background_analysis, "analyse", watched)
    return told


def test_a_challenger_is_tried_again_after_every_bar() -> None:
    """Not earlier than after ten windows, and the fourth time too, when its wait ends later than its bar."""
    source = Disappointing(QUERY, RATES, noise=0.05, lags=lags_at(QUERY, 3.0), length=2.5)
    loop = Loop(source, Budget(cpu=full(source) / 2))
    runs = [[one.reason for one in loop.run(1)] for _ in range(150)]
    tried = [batch for batch, said in enumerate(runs) if any("try it for a window" in why for why in said)]
    assert len(tried) == 4 and all(later - batch >= 40 for batch, later in pairwise(tried))


def test_a_tree_that_becomes_worse_goes_back_to_the_plan_before_it() -> None:
    loop = better_tree()
    loop.machine.by_trees = 0.1  # type: ignore[attr-defined]
    loop.run(12)
    assert loop.plan.is_mjoin


def test_what_was_beaten_may_win_again() -> None:
    """It finds less for a while, as when more rows come, and is not barred for that."""
    source = Disappointing(QUERY, RATES, noise=0.05, lags=lags_at(QUERY, 3.0))
    source.by_ages = 1.0
    loop = Loop(source, Budget(cpu=full(source) / 2))
    loop.run(25)
    assert loop.allowance is not None and loop.allowance.ages
    source.by_ages = 0.3
    runs = (loop.run(1) for _ in range(12))
    assert any("has become worse" in one.reason for decided in runs for one in decided)
    source.by_ages = 1.0
    loop.run(25)
    assert loop.allowance is not None and loop.allowance.ages


def test_a_refused_plan_takes_nothing_from_what_had_won() -> None:
    loop = harvest()
    before = loop.controller._challenges
    loop.controller._go_to(loop.controller._floor(join(join("a", "b"), "c")), "another tree")
    refused = loop.controller.take_recommendation()
    assert refused is not None and refused.changes_plan
    loop.controller.refuse(MJOIN)
    assert loop.controller._challenges == before


def test_a_restart_goes_on_with_what_had_won() -> None:
    loop = harvest()
    stored = from_json(Statistics, json.loads(json.dumps(to_json(loop.controller.statistics))))
    given: tuple[Any, ...] = (QUERY, MJOIN, loop.allowance, loop.controller.budget)
    loop.controller = Controller(*given, statistics=stored)
    for _ in range(3):
        loop.run(1)
        assert loop.allowance is not None and loop.allowance.ages
    thinning = Controller(*given, scope=THIN, statistics=stored).take_recommendation()
    assert thinning is not None and thinning.allowance is not None and not thinning.allowance.ages


def test_batches_of_uneven_length_are_held_against_their_own_budget() -> None:
    source = machine()
    source.noise = 0.0
    loop = Loop(source, Budget(cpu=full(source) / 2), scope=THIN)
    for batch in range(40):
        source.length = (1.0, 3.0)[batch % 2]
        loop.run(1)
    spent = loop.controller.statistics.load.spent
    assert len(spent) == 9 and all(0.8 < ratio < 1.2 for ratio in spent)


def test_nothing_is_made_up_for_where_only_the_trigger_counts() -> None:
    """Storing takes twice the budget and exact batches twice the trigger: half of the rows still probe."""
    source = machine()
    source.scale = 2.0 / (full(source) - kept(source))
    loop = Loop(source, Budget(cpu=kept(source) / 2), scope=AdaptationScope(shed="thin", interval=1.0))
    loop.run(12)
    assert not loop.is_exact and loop.controller.statistics.load.spent == ()
    assert loop.mean_recall(6) > 0.45


def test_the_seconds_of_a_batch_are_not_those_of_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ten seconds, a tenth of the fixed seconds falls on each."""
    told, source = watch_usage(monkeypatch), machine(length=10.0, lags=lags_at(QUERY, 3.0))
    source.noise, exact = 0.0, full(source)
    source.fixed = exact
    Loop(source, Budget(cpu=0.7 * exact)).run(12)
    assert told and told[0].kept + told[0].skippable == pytest.approx(1.1 * exact, rel=0.05)


def test_the_model_is_corrected_by_what_is_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = harvest()
    told = watch_usage(monkeypatch)
    loop.machine.rates = {name: 2 * rate for name, rate in RATES.items()}
    loop.run(3)
    assert told and told[-1].allowance is not None and told[-1].allowance.ages


def test_a_strategy_that_leaves_cpu_is_solved_again() -> None:
    """The machine becomes faster, which no statistic of the streams tells."""
    source = machine()
    loop = Loop(source, Budget(cpu=full(source) / 2), scope=AdaptationScope(shed="random-drop"))
    loop.run(15)
    before = loop.mean_recall(5)
    source.scale /= 1.5
    loop.run(15)
    assert loop.mean_recall(5) > 1.2 * before and not loop.is_exact


@pytest.mark.parametrize("start", [harvest, lambda: thin()])
def test_without_its_cpu_budget_nothing_is_shed(start: Callable[[], Loop]) -> None:
    loop = start()
    loop.controller.budget = Budget()
    decided = loop.run(2)
    assert loop.is_exact and "no CPU budget" in decided[0].reason
    assert loop.run(10) == []


def thin() -> Loop:
    loop = Loop(machine(), Budget(cpu=full(machine()) / 2), scope=THIN)
    loop.run(10)
    assert not loop.is_exact
    return loop


@pytest.mark.parametrize("budget", [Budget(cpu=1.0), Budget(memory="1g")])
def test_a_budget_that_comes_later_learns_lags(budget: Budget) -> None:
    loop = Loop(machine(), Budget())
    loop.controller, loop.allowance = Controller(QUERY, MJOIN, None, Budget()), None
    assert loop.run(5) == [] and loop.allowance is None
    loop.controller.budget = budget
    loop.run(2)
    assert loop.allowance == LEARNING


def test_a_tree_stays_where_the_mjoin_could_not_store_its_rows_either() -> None:
    tree, source = join(join("a", "b"), "c"), machine()
    loop = Loop(source, Budget(cpu=0.5 * kept(source)), tree, scope=AdaptationScope("tree"))
    loop.run(20)
    assert loop.plan == tree


def test_trees_under_a_strategy_chosen_by_name_need_a_trial() -> None:
    source = Machine(QUERY, TREE_RATES, share=1e-4, noise=0.05)
    loop = Loop(source, Budget(cpu=0.6 * full(source)), scope=AdaptationScope("tree", "jaqpot"))
    decided = loop.run(60)
    trees = [one for one in decided if not one.plan.is_mjoin]
    assert trees and "try it for a window" in trees[0].reason
    assert any("jaqpot" in one.reason for one in decided[: decided.index(trees[0])]), "which needs no trial"


def test_the_seconds_of_the_analysis_are_told() -> None:
    source = machine(lags=lags_at(QUERY, 3.0))
    decided = Loop(source, Budget(cpu=full(source) / 2)).run(40)
    tried = next(one for one in decided if "try it for a window" in one.reason)
    assert tried.seconds > 0 and decided[0].seconds == 0


def test_orders_that_lost_their_trial_are_barred() -> None:
    """The model likes other probing orders, under which nothing is found."""
    query = asked("abcd", "{0}.k = {1}.k")

    class Stubborn(Machine):
        def recall(self, plan: Join, allowance: Allowance | None) -> float:
            return super().recall(plan, allowance) * (1.0 if plan == start else 0.1)

    rates = {"a": 400.0, "b": 300.0, "c": 20.0, "d": 20.0}
    source = Stubborn(query, rates, share=0.001, scale=20.0, noise=0.05, length=2.5)
    start = join("a", "b", "c", "d")
    cannot, can = source._split(start, None)
    loop = Loop(source, Budget(cpu=cannot + 0.3 * can), start, scope=AdaptationScope("orders", "thin"))
    tried = [one for one in loop.run(36) if "try it for a window" in one.reason]
    assert len(tried) == 1 and loop.plan == start
