"""Going over to another plan while a query runs: its intermediate states are made from the slices that exist.

What is correct: a state holds all combinations of rows of earlier batches that are still alive. One that is
being made takes in, from the batch `since` on, what the batch's own rows find, as every state does: these are
all combinations with a row of that batch or a later one. What is missing are combinations of older rows, and
each of them has one row of the input that drives: so they are filled in by that input's older rows, newest
first, which probe the older slices of the other inputs and no later ones. So slices from before `since`
are not merged with later ones. Rows that expire meanwhile are not needed any more.

    batches before `since`                              from `since` on
    rows of the driver  · · · until ▒▒▒ filled in ▒▒▒ │ ▒▒▒ by the batches' own rows ▒▒▒

The old plan answers until all states of the new one are there, and the new one from then on: whichever does
finds the results of a batch's rows once. States are made one after the other, inputs first. How much of this
a batch may do is bounded by its decision, in steps that can be counted before and after.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, MutableMapping
from dataclasses import dataclass, field, replace

import numpy as np

from weir.errors import QueryError
from weir.kernel.batch import Work, earlier, store
from weir.kernel.decision import Decision
from weir.kernel.half_join import HopWork
from weir.kernel.keys import Bools
from weir.kernel.migration_state import MigrationState, StateBuild
from weir.kernel.partial import Partial
from weir.kernel.physical_plan import NodePlan, PhysicalPlan, compile_plan
from weir.kernel.slice import Slice
from weir.kernel.state import State, is_dead
from weir.plan.tree import Join, check, is_composed
from weir.query.model import Query
from weir.query.windows import RowWindow
from weir.stats.batch import Hop, HopStats

# What making states ready may take of a batch, beside what its own rows take, and what it always may.
SHARE = 0.5
LEAST = 100_000
# Storing a row takes as long as so many steps of a hop, about.
_STORED = 10
# Rows that probe before it is known how much a row finds.
_FIRST_ROWS = 16
_KEPT_PROGRAMS = 16


class PhysicalPlans:
    """The programs of one query, each compiled once."""

    def __init__(self, query: Query, known: Collection[PhysicalPlan] = ()) -> None:
        self.query = query
        self._known: dict[tuple[Join, tuple[Join, ...]], PhysicalPlan] = {
            (program.plan, ()): program for program in known if not program.beside
        }

    def of(self, plan: Join, beside: tuple[Join, ...] = ()) -> PhysicalPlan:
        """The program of a plan, with joins beside it."""
        key = (plan, beside)
        if key not in self._known:
            while len(self._known) >= _KEPT_PROGRAMS:
                del self._known[next(iter(self._known))]
            self._known[key] = compile_plan(self.query, plan, beside)
        return self._known[key]

    def check_change(self, old: Join, new: Join) -> None:
        """Refuse to go over from one plan to another if the states of the new one cannot be made."""
        check(new, self.query)
        if self.of(old).layouts == self.of(new).layouts:
            return
        if is_composed(old) or is_composed(new):
            raise QueryError(
                f"a running query cannot go over from {old} to {new}, because joins with windows of their "
                "own do not see the same rows again; start a new query with that plan"
            )
        for name, window in zip(self.query.names, self.query.windows, strict=True):
            if isinstance(window, RowWindow):
                raise QueryError(
                    f"a running query cannot go over from {old} to {new}, because stream '{name}' has a "
                    "window of rows; start a new query with that plan"
                )


@dataclass(frozen=True, slots=True)
class PreparedPlan:
    """What a batch runs by and starts from; the decision is for the plan that answers."""

    program: PhysicalPlan
    decision: Decision
    standing: MigrationState
    state: State


def ready(
    programs: PhysicalPlans,
    standing: MigrationState,
    state: State,
    decision: Decision,
    batch: int,
    work: Work,
) -> PreparedPlan:
    """Make a state ready for the plan that is decided, as far as the decision lets."""
    wanted = decision.plan
    standing, spent = standing.towards(wanted), 0
    while missing := standing.missing(wanted):
        building = standing.building or _begun(missing[0], state, batch)
        standing = replace(standing, building=building)
        program = programs.of(standing.plan, standing.beside(wanted))
        most = None if decision.effort is None else decision.effort - spent
        fill = _Fill(program, decision, state, building, most, work.beside)
        state = store(program, fill.node, fill.rows(), state, batch - 1)
        spent += fill.spent
        if not fill.is_done:
            standing = replace(standing, building=fill.building)
            break
        standing = replace(standing, done=(*standing.done, building.node), building=None)
    else:
        standing = MigrationState(wanted)
    return as_it_stands(programs, standing, state, decision)


def as_it_stands(
    programs: PhysicalPlans, standing: MigrationState, state: State, decision: Decision
) -> PreparedPlan:
    """What a batch runs by with a state as it is; slices that nothing needs are let go."""
    program = programs.of(standing.plan, standing.beside(decision.plan))
    if not state.slices.keys() <= program.layouts.keys():
        kept = {node: found for node, found in state.slices.items() if program.layout_of(node) is not None}
        state = replace(state, slices=kept)
    return PreparedPlan(program, answering(decision, standing.plan), standing, state)


def effort(found: Iterable[HopStats | HopWork]) -> int:
    """The steps that hops have taken."""
    return sum(hop.probes + hop.comparisons + hop.matches for hop in found)


def effort_allowed(last: int) -> int:
    """The steps that a batch may spend on making states ready, by those that the last took for itself."""
    return max(LEAST, int(SHARE * last))


def answering(decision: Decision, plan: Join) -> Decision:
    """The decision for a plan that answers until the one decided can."""
    if plan == decision.plan:
        return decision
    allowance = None if decision.meanwhile is None else decision.meanwhile.within(plan)
    return replace(decision, plan=plan, allowance=allowance)


def _begun(node: Join, state: State, batch: int) -> StateBuild:
    """The start of a state; the input with the fewest rows drives, as every one of its rows must."""
    rows = {name: sum(one.rows for one in state.of(name)) for name in map(str, node.inputs)}
    return StateBuild(str(node), min(rows, key=rows.__getitem__), batch)


@dataclass
class _Fill:
    """One batch's work on a state: what its driver's older rows find, newest first, up to a bound."""

    program: PhysicalPlan
    decision: Decision
    state: State
    building: StateBuild
    most: int | None
    hops: MutableMapping[Hop, HopWork]
    spent: int = 0
    is_done: bool = False
    node: NodePlan = field(init=False)

    def __post_init__(self) -> None:
        self.node = self.program.node(self.building.node)

    def rows(self) -> Iterator[tuple[int, Partial]]:
        """What is found, of rank 0; afterwards it is known how far it went."""
        path = self.node.paths[self.node.inputs.index(self.building.driver)]
        while slices := self._older():
            if self.most is not None and self.spent >= self.most:
                left = sum(int(self._is_open(one).sum()) for one in slices)
                self.building = replace(self.building, left=left)
                return
            starts, until = self._next(slices)
            counts = [self.hops[one.hop] for one in path]
            before = effort(counts)
            stored = 0
            for found in earlier(path, starts, self.decision, self.state, self.building.since, self.hops):
                stored += found.rows
                yield 0, found
            took = effort(counts) - before + _STORED * stored
            self.spent += took
            rows = self.building.rows + sum(one.rows for one in starts)
            self.building = replace(self.building, until=until, rows=rows, effort=self.building.effort + took)
        self.is_done = True

    def _older(self) -> list[Slice]:
        """The driver's slices with rows that are still to probe."""
        building, watermark = self.building, self.state.watermark
        return [
            one
            for one in self.state.of(building.driver)
            if one.batch < building.since
            and not is_dead(one.deadline, watermark)
            and (building.until is None or one.spans[one.layout.lead][0] < building.until)
        ]

    def _next(self, slices: list[Slice]) -> tuple[list[Partial], int]:
        """The newest rows that are still to probe, as many as may, and the time of the oldest of them."""
        window = max(one.window for one in slices)
        newest = [one for one in slices if one.window == window]
        times = np.concatenate([one.numbers(one.layout.lead)[self._is_open(one)] for one in newest])
        count = min(len(times), self._count(len(times)))
        first = int(np.partition(times, len(times) - count)[len(times) - count])
        picked = [self._is_open(one) & (one.numbers(one.layout.lead) >= first) for one in newest]
        starts = [Partial.of(one).pick(np.flatnonzero(p)) for one, p in zip(newest, picked, strict=True)]
        return [start for start in starts if start.rows], first

    def _is_open(self, one: Slice) -> Bools:
        times, until = one.numbers(one.layout.lead), self.building.until
        return np.ones(len(times), np.bool_) if until is None else times < until

    def _count(self, rows: int) -> int:
        """How many rows may probe, judged by what those before them took."""
        if self.most is None:
            return rows
        if not self.building.rows:
            return _FIRST_ROWS
        return max(1, int((self.most - self.spent) * self.building.rows / self.building.effort))
