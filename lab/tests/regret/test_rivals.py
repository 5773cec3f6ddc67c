"""The rival is the fixed decision with the most results, of those that were measured within the budget."""

from dataclasses import replace

import pytest

from weir.plan.tree import join
from weir.shed.thin import thin
from weir_lab.regret import rivals
from weir_lab.regret.budget import keeps_budget, worst_cpu, worst_memory
from weir_lab.regret.machine import COSTS, SimulatedMachine
from weir_lab.regret.play import find_truth
from weir_lab.regret.rivals import FixedDecision, find_best, list_decisions, try_decision, try_decisions
from weir_lab.regret.scenarios import Phase, Scenario
from weir_lab.regret.streams import Shape

from .records import make

_MACHINE = SimulatedMachine(noise=0.0)
_PHASE = Phase("calm", 16, Shape(dict.fromkeys("abc", 20.0), keys=20), 0.5)
_SCENARIO = Scenario("tiny", "nothing", (_PHASE,))


def test_the_best_has_the_most_results_within_the_budget() -> None:
    runs = {
        "greedy": make(20, results=90, cpu=0.11),
        "good": make(20, results=60, cpu=0.104),
        "idle": make(20, results=10, cpu=0.01),
    }
    assert find_best(runs) == ("good", 1200)
    assert find_best({"greedy": runs["greedy"]}) is None
    # Within a part that was not greedy, it is the best.
    mixed = make(10, results=200, cpu=0.09) + make(10, "burst", 10, results=90, cpu=0.9)
    assert find_best({**runs, "mixed": mixed}, lambda each: each.phase == "calm") == ("mixed", 2000)
    assert find_best({**runs, "mixed": mixed}) == ("good", 1200)


def test_any_ten_batches_count_together() -> None:
    spike = make(20)
    spike[12] = replace(spike[12], cpu=0.2)
    assert worst_cpu(spike) == pytest.approx(1.1) and not keeps_budget(spike)
    spike[12] = replace(spike[12], cpu=0.14)
    assert worst_cpu(spike) == pytest.approx(1.04) and keeps_budget(spike)
    assert worst_cpu(make(3, budget=None)) is None
    assert worst_memory(make(3, most_bytes=8)) == 1.25 and not keeps_budget(make(3, most_bytes=8))


def test_all_trees_are_tried_with_every_way_to_shed() -> None:
    truth = find_truth(_SCENARIO, _MACHINE, 1)
    decisions = list_decisions(_SCENARIO, truth, COSTS, (0.2, 0.6, 1.0))
    assert len({str(each.plan) for each in decisions}) == 4
    assert {each.kind for each in decisions} == {"thin", "jaqpot", "harvest", "mixture", "random-drop"}
    four = replace(_PHASE, shape=Shape(dict.fromkeys("abcd", 10.0), keys=10))
    larger = replace(_SCENARIO, phases=(four,))
    trees = list_decisions(larger, find_truth(larger, _MACHINE, 1), COSTS, (1.0,))
    assert len({str(each.plan) for each in trees}) == 26
    assert len({each.name for each in decisions}) == len(decisions)


def test_thinning_finds_its_share_and_takes_less() -> None:
    truth = find_truth(_SCENARIO, _MACHINE, 1)
    plan = join("a", "b", "c")
    half = try_decision(FixedDecision("thin", 0.5, plan, thin(plan, 0.5)), _SCENARIO, _MACHINE, truth, 1)
    exact = sum(batch.results for batch in truth.exact)
    assert sum(batch.exact for batch in half) == exact > 100
    assert sum(batch.results for batch in half) == pytest.approx(0.5 * exact, rel=0.25)
    assert sum(batch.cpu for batch in half) < 0.75 * sum(batch.cpu for batch in truth.exact)


def test_no_higher_level_is_tried_once_one_exceeds_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, tried = join("a", "b", "c"), []
    decisions = [FixedDecision("thin", level, plan, thin(plan, level)) for level in (1.0, 0.8, 0.4, 0.1)]

    def measure(decision: FixedDecision, *_: object) -> object:
        tried.append(decision.level)
        return make(12, cpu=0.2 * decision.level)

    monkeypatch.setattr(rivals, "try_decision", measure)
    runs = try_decisions(decisions, _SCENARIO, _MACHINE, find_truth(_SCENARIO, _MACHINE, 1), 1)
    assert tried == [0.1, 0.4, 0.8] and len(runs) == 3
