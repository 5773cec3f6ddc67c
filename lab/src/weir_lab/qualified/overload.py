"""Figures 7 and 8 of Zhu et al. 2010: the plans of table 2 on machines that have room for some of them."""

from __future__ import annotations

from dataclasses import dataclass

import weir
from weir.local.join import LocalJoin
from weir.local.query import LocalQuery
from weir.plan.limits import Limits
from weir.plan.tree import Join
from weir.stats.join_graph import JoinGraph
from weir_lab.qualified.table2 import CPU_AVAILABLE, SETS, TABLE_3, ParameterSet, Plan, Plans
from weir_lab.virtual_machine import Machine, Tick
from weir_lab.workload import Workload

_SEED = 3


@dataclass(frozen=True, slots=True)
class Scene:
    """One experiment: streams, plans and a machine, and how it differs from what is printed."""

    name: str
    figure: str
    graph: JoinGraph
    plans: tuple[Plan, ...]
    limits: Limits
    seconds: float
    every: float
    note: str


@dataclass(frozen=True, slots=True)
class Run:
    """What a plan did in a scene."""

    plan: Plan
    ticks: tuple[Tick, ...]

    @property
    def last(self) -> Tick:
        """How it ended."""
        return self.ticks[-1]

    def cpu_per_second(self, after: float) -> float | None:
        """The CPU charged for a second's rows, once windows are full; None if the plan stopped before."""
        full = next((tick for tick in self.ticks if tick.seconds >= after), self.last)
        seconds = (self.last.processed - full.processed) / (self.last.arrived / self.last.seconds)
        return (self.last.cpu - full.cpu) / seconds if seconds else None


def build_scenes(windows: float) -> list[Scene]:
    """The four sets as the figures mean them, and what set 2 would have to be for figure 8a.

    Each lasts for so many of its windows, the last for half as many more.
    """
    first, two, three, four = SETS
    rare = ParameterSet(2, two.megabytes, two.rates, (0.0004, 0.5), two.window, "b")
    short = ParameterSet(4, four.megabytes, four.rates, four.selectivities, 10, "d")
    return [
        _scene("set 1", "7", first, windows, Limits(CPU_AVAILABLE), "as printed: CPU 1 s/s"),
        _scene(
            "set 2",
            "8a, 8b",
            two,
            windows,
            None,
            "at the printed CPU of 1 s/s both plans qualify; this CPU lies between what they take",
        ),
        _scene(
            "set 2, rare AB",
            "8a, 8b",
            rare,
            windows,
            Limits(0.0075),
            "σ_AB 0.0004 instead of 0.02: few AB, so making BC again is most of the mjoin's work",
        ),
        _scene(
            "set 3",
            "8c, 8d",
            three,
            windows,
            Limits(CPU_AVAILABLE, 3000),
            "CPU as printed; memory chosen, as no tuple size is",
        ),
        _scene(
            "set 4, short",
            "8e, 8f",
            short,
            1.5 * windows,
            None,
            "window 10 s instead of 50 s, or 16 million results came each second; limits between the plans",
        ),
    ]


def play(scene: Scene) -> list[Run]:
    """Run every plan of a scene over the same rows."""
    work = Workload(scene.graph, "regular", _SEED)
    machine = Machine(TABLE_3, scene.limits, scene.every)
    return [
        Run(
            plan,
            tuple(
                machine.run(start_query(work, plan.tree), plan.tree, work.feed(scene.seconds, scene.every))
            ),
        )
        for plan in scene.plans
    ]


def start_query(work: Workload, plan: Join) -> LocalQuery:
    """The engine, about to run a workload by a plan; results carry one bit, as only their number counts."""
    schemas = {name: work.schema(name) for name in work.graph.streams}
    asked = weir.join(streams=schemas, on=work.on, within=work.within, select="true AS found", plan=plan)
    assert isinstance(asked, LocalJoin)
    return asked.start()


def _scene(
    name: str, figure: str, given: ParameterSet, windows: float, limits: Limits | None, note: str
) -> Scene:
    plans = Plans.of(given.graph)
    region = plans.region(given.meant)
    assert region is not None
    chosen = region.middle if limits is None else limits
    # A batch every twentieth of a window: few enough to be quick, enough to see the curves.
    return Scene(
        name, figure, given.graph, plans.all, chosen, windows * given.window, given.window / 20, note
    )
