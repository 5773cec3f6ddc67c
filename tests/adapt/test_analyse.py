from __future__ import annotations

import math
from dataclasses import replace

import pytest
from tests.adapt.simulated_machine import Machine, asked, collect_statistics, lags_at

from weir.adapt.analyse import AdaptationScope, Recommendation, analyse
from weir.adapt.average import Average
from weir.adapt.plan_estimator import PlanInForce
from weir.adapt.settings import Adapt, Changeable
from weir.adapt.statistics import Statistics
from weir.plan.default_plan import mjoin
from weir.plan.limits import Limits
from weir.plan.tree import Join, join
from weir.shed.allowance import Allowance

QUERY = asked()
MJOIN = mjoin(QUERY)
RATES = {"a": 300.0, "b": 200.0, "c": 100.0}
LEARNING = Allowance(sample=0.01)


def known(machine: Machine, plan: Join = MJOIN, allowance: Allowance | None = LEARNING) -> Statistics:
    return collect_statistics(machine, plan, allowance)


def recommend(
    statistics: Statistics,
    cpu: float = math.inf,
    memory: float = math.inf,
    running: PlanInForce | None = None,
    changeable: Changeable = "nothing",
) -> Recommendation:
    running = running or PlanInForce(MJOIN, LEARNING, statistics)
    limits = Limits(cpu, memory)
    recommendation = analyse(QUERY, statistics, running, limits, Adapt(), AdaptationScope(changeable))
    assert recommendation is not None
    return recommendation


def test_a_plan_that_fits_stays() -> None:
    statistics = known(Machine(QUERY, RATES))
    load = statistics.load.value
    assert load is not None
    found = recommend(statistics, cpu=1.2 * load)
    assert (found.plan, found.allowance, found.recall) == (MJOIN, LEARNING, 1.0)
    assert found.gain == pytest.approx(0, abs=1e-9) and not found.is_urgent
    assert found.cpu == pytest.approx(load, rel=0.01), "what was measured is what is expected"
    assert found.reason.endswith("so nothing is shed")


@pytest.mark.parametrize("scale", [0.2, 1.0, 7.0])
def test_shedding_meets_the_limit_on_any_machine(scale: float) -> None:
    machine = Machine(QUERY, RATES, scale=scale)
    statistics = known(machine)
    load = statistics.load.value
    assert load is not None
    found = recommend(statistics, cpu=load / 2)
    assert found.is_urgent and found.allowance is not None and found.allowance.sheds
    assert found.allowance.sample > 0, "or nothing would be learned any more"
    # The faster the probes, the more of the work is storing rows, which is not skipped.
    assert 0.15 < found.recall < 1 and found.scale == pytest.approx(scale, rel=0.1)
    assert machine.work(MJOIN, found.allowance) == pytest.approx(0.9 * load / 2, rel=0.1), "a little below"
    assert "so shedding by" in found.reason and "% of the results" in found.reason


def test_expensive_predicates_do_not_make_storing_rows_seem_expensive() -> None:
    """Probes take 50 times what the model says, and a third of the CPU is allowed, and that is much."""
    machine = Machine(QUERY, RATES, scale=50.0, lags=lags_at(QUERY, 3.0))
    statistics = known(machine)
    assert statistics.load.value is not None
    allowed = statistics.load.value / 3
    found = recommend(statistics, allowed)
    assert found.recall > 0.95 and not found.warnings
    assert machine.work(MJOIN, found.allowance) < allowed


def test_windows_that_still_fill_up_do_not_make_work_seem_cheaper() -> None:
    statistics = known(Machine(QUERY, RATES, scale=5.0))
    assert statistics.load.value is not None
    filling = replace(statistics, load=Average(0.2 * statistics.load.value, 1.0), window_fill=0.2, scale=5.0)
    believed = recommend(filling, cpu=0.5 * statistics.load.value)
    assert believed.scale == 5.0 and believed.allowance is not None and believed.allowance.sheds
    assert recommend(replace(filling, window_fill=1.0), cpu=0.5 * statistics.load.value).scale < 2


def test_known_lags_raise_the_recall() -> None:
    """Where all results lie three seconds apart, a tenth of the windows holds them."""
    blind, aware = (known(Machine(QUERY, RATES, lags=lags)) for lags in (None, lags_at(QUERY, 3.0)))
    assert blind.load.value is not None and aware.load.value is not None
    without, by_lags = recommend(blind, blind.load.value / 3), recommend(aware, aware.load.value / 3)
    assert by_lags.allowance is not None and by_lags.allowance.ages
    assert by_lags.recall > 0.95 and without.recall < 0.7


def test_shedding_follows_lags_that_change() -> None:
    machine = Machine(QUERY, RATES, lags=lags_at(QUERY, 3.0))
    before = known(machine)
    assert before.load.value is not None
    first = recommend(before, before.load.value / 3)
    running = PlanInForce(MJOIN, first.allowance, before)
    now = before.restart_load(first.scale)
    assert recommend(now, before.load.value / 3, running=running).gain == pytest.approx(0, abs=0.02)
    machine.lags = lags_at(QUERY, 7.0)
    for _ in range(2):
        now = now.after(QUERY, machine.step(MJOIN, first.allowance))
    second = recommend(now, before.load.value / 3, running=running)
    assert second.gain > 5, "what was looked at holds nothing any more"
    assert "lags between streams changed" in second.reason


def test_shedding_ends_only_with_room_to_spare() -> None:
    machine = Machine(QUERY, RATES)
    exact = known(machine)
    assert exact.load.value is not None
    full = exact.load.value
    shed = recommend(exact, cpu=full / 2)
    running = PlanInForce(MJOIN, shed.allowance, exact)
    now = exact.restart_load(shed.scale).after(QUERY, machine.step(MJOIN, shed.allowance))
    tight, roomy = recommend(now, full * 1.1, running=running), recommend(now, full * 1.4, running=running)
    assert tight.allowance is not None and tight.allowance.sheds
    assert roomy.allowance == LEARNING and roomy.is_urgent and roomy.recall == 1


def test_a_cheaper_plan_is_recommended() -> None:
    """Almost nothing matches between b and c, so that keeping their matches spares almost all work."""
    machine = Machine(QUERY, {"a": 2000.0, "b": 20.0, "c": 20.0}, share=1e-4)
    linear = join(join("a", "b"), "c")
    statistics = known(machine, linear, None)
    running = PlanInForce(linear, None, statistics)
    assert recommend(statistics, running=running).plan == linear, "which may not change"
    free = recommend(statistics, running=running, changeable="tree")
    assert free.plan != linear and free.gain > 0.05 and "with the plan" in free.reason
    assert recommend(statistics, memory=1.0, running=running, changeable="tree").memory <= free.memory
