"""Run queries through a scenario: the exact join for the truth, weir within a budget, fixed decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import weir
from weir.local.join import LocalJoin
from weir.local.query import LocalQuery
from weir.query.model import Budget
from weir_lab.regret.machine import Machine
from weir_lab.regret.record import Record, Seen, observe
from weir_lab.regret.scenarios import SETTLING, Scenario
from weir_lab.regret.streams import SCHEMA, WINDOW, Delta, condition

EXACT, WEIR = "exact", "weir"


@dataclass(frozen=True, slots=True)
class Truth:
    """The exact join of a scenario's rows, batch by batch, and what it takes once windows are full."""

    feed: Sequence[Delta]
    exact: tuple[Seen, ...]
    cpu: float
    bytes: int


def ask(scenario: Scenario, **options: Any) -> LocalJoin:
    """The query of a scenario; times of the rows are selected, so that lags can be read off results."""
    asked = weir.join(
        streams=dict.fromkeys(scenario.names, SCHEMA),
        on=condition(scenario.names, scenario.lagged),
        select=", ".join(f"{name}.ts AS {name}" for name in scenario.names),
        late=scenario.late,
        **{"within": f"{WINDOW} seconds", **options},
    )
    assert isinstance(asked, LocalJoin)
    return asked


def find_truth(scenario: Scenario, machine: Machine, seed: int) -> Truth:
    """Run the exact join: the default plan, nothing skipped, nothing adapted."""
    feed = scenario.feed(seed)
    exact = run(machine.start(ask(scenario, plan="mjoin", adapt=False)), scenario, machine, feed)
    return make_truth(scenario, feed, exact)


def make_truth(scenario: Scenario, feed: Sequence[Delta], exact: Sequence[Seen]) -> Truth:
    """The truth by batches of the exact join; what it takes is that of the first phase, with full windows."""
    full = exact[SETTLING : scenario.phases[0].batches] or exact
    return Truth(feed, tuple(exact), fmean(seen.cpu for seen in full), max(seen.bytes for seen in full))


def budget_of(scenario: Scenario, truth: Truth, batch: int) -> Budget:
    """What a batch may use."""
    phase = scenario.phases[scenario.locate(batch)[0]]
    return Budget(
        cpu=None if phase.cpu is None else min(1.0, phase.cpu * truth.cpu),
        memory=None if phase.memory is None else round(phase.memory * truth.bytes),
    )


def play_weir(scenario: Scenario, machine: Machine, truth: Truth, **options: Any) -> list[Seen]:
    """Run weir within the budget."""
    asked = ask(scenario, budget=budget_of(scenario, truth, 0), **options)
    return run(machine.start(asked), scenario, machine, truth.feed, truth)


def run(
    query: LocalQuery,
    scenario: Scenario,
    machine: Machine,
    feed: Sequence[Delta],
    truth: Truth | None = None,
) -> list[Seen]:
    """Run a query through all batches; with a truth, it gets the budget of every phase."""
    seen = []
    for number, rows in enumerate(feed):
        if truth is not None and query.budget != budget_of(scenario, truth, number):
            query.budget = budget_of(scenario, truth, number)
        with machine.slow_down(scenario.phases[scenario.locate(number)[0]].slowdown):
            seen.append(step(query, rows))
    return seen


def step(query: LocalQuery, rows: Delta) -> Seen:
    """Run one batch, and wait for what is decided after it, so that a run can be repeated."""
    for _ in query.chunks(rows):
        pass  # results are counted by the engine and let go
    report, progress = query.last_report, query.lastProgress
    assert report is not None and progress is not None
    if query.controller is not None:
        query.controller.wait()
    return observe(progress["weir"], report.seconds, _compare_prediction(query, report.work))


def _compare_prediction(query: LocalQuery, measured: float) -> float | None:
    """What the last batch was expected to take, when it was throttled, over what it took."""
    throttle = None if query.controller is None else query.controller._throttle
    return throttle.predicted / measured if throttle is not None and measured else None


def record(
    scenario: Scenario, machine: Machine, truth: Truth, lane: str, seed: int, seen: Sequence[Seen]
) -> list[Record]:
    """Put the batches of a run beside the truth."""
    records = []
    for number, (exact, batch) in enumerate(zip(truth.exact, seen, strict=True)):
        allowed = budget_of(scenario, truth, number)
        records.append(
            Record(
                scenario=scenario.name,
                machine=machine.name,
                lane=lane,
                seed=seed,
                batch=number,
                phase=scenario.phases[scenario.locate(number)[0]].name,
                is_steady=scenario.is_steady(number),
                exact=exact.results,
                budget=allowed.cpu,
                most_bytes=allowed.bytes,
                **{name: getattr(batch, name) for name in Seen.__slots__},
            )
        )
    return records


def split_phases(scenario: Scenario, records: Sequence[Record]) -> Mapping[str, Sequence[Record]]:
    """The steady part of each phase; phases without one are left out."""
    phases = {
        phase.name: [r for r in records if r.phase == phase.name and r.is_steady] for phase in scenario.phases
    }
    return {name: steady for name, steady in phases.items() if steady}
