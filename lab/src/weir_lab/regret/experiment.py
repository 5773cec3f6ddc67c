"""Run the testbed: scenarios, simulated and on this computer, steady streams, freshness, Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from weir.errors import unknown_name
from weir_lab.aim import Aim
from weir_lab.csv import write_tables
from weir_lab.regret import bars
from weir_lab.regret.budget import keeps_budget
from weir_lab.regret.freshness import CLOCKS, FreshRun, measure_freshness
from weir_lab.regret.machine import COSTS, RealMachine, SimulatedMachine
from weir_lab.regret.outcome import Outcome, Regret
from weir_lab.regret.paper_eviction import SCENARIOS as WITH_LITTLE_MEMORY
from weir_lab.regret.paper_eviction import EvictionRun, measure_eviction
from weir_lab.regret.pictures import draw
from weir_lab.regret.play import WEIR, find_truth, play_weir, record
from weir_lab.regret.rivals import LEVELS, FixedDecision, list_decisions, try_decision, try_decisions
from weir_lab.regret.scenarios import Scenario, list_scenarios
from weir_lab.regret.steady import MULTIPLES, SteadyRun, run_steady

Tell = Callable[[str], None]
STEADY, REAL, FRESH, SPARK = "steady", "real", "fresh", "spark"
# Scenarios that also run on this computer, and how many times their rates: as many rows as take some time.
_SCALES = {"calm": 6.25, "lag jump": 8.0, "neighbour": 10.0}
_BEST_ON_REAL = 10
# Batches whose freshness is held against a brute force.
_FRESH_BATCHES = 6
_SEED = 1


@dataclass(frozen=True, slots=True)
class Size:
    """How much is run.

    `phase` are the batches of a phase; `levels` and `trees` those of fixed decisions, which are tried in the
    scenarios `with_rivals`, None for all; `on_real` are the scenarios and fixed decisions tried on this
    computer; `seeds` and `batches` are those of the steady streams; `on_spark` the batches there.
    """

    phase: int
    levels: tuple[float, ...]
    trees: int
    with_rivals: frozenset[str] | None
    on_real: tuple[str, ...]
    rivals_on_real: int
    seeds: int
    batches: int
    on_spark: int


FULL = Size(20, LEVELS, 99, None, tuple(_SCALES), _BEST_ON_REAL, 20, 40, 30)
_FEW = frozenset({"calm", "burst", "lag jump"})
# Spark is left out of a quick run, unless it alone is asked for.
QUICK_ON_SPARK = 14
QUICK = Size(16, (0.1, 0.3, 0.6, 1.0), 2, _FEW, ("neighbour",), 0, 2, 24, 0)


@dataclass(frozen=True, slots=True)
class Report:
    """All that was run, and the bars."""

    outcomes: list[Outcome] = field(default_factory=list)
    steady: list[SteadyRun] = field(default_factory=list)
    on_spark: list[SteadyRun] = field(default_factory=list)
    freshness: list[FreshRun] = field(default_factory=list)
    eviction: list[EvictionRun] = field(default_factory=list)
    bars: list[Aim] = field(default_factory=list)

    @property
    def regrets(self) -> list[Regret]:
        """The regret of every scenario."""
        return [regret for outcome in self.outcomes for regret in outcome.regrets()]


def list_names(size: Size) -> tuple[str, ...]:
    """What `--only` may name."""
    return (*(scenario.name for scenario in list_scenarios(size.phase)), STEADY, REAL, FRESH, SPARK)


def run(size: Size, out: Path, only: str | None, tell: Tell) -> Report:
    """Run everything, or one part; write every batch into CSV files, and draw a picture for each scenario."""
    if only is not None and only not in list_names(size):
        raise unknown_name("part", only, list_names(size), where=" of this experiment")
    report = Report()
    if only in (None, STEADY):
        for seed in range(1, size.seeds + 1):
            tell(f"steady streams, seed {seed} of {size.seeds}")
            report.steady.append(run_steady(seed, MULTIPLES, size.batches))
        report.bars.extend(bars.steady_bars(report.steady))
    for scenario in list_scenarios(size.phase):
        if only in (None, scenario.name) or (only == REAL and scenario.name in size.on_real):
            report.outcomes.extend(_run_scenario(scenario, size, only in (None, REAL), tell))
            if scenario.name in WITH_LITTLE_MEMORY:
                tell(f"{scenario.name} with the eviction of GrubJoin")
                report.eviction.append(measure_eviction(scenario))
    if report.outcomes:
        report.bars.extend(_judge_scenarios(report.outcomes))
    report.bars.extend(map(bars.eviction_bar, report.eviction))
    if only in (None, FRESH):
        tell("freshness")
        report.freshness.extend(measure_freshness(clock, _FRESH_BATCHES) for clock in CLOCKS)
    if only == SPARK or (only is None and size.on_spark):
        report.bars.extend(_run_spark(size.on_spark or QUICK_ON_SPARK, report, tell))
    report.bars.extend(map(bars.freshness_bar, report.freshness))
    _write(report, out)
    return report


def _run_scenario(scenario: Scenario, size: Size, with_real: bool, tell: Tell) -> Iterator[Outcome]:
    machine, has_rivals = SimulatedMachine(), size.with_rivals is None or scenario.name in size.with_rivals
    tell(f"{scenario.name} on the simulated machine")
    truth = find_truth(scenario, machine, _SEED)
    ours = record(scenario, machine, truth, WEIR, _SEED, play_weir(scenario, machine, truth))
    decisions = list_decisions(scenario, truth, COSTS, size.levels, size.trees) if has_rivals else []
    tell(f"{scenario.name} on the simulated machine: {len(decisions)} fixed decisions")
    simulated = Outcome(scenario, ours, try_decisions(decisions, scenario, machine, truth, _SEED))
    yield simulated
    if with_real and scenario.name in size.on_real:
        tell(f"{scenario.name} on this computer")
        yield _run_on_real(scenario, _find_best_decisions(simulated, decisions, size.rivals_on_real))


def _find_best_decisions(
    outcome: Outcome, decisions: Sequence[FixedDecision], count: int
) -> list[FixedDecision]:
    """The fixed decisions with the most results of those that keep the budget, the best first."""
    kept = {name: records for name, records in outcome.fixed.items() if keeps_budget(records)}
    ranked = sorted(kept, key=lambda name: sum(each.results for each in kept[name]), reverse=True)[:count]
    return [decision for decision in decisions if decision.name in ranked]


def _run_on_real(scenario: Scenario, decisions: Sequence[FixedDecision]) -> Outcome:
    """The same with more rows on this computer, each run by itself."""
    factor, machine = _SCALES[scenario.name], RealMachine()
    phases = tuple(replace(phase, shape=phase.shape.faster(factor)) for phase in scenario.phases)
    larger = replace(scenario, phases=phases)
    find_truth(larger, machine, _SEED)  # what is done for the first time takes longer
    truth = find_truth(larger, machine, _SEED)
    ours = record(larger, machine, truth, WEIR, _SEED, play_weir(larger, machine, truth))
    fixed = {each.name: try_decision(each, larger, machine, truth, _SEED) for each in decisions}
    return Outcome(larger, ours, fixed)


def _run_spark(batches: int, report: Report, tell: Tell) -> list[Aim]:
    # Not at the top: other parts need no Spark.
    from weir_lab.regret import on_spark

    tell("steady streams on Spark")
    report.on_spark.append(on_spark.measure_steady(batches))
    tell("an overload on Spark")
    overload = bars.overload_bar(on_spark.measure_overload(), on_spark.TRIGGER)
    tell("freshness on Spark")
    report.freshness.extend(on_spark.measure_freshness_there(_FRESH_BATCHES))
    return [*bars.steady_bars(report.on_spark, "Spark"), overload]


def _judge_scenarios(outcomes: Sequence[Outcome]) -> list[Aim]:
    found = [*bars.regret_bars(outcomes), *bars.budget_bars(outcomes), *bars.recall_bars(outcomes)]
    for outcome in outcomes:
        match outcome.scenario.name:
            case "raised budget":
                found.append(bars.raised_bar(outcome))
            case "neighbour":
                found.append(bars.neighbour_bar(outcome))
            case "lag jump" if outcome.fixed:
                found.append(bars.harvest_bar(outcome))
    return found


def _write(report: Report, out: Path) -> None:
    steady = [each for run in (*report.steady, *report.on_spark) for each in run.records]
    fixed = [each for o in report.outcomes for records in o.fixed.values() for each in records]
    ours = [each for outcome in report.outcomes for each in outcome.ours]
    tables: dict[str, Sequence[Any]] = {
        "steady": steady,
        "scenarios": ours,
        "fixed": fixed,
        "eviction": [each for run in report.eviction for each in (*run.ours, *run.paper)],
        "regret": report.regrets,
        "freshness": report.freshness,
        "bars": report.bars,
    }
    write_tables(out, [(name, records) for name, records in tables.items() if records])
    for outcome in report.outcomes:
        name = outcome.scenario.name.replace(" ", "_")
        draw(outcome, out / f"{name}_{outcome.machine}.png")
