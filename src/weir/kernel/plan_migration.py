"""Plan migration: replace the plan of a running query, building its intermediate states from existing slices.

A state must hold all combinations of live rows of earlier batches. While one is under construction:

    batches before `since`                              from `since` on
    driver's rows   · · · until ▒▒▒ back-filled ▒▒▒  │  ▒▒▒ stored by each batch ▒▒▒
                        ◀── newest first

- From batch `since` on, every batch stores what its own rows find, as for any state: all combinations with
  a row of that batch or later.
- The other combinations consist of older rows, one of them of the input that drives the build. That input's
  older rows, newest first, probe the older slices of the other inputs. Therefore slices from before `since`
  are not merged with later ones. Rows that expire in the meantime are not needed.

The old plan is active until all states of the new one are complete, then the new one: either way each result
of a batch is found once. States are built one after the other, inputs first. The decision bounds how many
steps (probes, comparisons, matches) a batch may spend on it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, MutableMapping
from dataclasses import dataclass, replace

import numpy as np

from weir.errors import QueryError
from weir.kernel.decision import Decision
from weir.kernel.intermediate_state import store
from weir.kernel.keys import Bools
from weir.kernel.migration_state import MigrationState, StateBuild
from weir.kernel.partial import Partial
from weir.kernel.path import probe_earlier_batches
from weir.kernel.physical_plan import NodePlan, PhysicalPlan, compile_plan
from weir.kernel.quarantine import Quarantine
from weir.kernel.slice import Slice
from weir.kernel.spill import Spill, keep_in_memory
from weir.kernel.state import State, is_dead
from weir.plan.tree import Join, check_plan, is_composed
from weir.query.model import Query
from weir.query.windows import RowWindow
from weir.stats.batch_counts import BatchCounts, count_steps
from weir.stats.hop import Hop, HopStats

# A batch may spend this share of its own steps on building states, and at least this many steps.
MIGRATION_SHARE = 0.5
MIN_MIGRATION_STEPS = 100_000
# Storing a row takes about as long as this many steps of a hop.
_STEPS_PER_STORED_ROW = 10
# Driver rows that probe before the steps per row are known.
_FIRST_ROWS = 16
_MAX_CACHED = 16


class PhysicalPlans:
    """The compiled plans of one query; each is compiled once."""

    def __init__(self, query: Query, known: Collection[PhysicalPlan] = ()) -> None:
        self.query = query
        self._compiled: dict[tuple[Join, tuple[Join, ...]], PhysicalPlan] = {
            (physical.plan, ()): physical for physical in known if not physical.migration_joins
        }

    def of(self, plan: Join, migration_joins: tuple[Join, ...] = ()) -> PhysicalPlan:
        """Return the compiled plan; `migration_joins` lists joins of a plan that the query migrates to."""
        key = (plan, migration_joins)
        if key not in self._compiled:
            while len(self._compiled) >= _MAX_CACHED:
                del self._compiled[next(iter(self._compiled))]
            self._compiled[key] = compile_plan(self.query, plan, migration_joins)
        return self._compiled[key]

    def check_change(self, old: Join, new: Join) -> None:
        """Raise a QueryError if the states of a new plan cannot be built from those of the old one."""
        check_plan(new, self.query)
        if self.of(old).schemas == self.of(new).schemas:
            return
        if is_composed(old) or is_composed(new):
            raise QueryError(
                f"a running query cannot switch from {old} to {new}, because joins with windows of their "
                "own do not see the same rows again; start a new query with that plan"
            )
        for name, window in zip(self.query.names, self.query.windows, strict=True):
            if isinstance(window, RowWindow):
                raise QueryError(
                    f"a running query cannot switch from {old} to {new}, because stream '{name}' has a "
                    "window of rows; start a new query with that plan"
                )


@dataclass(frozen=True, slots=True)
class PreparedPlan:
    """The compiled active plan of a batch, the decision for it, and the state to start from."""

    physical: PhysicalPlan
    decision: Decision
    migration: MigrationState
    state: State


def prepare_plan(
    physical_plans: PhysicalPlans,
    migration: MigrationState,
    state: State,
    decision: Decision,
    batch: int,
    counts: BatchCounts,
    spill: Spill = keep_in_memory,
    quarantine: Quarantine | None = None,
) -> PreparedPlan:
    """Build missing states of the decided plan, within the steps that the decision allows."""
    target = decision.plan
    migration, spent = migration.aim_at(target), 0
    while missing := migration.missing(target):
        building = migration.building or _begin(missing[0], state, batch)
        migration = replace(migration, building=building)
        physical = physical_plans.of(migration.plan, migration.migration_joins(target))
        max_steps = None if decision.migration_steps is None else decision.migration_steps - spent
        hops = counts.migration_hops
        backfill = _Backfill(physical, decision, state, building, max_steps, hops, quarantine)
        state = store(physical, backfill.node, backfill.run(), state, batch - 1, decision.slice_bytes, spill)
        spent += backfill.spent
        if not backfill.is_done:
            migration = replace(migration, building=backfill.building)
            break
        migration = replace(migration, done=(*migration.done, building.node), building=None)
    else:
        migration = MigrationState(target)
    return use_existing_states(physical_plans, migration, state, decision)


def use_existing_states(
    physical_plans: PhysicalPlans, migration: MigrationState, state: State, decision: Decision
) -> PreparedPlan:
    """Prepare a batch with the states that exist; slices that neither plan needs are dropped."""
    physical = physical_plans.of(migration.plan, migration.migration_joins(decision.plan))
    if not state.slices.keys() <= physical.schemas.keys():
        kept = {node: slices for node, slices in state.slices.items() if physical.schema_of(node) is not None}
        state = replace(state, slices=kept)
    return PreparedPlan(physical, decide_for_plan(decision, migration.plan), migration, state)


def limit_migration_steps(last: int) -> int:
    """Return the steps that a batch may spend on building states, given those of the last batch."""
    return max(MIN_MIGRATION_STEPS, int(MIGRATION_SHARE * last))


def decide_for_plan(decision: Decision, plan: Join) -> Decision:
    """Return the decision for a plan that is active until the decided one can be."""
    if plan == decision.plan:
        return decision
    allowance = None if decision.interim_allowance is None else decision.interim_allowance.restrict_to(plan)
    return replace(decision, plan=plan, allowance=allowance)


def _begin(node: Join, state: State, batch: int) -> StateBuild:
    """Begin a state; the input with the fewest rows drives, because every one of its rows must probe."""
    return StateBuild(str(node), min(map(str, node.inputs), key=state.count_rows), batch)


@dataclass
class _Backfill:
    """One batch's work on a state: the driver's older rows probe, newest first, within a number of steps."""

    physical: PhysicalPlan
    decision: Decision
    state: State
    building: StateBuild
    max_steps: int | None
    hops: MutableMapping[Hop, HopStats]
    quarantine: Quarantine | None
    spent: int = 0
    is_done: bool = False

    @property
    def node(self) -> NodePlan:
        """The join whose outputs are stored."""
        return self.physical.node(self.building.node)

    def run(self) -> Iterator[tuple[int, Partial]]:
        """Yield outputs of rank 0; afterwards `building`, `spent` and `is_done` tell how far it went."""
        path = self.node.paths[self.node.inputs.index(self.building.driver)]
        while slices := self._open_slices():
            if self.max_steps is not None and self.spent >= self.max_steps:
                left = sum(int(self._is_open(s).sum()) for s in slices)
                self.building = replace(self.building, left=left)
                return
            starts, until = self._next_rows(slices)
            counts = [self.hops[hop.hop] for hop in path]
            before, stored = count_steps(counts), 0
            since = self.building.since
            for output in probe_earlier_batches(
                path, starts, self.physical, self.decision, self.state, since, self.hops, self.quarantine
            ):
                stored += output.rows
                yield 0, output
            steps = count_steps(counts) - before + _STEPS_PER_STORED_ROW * stored
            self.spent += steps
            rows = self.building.rows + sum(partial.rows for partial in starts)
            total = self.building.steps + steps
            self.building = replace(self.building, until=until, rows=rows, steps=total)
        self.is_done = True

    def _open_slices(self) -> list[Slice]:
        """Return the driver's slices with rows that have not probed yet."""
        building, watermark = self.building, self.state.watermark
        return [
            s
            for s in self.state.of(building.driver)
            if s.batch < building.since
            and not is_dead(s.deadline, watermark)
            and (building.until is None or s.span[0] < building.until)
        ]

    def _next_rows(self, slices: list[Slice]) -> tuple[list[Partial], int]:
        """Return the newest rows that have not probed, as many as may, and the time of the oldest of them."""
        times = np.concatenate([s.times()[self._is_open(s)] for s in slices])
        count = min(len(times), self._max_rows(len(times)))
        first = int(np.partition(times, len(times) - count)[len(times) - count])
        picks = [np.flatnonzero(self._is_open(s) & (s.times() >= first)) for s in slices]
        return [Partial.of(s).pick(p) for s, p in zip(slices, picks, strict=True) if len(p)], first

    def _is_open(self, slice_: Slice) -> Bools:
        """Tell which rows have not probed yet."""
        until = self.building.until
        return np.ones(slice_.rows, np.bool_) if until is None else slice_.times() < until

    def _max_rows(self, rows: int) -> int:
        """Return how many rows may probe, judged by the steps that those before them took."""
        if self.max_steps is None:
            return rows
        if not self.building.rows:
            return _FIRST_ROWS
        return max(1, int((self.max_steps - self.spent) * self.building.rows / self.building.steps))
