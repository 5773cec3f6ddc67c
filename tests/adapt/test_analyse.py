from __future__ import annotations

import math

import pytest
from tests.adapt.simulated_machine import Machine, asked, collect_statistics, lags_at

from weir.adapt.analyse import AdaptationScope, Analysis, Usage, _thin, analyse
from weir.adapt.plan_estimator import PlanEstimator
from weir.adapt.settings import Changeable
from weir.adapt.statistics import Statistics
from weir.plan.default_plan import mjoin
from weir.plan.limits import Limits
from weir.plan.tree import Join, join
from weir.shed.allowance import Allowance

QUERY = asked()
MJOIN = mjoin(QUERY)
RATES = {"a": 300.0, "b": 200.0, "c": 100.0}
LEARNING = Allowance(sample=0.01)


def known(machine: Machine, plan: Join = MJOIN) -> Statistics:
    return collect_statistics(machine, plan, LEARNING)


def measured(machine: Machine, plan: Join = MJOIN) -> Usage:
    """What an exact batch of one second takes."""
    batch = machine.step(plan)
    return Usage(batch.work - batch.probing, batch.probing)


def find(
    machine: Machine,
    share: float = math.inf,
    memory: float = math.inf,
    plan: Join = MJOIN,
    changeable: Changeable = "nothing",
) -> Analysis:
    """Analyse a machine that may use a share of what the exact join takes."""
    usage = measured(machine, plan)
    limits = Limits(share * (usage.kept + usage.skippable), memory)
    found = analyse(QUERY, known(machine, plan), plan, limits, AdaptationScope(changeable), usage)
    assert found is not None
    return found


def test_a_plan_that_fits_stays() -> None:
    found = find(Machine(QUERY, RATES), 1.2)
    assert (found.best.base.plan, found.best.base.allowance, found.best.recall) == (MJOIN, LEARNING, 1.0)
    assert found.gain == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("scale", [0.2, 1.0, 50.0])
def test_shedding_meets_the_limit_on_any_machine(scale: float) -> None:
    """Expensive conditions do not make storing rows seem expensive, nor the other way round."""
    machine = Machine(QUERY, RATES, scale=scale, lags=lags_at(QUERY, 3.0))
    exact = machine.work(MJOIN, None)
    found = find(machine, 0.6).best
    assert found.base.sheds and found.recall > 0.6 and not found.warnings
    assert machine.work(MJOIN, found.base.allowance) < 0.6 * exact


def test_known_lags_raise_the_recall() -> None:
    """Where all results lie three seconds apart, a tenth of the windows holds them."""
    blind, aware = (find(Machine(QUERY, RATES, lags=lags), 0.4) for lags in (None, lags_at(QUERY, 3.0)))
    assert aware.best.base.allowance is not None and aware.best.base.allowance.ages
    assert aware.best.recall > 0.95 and blind.best.recall < 0.7
    assert aware.gain > 0.5, "more than thinning finds"


def test_a_cheaper_plan_is_found() -> None:
    """Almost nothing matches between b and c, so that keeping their matches spares almost all work."""
    machine = Machine(QUERY, {"a": 2000.0, "b": 20.0, "c": 20.0}, share=1e-4)
    linear = join(join("a", "b"), "c")
    assert find(machine, plan=linear).best.base.plan == linear, "which may not change"
    free = find(machine, plan=linear, changeable="tree")
    assert free.best.base.plan != linear and free.gain > 0.05
    small = find(machine, memory=1.0, plan=linear, changeable="tree")
    assert small.best.memory <= free.best.memory


def linear_machine() -> tuple[Machine, Join]:
    """A tree whose lower join takes most of the time, as most pairs of a and b have no partner in c."""
    return Machine(QUERY, {"a": 300.0, "b": 300.0, "c": 5.0}, scale=3.0), join(join("a", "b"), "c")


