"""Which plan answers from a state, and how far the states are that another plan needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from weir.plan.tree import Join


@dataclass(frozen=True, slots=True)
class StateBuild:
    """An intermediate state that is being filled in.

    It has all combinations with a row of batch `since` or later, and those of older rows whose row of the
    input `driver` is at `until` or later; None: nothing of these yet. `rows` of the driver are done, `left`
    are not, and `effort` has been spent on the former.
    """

    node: str
    driver: str
    since: int
    until: int | None = None
    rows: int = 0
    left: int = 0
    effort: int = 0

    @property
    def share(self) -> float:
        """How much of it is filled in."""
        return self.rows / (self.rows + self.left) if self.left else 1.0 if self.rows else 0.0


@dataclass(frozen=True, slots=True)
class MigrationState:
    """The plan that answers with complete states; those `done` for another, and one that is being made."""

    plan: Join
    done: tuple[str, ...] = ()
    building: StateBuild | None = None

    @property
    def since(self) -> int | None:
        """Slices of earlier batches must stay apart from later ones, while a state is being filled in."""
        return None if self.building is None else self.building.since

    def towards(self, wanted: Join) -> MigrationState:
        """The same without what a plan does not need; if it needs nothing that is not there, it answers."""
        needed = {str(node) for node in _below(wanted)}
        keep = self.building is not None and self.building.node in needed
        done = tuple(name for name in self.done if name in needed)
        found = replace(self, done=done, building=self.building if keep else None)
        return found if found.missing(wanted) else MigrationState(wanted)

    def missing(self, wanted: Join) -> list[Join]:
        """The joins below the root whose states a plan still needs, inputs first."""
        return [node for node in _below(wanted) if str(node) not in self._complete]

    def beside(self, wanted: Join) -> tuple[Join, ...]:
        """The joins whose states are kept up for a plan, besides those of the plan that answers."""
        own = {str(node) for node in _below(self.plan)}
        kept = {*self.done, *(() if self.building is None else (self.building.node,))}
        return tuple(node for node in _below(wanted) if str(node) in kept - own)

    def shares(self, wanted: Join) -> Mapping[str, float]:
        """How much is there of each state that a plan needs and the one that answers does not have."""
        own = {str(node) for node in _below(self.plan)}
        names = [name for node in _below(wanted) if (name := str(node)) not in own]
        return {name: self._share(name) for name in names}

    @property
    def _complete(self) -> set[str]:
        return {*self.done, *(str(node) for node in _below(self.plan))}

    def _share(self, name: str) -> float:
        if self.building is not None and self.building.node == name:
            return self.building.share
        return float(name in self._complete)


def _below(plan: Join) -> Iterator[Join]:
    """The joins below the root, inputs first."""
    return (node for node in plan.inner() if node is not plan)
