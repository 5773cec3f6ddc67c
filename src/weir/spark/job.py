"""A query as it is started."""

from __future__ import annotations

from dataclasses import dataclass, field

from weir.adapt import Scope
from weir.kernel import Decision, Program
from weir.order import DriverOrder
from weir.shed import Allowance
from weir.spark.settings import Settings
from weir.spark.spread import Routing
from weir.spark.union import Slots
from weir.spread import Placement


@dataclass(frozen=True)
class Job:
    """A query as it is started; `program` is that of its first plan since.

    Where it was going over to that plan when it stopped, `meanwhile` is for those before it.
    """

    program: Program
    slots: Slots
    driver_order: DriverOrder
    routing: Routing
    checkpoint: str
    settings: Settings
    meanwhile: Allowance | None = None
    scope: Scope = field(default_factory=Scope)

    def placement(self, decision: Decision) -> Placement:
        """Where a batch's rows go; decisions written before there were placements have none."""
        return decision.placement or self.routing.start()