def test_other_plans_are_judged_by_what_all_joins_of_the_running_one_take() -> None:
    """Probing takes three times what is modelled, below the root of the running tree as well."""
    machine, tree = linear_machine()
    usage = measured(machine, tree)
    assert usage.kept > usage.skippable, "the lower join takes more than the root"
    model = PlanEstimator(QUERY, machine.graph).correct(tree, usage.kept, usage.skippable)
    assert model.correction.probing == pytest.approx(machine.scale, rel=0.01)
    for plan in (tree, MJOIN):
        assert model.estimate(plan)[1] == pytest.approx(machine.work(plan, None), rel=0.01)


def test_what_is_measured_of_the_running_plan_is_right_whatever_the_model_says() -> None:
    machine, tree = linear_machine()
    for kept, skippable in ((0.0, 1.0), (1.0, 0.0), (0.2, 0.3)):
        model = PlanEstimator(QUERY, machine.graph).correct(tree, kept, skippable)
        assert model.estimate(tree)[1] == pytest.approx(kept + skippable, rel=1e-3)


@pytest.mark.parametrize("is_running", [True, False])
def test_thinning_promises_nothing_where_the_lower_joins_take_all_that_is_allowed(is_running: bool) -> None:
    machine, tree = linear_machine()
    kept, running = measured(machine, tree).kept, tree if is_running else MJOIN
    usage = measured(machine, running)
    model = PlanEstimator(QUERY, machine.graph).correct(running, usage.kept, usage.skippable)
    thinned = _thin(model, tree, Limits(0.9 * kept), "thin")
    assert thinned.recall == 0.0 and thinned.cpu == pytest.approx(kept, rel=0.01)


def test_what_is_barred_leaves_the_next_best() -> None:
    machine = Machine(QUERY, RATES, lags=lags_at(QUERY, 3.0))
    usage = measured(machine)
    limits, statistics = Limits(0.4 * (usage.kept + usage.skippable)), known(machine)
    free = analyse(QUERY, statistics, MJOIN, limits, AdaptationScope("tree"), usage)
    assert free is not None and free.best.base.strategy
    barred = {free.best.base.strategy}
    other = analyse(QUERY, statistics, MJOIN, limits, AdaptationScope("tree"), usage, barred)
    assert other is not None and other.best.base.strategy not in barred
    assert other.running == free.running
    barred |= {"tree", "orders"}
    none = analyse(QUERY, statistics, MJOIN, limits, AdaptationScope("tree"), usage, barred)
    assert none is not None and none.best.base == none.running.base


def test_the_model_is_corrected_by_what_sheds_too() -> None:
    """What a strategy takes tells as much of the machine as the exact join does."""
    machine = Machine(QUERY, RATES, scale=3.0, lags=lags_at(QUERY, 3.0))
    shed = find(machine, 0.6).best.base.allowance
    thinned, exact = machine.step(MJOIN, shed), measured(machine)
    usage = Usage(thinned.work - thinned.probing, thinned.probing, shed)
    limits = Limits(0.6 * (exact.kept + exact.skippable))
    found = [analyse(QUERY, known(machine), MJOIN, limits, AdaptationScope(), by) for by in (usage, exact)]
    by_shedding, by_exact = (one.running.recall for one in found if one is not None)
    assert by_shedding == pytest.approx(by_exact, abs=0.03)


def test_a_strategy_chosen_by_name_is_compared_on_the_running_tree() -> None:
    """So that another tree gains by its own merit, not by that of the strategy."""
    machine = Machine(QUERY, RATES)
    usage = measured(machine)
    limits = Limits(0.4 * (usage.kept + usage.skippable))
    found = analyse(QUERY, known(machine), MJOIN, limits, AdaptationScope("tree", "jaqpot"), usage)
    assert found is not None and found.running.base.strategy == "jaqpot"
    assert set(found.running.base.plan.inputs) == set(MJOIN.inputs)
