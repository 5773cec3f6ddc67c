"""The simulated machine shows charged seconds only: counted work times unit costs, alike in every run."""

from dataclasses import replace

import pytest

from weir.plan.tree import join
from weir_lab.regret.machine import COSTS, SimulatedMachine
from weir_lab.regret.play import ask, find_truth, play_weir
from weir_lab.regret.scenarios import Phase, Scenario
from weir_lab.regret.streams import Shape

_SHAPE = Shape(dict.fromkeys("abc", 30.0), keys=20)
_SCENARIO = Scenario("calm", "nothing", (Phase("calm", 14, _SHAPE, 0.5),))
_TREE = join(join("a", "b"), "c")


def test_a_batch_takes_what_its_work_is_charged() -> None:
    machine = SimulatedMachine(noise=0.0)
    query = machine.start(ask(_SCENARIO, plan=_TREE, adapt=False))
    for rows in _SCENARIO.feed(1)[:6]:
        query.process(rows)
    report = query.last_report
    assert report is not None and report.results > 100
    hops = report.per_hop
    for hop, work in hops.items():
        steps = COSTS.probe * work.probes + COSTS.compare * work.comparisons + COSTS.match * work.matches
        assert work.seconds == pytest.approx(COSTS.fixed + steps), hop
    partials = sum(work.matches for hop, work in hops.items() if hop.node == "(a b)")
    stored = COSTS.insert * (90 + partials)
    charged = stored + COSTS.out * report.results + sum(work.seconds for work in hops.values())
    assert report.work == pytest.approx(charged)
    assert report.seconds == pytest.approx(charged)


def test_a_neighbour_slows_a_batch_down() -> None:
    machine = SimulatedMachine(noise=0.0)
    slowed = replace(_SCENARIO.phases[0], batches=2, slowdown=3.0)
    scenario = replace(_SCENARIO, phases=(replace(slowed, slowdown=1.0), slowed))
    once = find_truth(replace(scenario, phases=(replace(slowed, batches=4, slowdown=1.0),)), machine, 1).exact
    seen = find_truth(scenario, machine, 1).exact
    factors = [b.cpu / a.cpu for a, b in zip(once, seen, strict=True)]
    assert factors == pytest.approx([1, 1, 3, 3])


def test_a_run_can_be_repeated() -> None:
    runs = []
    for _ in range(2):
        machine = SimulatedMachine()
        truth = find_truth(_SCENARIO, machine, 1)
        runs.append((truth.exact, play_weir(_SCENARIO, machine, truth)))
    assert runs[0] == runs[1]
    assert len({seen.cpu for seen in runs[0][0]}) == _SCENARIO.batches
