from __future__ import annotations

from dataclasses import replace

from tests.adapt.simulated_machine import Machine, asked, collect_statistics

from weir.adapt.average import Average
from weir.adapt.change_detection import describe_changes
from weir.adapt.settings import Adapt
from weir.adapt.statistics import Statistics
from weir.plan.default_plan import mjoin
from weir.shed.allowance import Allowance

QUERY = asked()
MJOIN = mjoin(QUERY)
RATES = {"a": 300.0, "b": 200.0, "c": 100.0}
LEARNING = Allowance(sample=0.01)


def test_changes_are_found_and_steady_streams_have_none() -> None:
    machine = Machine(QUERY, RATES, noise=0.03)
    reference = collect_statistics(machine, MJOIN, LEARNING)
    now, found = reference, 0
    for _ in range(50):
        now = now.after(QUERY, machine.step(MJOIN, LEARNING))
        found += bool(describe_changes(reference, now, Adapt()))
    assert found <= 2
    for change in ({"rates": {**RATES, "b": 400.0}}, {"share": 0.004}):
        changed = replace(machine, **change)  # type: ignore[arg-type]
        later = now
        for _ in range(5):
            later = later.after(QUERY, changed.step(MJOIN, LEARNING))
        assert describe_changes(now, later, Adapt()), change


def test_a_selectivity_that_was_hardly_known_counts_as_changed() -> None:
    step = (("a",), ("b",))
    faded, measured = (
        Statistics(matches={step: Average(1, 10)}),
        Statistics(matches={step: Average(100, 10_000)}),
    )
    assert describe_changes(faded, measured, Adapt()) and not describe_changes(measured, measured, Adapt())
    few = Statistics(matches={step: Average(2, 40)})
    assert not describe_changes(faded, few, Adapt()), "that may be chance"
