"""Steady streams on this computer: exact and budgeted runs, batch by batch in turns.

Four streams of 250 rows a second with 100 keys, 5 s windows, equality. A budget is a multiple of what the
exact join takes in a run of its own before; what it takes in between the budgeted batches says what multiple
the budget really was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean

from weir.local.query import LocalQuery
from weir.shed.thin import thin
from weir_lab.regret.budget import TOGETHER, worst_cpu
from weir_lab.regret.machine import RealMachine
from weir_lab.regret.play import EXACT, ask, budget_of, make_truth, record, run, step
from weir_lab.regret.record import Record, Seen
from weir_lab.regret.scenarios import SETTLING, Phase, Scenario
from weir_lab.regret.streams import Shape

STEADY = Shape(dict.fromkeys("abcd", 250.0), keys=100)
MULTIPLES = (0.4, 0.5, 0.7, 0.85, 1.0, 1.3)
FLOOR = "no probes"
_PILOT = SETTLING + 6


@dataclass(frozen=True, slots=True)
class SteadyRun:
    """One seed: the batches of the exact join, of one that skips every probe, and of each budget.

    `pilot` are the seconds of an exact batch in the run before, by which the budgets were set.
    """

    seed: int
    pilot: float
    exact: Sequence[Record]
    floor: Sequence[Record]
    budgeted: Mapping[float, Sequence[Record]]

    @property
    def records(self) -> list[Record]:
        """All batches."""
        return [each for lane in (self.exact, self.floor, *self.budgeted.values()) for each in lane]

    @property
    def unskippable(self) -> float:
        """The share of the exact join's CPU that remains when every probe is skipped."""
        return _cpu(self.floor) / _cpu(self.exact)

    def multiple(self, records: Sequence[Record]) -> float:
        """A budget over what the exact join took in between."""
        budget = records[-1].budget
        assert budget is not None
        return budget / _cpu(self.exact)

    def worst_cpu(self, records: Sequence[Record]) -> float:
        """The most CPU that any ten batches took of their budget.

        Where the exact join took longer than in the pilot in between those batches, the machine was slower
        by so much, for which no decision is to blame.
        """
        slowed = []
        for i, each in enumerate(records):
            around = self.exact[max(0, i - TOGETHER + 1) : i + 1]
            slower = max(1.0, fmean(batch.cpu for batch in around) / self.pilot)
            slowed.append(replace(each, cpu=each.cpu / slower))
        return worst_cpu(slowed) or 0.0


def judge(records: Sequence[Record]) -> list[Record]:
    """The batches that count: the second half, in which windows are full and decisions have been made."""
    return list(records[len(records) // 2 :])


def run_steady(seed: int, multiples: Sequence[float], batches: int) -> SteadyRun:
    """Run all lanes of one seed in turns, so that a busy neighbour slows all alike."""
    machine, scenario = RealMachine(), _scenario(1.0, batches)
    pilot = replace(scenario, phases=(replace(scenario.phases[0], batches=_PILOT),))
    measured = run(_start_exact(pilot), pilot, machine, pilot.feed(seed))
    taken = make_truth(pilot, (), measured)
    asked = {z: _scenario(z, batches) for z in multiples}
    lanes: dict[str, LocalQuery] = {EXACT: _start_exact(scenario), FLOOR: _start_exact(scenario)}
    lanes[FLOOR].allow(thin(lanes[FLOOR].plan, 0.0))
    for z, own in asked.items():
        lanes[f"{z:g}"] = ask(own, budget=budget_of(own, taken, 0)).start()
    seen: dict[str, list[Seen]] = {name: [] for name in lanes}
    feed = scenario.feed(seed)
    for number, rows in enumerate(feed):
        order = list(lanes)
        for name in order[number % len(order) :] + order[: number % len(order)]:
            seen[name].append(step(lanes[name], rows))
    truth = replace(taken, feed=feed, exact=tuple(seen[EXACT]))

    def records(name: str, own: Scenario) -> list[Record]:
        return record(own, machine, truth, name, seed, seen[name])

    budgeted = {z: records(f"{z:g}", own) for z, own in asked.items()}
    return SteadyRun(seed, taken.cpu, records(EXACT, scenario), records(FLOOR, scenario), budgeted)


def count_trials(records: Sequence[Record]) -> int:
    """How often another tree took over from the first one."""
    plans = [each.plan for each in records]
    return sum(plan not in (before, plans[0]) for before, plan in pairwise(plans))


def _scenario(multiple: float, batches: int) -> Scenario:
    return Scenario("steady", "nothing", (Phase("steady", batches, STEADY, multiple),))


def _start_exact(scenario: Scenario) -> LocalQuery:
    return ask(scenario, plan="mjoin", adapt=False).start()


def _cpu(records: Sequence[Record]) -> float:
    return fmean(each.cpu for each in judge(records))
