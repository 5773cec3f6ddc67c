"""Migration state: which plan is active, and how far the states of the plan that follows it are built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from weir.plan.tree import Join


@dataclass(frozen=True, slots=True)
class StateBuild:
    """An intermediate state under construction.

    It holds all combinations with a row of batch `since` or later, and those of older rows whose row of the
    input `driver` is at `until` or later (None: none of these yet). `rows` of the driver are done, at a cost
    of `steps` steps; `left` are still to do.
    """

    node: str
    driver: str
    since: int
    until: int | None = None
    rows: int = 0
    left: int = 0
    steps: int = 0

    @property
    def progress(self) -> float:
        """How much of it is built, from 0 to 1."""
        if self.left:
            return self.rows / (self.rows + self.left)
        return 1.0 if self.rows else 0.0


@dataclass(frozen=True, slots=True)
class MigrationState:
    """The active plan, the states `done` for another plan, and the one under construction."""

    plan: Join
    done: tuple[str, ...] = ()
    building: StateBuild | None = None

    @property
    def since(self) -> int | None:
        """While a state is under construction, slices before this batch are not merged with later ones."""
        return None if self.building is None else self.building.since

    def aim_at(self, target: Join) -> MigrationState:
        """Drop what a plan does not need; if no state of that plan is missing, it becomes active."""
        needed = _state_names(target)
        keep = self.building is not None and self.building.node in needed
        done = tuple(name for name in self.done if name in needed)
        migration = replace(self, done=done, building=self.building if keep else None)
        return migration if migration.missing(target) else MigrationState(target)

    def missing(self, target: Join) -> list[Join]:
        """Return the joins below the root whose states a plan still needs, inputs first."""
        return [node for node in _joins_below_root(target) if str(node) not in self._complete]

    def migration_joins(self, target: Join) -> tuple[Join, ...]:
        """Return the joins that are run for a plan in addition to those of the active one."""
        kept = {*self.done, *(() if self.building is None else (self.building.node,))}
        additional = kept - _state_names(self.plan)
        return tuple(node for node in _joins_below_root(target) if str(node) in additional)

    def measure_progress(self, target: Join) -> Mapping[str, float]:
        """Return how much is built of each state that a plan needs and the active one does not have."""
        own = _state_names(self.plan)
        building = {} if self.building is None else {self.building.node: self.building.progress}
        names = [name for node in _joins_below_root(target) if (name := str(node)) not in own]
        return {name: building.get(name, float(name in self._complete)) for name in names}

    @property
    def _complete(self) -> set[str]:
        return {*self.done, *_state_names(self.plan)}


def unite(migrations: Sequence[MigrationState], target: Join, mjoin: Join) -> MigrationState:
    """Return the migration state of rows that come from several partitions: what is complete in all of them.

    The decided plan `target` is active if all its states are complete, else one that was active somewhere,
    else the `mjoin`, which needs no states. A state that some partition was still building is begun again.
    """
    complete = set.intersection(*(migration._complete for migration in migrations))
    plans = (target, *(migration.plan for migration in migrations), mjoin)
    plan = next(plan for plan in plans if _state_names(plan) <= complete)
    return MigrationState(plan, tuple(sorted(complete - _state_names(plan)))).aim_at(target)


def _joins_below_root(plan: Join) -> Iterator[Join]:
    return (node for node in plan.inner() if node is not plan)


def _state_names(plan: Join) -> set[str]:
    return {str(node) for node in _joins_below_root(plan)}
