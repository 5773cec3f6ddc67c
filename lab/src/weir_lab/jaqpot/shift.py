"""Figure 6 of Mukherji et al. 2011: selectivities shift at 3 and 7 of 10 minutes, probes are divided anew.

A minute is played as several windows, as nothing in the plan knows how long a minute is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from weir.query.windows import RowWindow
from weir.stats.join_graph import JoinGraph
from weir_lab.jaqpot.play import Stage, fill_stage
from weir_lab.jaqpot.policies import POLICIES_COMPARED, divide
from weir_lab.jaqpot.settings import STREAMS, Setting, Shape, build_edges, build_tree
from weir_lab.virtual_machine import Delta
from weir_lab.workload import Workload

MINUTES = 10
_SHIFTS = {0: (0.01, 0.01, 0.05), 3: (0.03, 0.03, 0.05), 7: (0.03, 0.03, 0.1)}
RATE, ROWS, FACTOR, RESOURCES = 300.0, 200, 1.5, 0.3


@dataclass(frozen=True, slots=True)
class Minute:
    """What a policy has put out until the end of a minute: all results, and those that were fresh."""

    shape: Shape
    seed: int
    policy: str
    minute: int
    results: int
    fresh: int
    loosened: float


def play_shifts(shape: Shape, seed: int, seconds: float, tell: Callable[[str], None]) -> Iterator[Minute]:
    """Every policy over ten minutes, of so many virtual seconds each.

    The budget is 30 % of what the first selectivities would take; a service rate does not grow by itself.
    """
    phases = {minute: _setting(shape, selectivities) for minute, selectivities in _SHIFTS.items()}
    first = phases[0]
    budget = RESOURCES * first.full.spent
    full = fill_stage(first, FACTOR, seed)
    for policy in POLICIES_COMPARED:
        tell(f"figure 6, {shape}, seed {seed}: {policy}")
        stage, division = full, None
        results = fresh = 0
        for minute in range(MINUTES):
            if minute in phases:
                setting = phases[minute]
                stage = Stage(stage.query, _feed(setting, seed), stage.every, stage.batch)
                division = divide(policy, setting.graph, setting.tree, budget, setting.fresh_seconds(FACTOR))
            assert division is not None
            played, stage = stage.play(seconds, division.allowance)
            results += played.results + played.stale
            fresh += played.results
            yield Minute(shape, seed, policy, minute + 1, results, fresh, division.loosened)


def _feed(setting: Setting, seed: int) -> Callable[[int], Delta]:
    work = Workload(setting.graph, seed=seed)
    return lambda number: work.delta(number, setting.every)


def _setting(shape: Shape, selectivities: tuple[float, ...]) -> Setting:
    graph = JoinGraph.of(dict.fromkeys(STREAMS, RATE), RowWindow(ROWS), build_edges(shape, selectivities))
    return Setting(shape, 0, graph, build_tree(shape, [ROWS, ROWS]), FACTOR)
