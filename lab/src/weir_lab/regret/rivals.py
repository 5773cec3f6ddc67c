"""The rivals: fixed decisions, every one of which is run, and the best that keeps within the budget.

All join trees with their best probing orders, times the ways to shed, times levels:

    thin         one share of the rows, by hash, probes at the first hops of the root; nothing below is shed
    jaqpot       probes divided by path productivity (Mukherji et al. 2011)
    harvest      the ages most likely to match; mjoins only (Gedik et al. 2007)
    mixture      probes and ages together; mjoins only
    random-drop  rows dropped before the join; mjoins only (Gedik et al. 2007)
    shorter      shorter windows, where memory is what is scarce

A decision that needs statistics is made from the true ones of a phase, once for each phase that differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from weir.plan.limits import NO_LIMITS
from weir.plan.plan_candidate import to_tree
from weir.plan.space import Space
from weir.plan.tree import Join
from weir.shed.allowance import Allowance
from weir.shed.expected import ShedForecast
from weir.shed.flow import convert_grants
from weir.shed.linear_program import solve_steady_grants
from weir.shed.strategies import choose_strategy
from weir.shed.thin import thin
from weir.stats.unit_costs import UnitCosts
from weir_lab.qualified.as_printed import find_all_qualified
from weir_lab.regret.budget import keeps_budget
from weir_lab.regret.machine import Machine
from weir_lab.regret.phase_statistics import true_graph, true_lags
from weir_lab.regret.play import Truth, ask, record, run, split_phases
from weir_lab.regret.record import Record
from weir_lab.regret.scenarios import Scenario
from weir_lab.regret.streams import WINDOW

LEVELS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0)
# By the names that `shed=` knows them by.
_MJOIN_ONLY = {"harvest": "harvest", "mixture": "auto", "random-drop": "random-drop"}


@dataclass(frozen=True, slots=True)
class FixedDecision:
    """A plan, what it sheds, and the window in seconds, for a whole run."""

    kind: str
    level: float
    plan: Join
    allowance: Allowance | None
    window: float = WINDOW
    learned_in: str = ""

    @property
    def name(self) -> str:
        """A name that no other decision of a scenario has."""
        learned = f", learned in '{self.learned_in}'" if self.learned_in else ""
        return f"{self.plan} {self.kind} {self.level:g}{learned}"


def list_decisions(
    scenario: Scenario, truth: Truth, costs: UnitCosts, levels: Sequence[float] = LEVELS, most_trees: int = 99
) -> list[FixedDecision]:
    """All fixed decisions of a scenario, of its cheapest trees only if there are more than `most_trees`."""
    decisions: dict[object, FixedDecision] = {}
    for phase in _differing_phases(scenario):
        for decision in _decide(scenario, truth, costs, phase, levels, most_trees):
            decisions.setdefault((decision.plan, str(decision.allowance), decision.window), decision)
    return list(decisions.values())


def try_decisions(
    decisions: Sequence[FixedDecision], scenario: Scenario, machine: Machine, truth: Truth, seed: int
) -> dict[str, list[Record]]:
    """Run fixed decisions, low levels first; once a level keeps the budget nowhere, no higher one can."""
    runs, hopeless = dict[str, list[Record]](), set[tuple[object, ...]]()
    for decision in sorted(decisions, key=lambda each: each.level):
        series = (decision.kind, decision.plan, decision.learned_in)
        if series not in hopeless:
            records = runs[decision.name] = try_decision(decision, scenario, machine, truth, seed)
            parts = [records, *split_phases(scenario, records).values()]
            if not any(keeps_budget(part) for part in parts):
                hopeless.add(series)
    return runs


def try_decision(
    decision: FixedDecision, scenario: Scenario, machine: Machine, truth: Truth, seed: int
) -> list[Record]:
    """Run a fixed decision through all batches."""
    within = f"{round(1000 * decision.window)} milliseconds"
    asked = ask(scenario, plan=decision.plan, allowance=decision.allowance, adapt=False, within=within)
    seen = run(machine.start(asked), scenario, machine, truth.feed)
    return record(scenario, machine, truth, decision.name, seed, seen)


def find_best(
    runs: Mapping[str, Sequence[Record]], judged: Callable[[Record], bool] = lambda _: True
) -> tuple[str, int] | None:
    """The run with the most results in the batches judged, of those that keep within the budget there.

    Returns its name and its results; None if none keeps within it.
    """
    fitting = {}
    for name, records in runs.items():
        part = [each for each in records if judged(each)]
        if keeps_budget(part):
            fitting[name] = sum(each.results for each in part)
    return max(fitting.items(), key=lambda item: item[1], default=None)


def _differing_phases(scenario: Scenario) -> list[int]:
    """The phases from whose statistics decisions are made: the first with each shape, if all streams flow."""
    seen, numbers = [], []
    for number, phase in enumerate(scenario.phases):
        shape = phase.shape_at(phase.batches - 1)
        if shape not in seen and all(shape.rates.values()):
            seen.append(shape)
            numbers.append(number)
    return numbers


def _decide(
    scenario: Scenario,
    truth: Truth,
    costs: UnitCosts,
    phase: int,
    levels: Sequence[float],
    most_trees: int,
) -> Iterator[FixedDecision]:
    graph, name = true_graph(scenario, truth.feed, phase, costs), scenario.phases[phase].name
    forecast = ShedForecast(graph, true_lags(scenario, truth.feed, phase))
    space = Space(graph)
    cheapest = sorted(find_all_qualified(space, NO_LIMITS), key=lambda candidate: candidate.cpu)
    trees = [tree for tree in (to_tree(space, each) for each in cheapest) if isinstance(tree, Join)]
    mjoins = [tree for tree in trees if tree.is_mjoin]
    chosen = [*mjoins, *(tree for tree in trees if not tree.is_mjoin)][:most_trees]
    for plan in chosen:
        for level in levels:
            yield FixedDecision("thin", level, plan, thin(plan, level) if level < 1 else None)
            if level < 1:
                yield FixedDecision("jaqpot", level, plan, _jaqpot(forecast, plan, level), WINDOW, name)
    for plan in mjoins:
        exact = forecast.estimate_exact(plan)[1]
        for kind, shed in _MJOIN_ONLY.items():
            for level in levels:
                if level < 1:
                    allowance = choose_strategy(forecast, plan, level * exact, shed).allowance
                    yield FixedDecision(kind, level, plan, allowance, WINDOW, name)
        if any(each.memory is not None for each in scenario.phases):
            for level in levels:
                yield FixedDecision("shorter", level, plan, None, level * WINDOW)


def _jaqpot(forecast: ShedForecast, plan: Join, level: float) -> Allowance:
    net, grants = solve_steady_grants(
        forecast.network_builder(plan), level * forecast.estimate_exact(plan)[1]
    )
    return convert_grants(net, grants)
