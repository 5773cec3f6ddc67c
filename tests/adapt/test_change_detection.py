from __future__ import annotations

from dataclasses import replace

from tests.adapt.simulated_machine import Machine, asked, collect_statistics

from weir.adapt.average import Average
from weir.adapt.change_detection import should_analyse
from weir.adapt.settings import Adapt
from weir.adapt.statistics import Statistics
from weir.plan.default_plan import mjoin
from weir.plan.limits import Limits
from weir.shed.allowance import Allowance

QUERY = asked()
MJOIN = mjoin(QUERY)
RATES = {"a": 300.0, "b": 200.0, "c": 100.0}
LEARNING = Allowance(sample=0.01)


def test_changes_start_an_analysis_and_steady_streams_do_not() -> None:
    machine = Machine(QUERY, RATES, noise=0.03)
    reference = collect_statistics(machine, MJOIN, LEARNING)
    now, analyses = reference, 0
    for _ in range(50):
        now = now.after(QUERY, machine.step(MJOIN, LEARNING))
        analyses += should_analyse(reference, now, Adapt(), Limits())
    assert analyses <= 2
    assert should_analyse(None, now, Adapt(), Limits()), "nothing was analysed yet"
    assert should_analyse(now, now, Adapt(), Limits(cpu=0.5 * (now.load.value or 0)))
    assert should_analyse(now, now, Adapt(), Limits(memory=now.bytes - 1))
    for change in ({"rates": {**RATES, "b": 400.0}}, {"share": 0.004}, {"scale": 2.0}):
        changed = replace(machine, **change)  # type: ignore[arg-type]
        later = now
        for _ in range(5):
            later = later.after(QUERY, changed.step(MJOIN, LEARNING))
        assert should_analyse(now, later, Adapt(), Limits()), change


def test_a_selectivity_that_was_hardly_known_counts_as_changed() -> None:
    step = (("a",), ("b",))
    faded, measured = (
        Statistics(matches={step: Average(1, 10)}),
        Statistics(matches={step: Average(100, 10_000)}),
    )
    assert should_analyse(faded, measured, Adapt(), Limits()) and not should_analyse(
        measured, measured, Adapt(), Limits()
    )
    few = Statistics(matches={step: Average(2, 40)})
    assert not should_analyse(faded, few, Adapt(), Limits()), "that may be chance"


def test_a_query_that_sheds_with_cpu_to_spare_is_analysed() -> None:
    known = Statistics(load=Average(0.3, 3.0), span=1.0)
    young = Statistics(load=Average(0.1, 1.0), span=1.0)
    for now, is_shedding, cpu, expected in (
        (known, True, 0.5, True),
        (known, False, 0.5, False),
        (known, True, 0.11, False),
        (young, True, 0.5, False),
    ):
        assert should_analyse(now, now, Adapt(), Limits(cpu), is_shedding) == expected
