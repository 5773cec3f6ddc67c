"""A query as it is started."""

from __future__ import annotations

from dataclasses import dataclass, field

from weir.adapt.controller import Scope
from weir.kernel.physical_plan import PhysicalPlan
from weir.order.policies import DriverOrder
from weir.shed.allowance import Allowance
from weir.spark.routing import Routing
from weir.spark.settings import Settings
from weir.spark.slots import Slots


@dataclass(frozen=True)
class Job:
    """A query as it is started; `physical` is that of its first plan since.

    Where it was going over to that plan when it stopped, `interim_allowance` is for those before it.
    """

    physical: PhysicalPlan
    slots: Slots
    driver_order: DriverOrder
    routing: Routing
    checkpoint: str
    settings: Settings
    interim_allowance: Allowance | None = None
    scope: Scope = field(default_factory=Scope)
