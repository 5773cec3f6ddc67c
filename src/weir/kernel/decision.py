"""What is fixed for one micro-batch before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weir.errors import QueryError
from weir.order.policies import DriverOrder, check_policy
from weir.partition.placement import Placement
from weir.plan.tree import Join
from weir.shed.allowance import Allowance
from weir.stats.batch import Hop


@dataclass(frozen=True, slots=True)
class Decision:
    """The plan, which stream's delta goes first, the clock by which freshness is judged (µs), who is idle.

    The clock is the newest event time before the batch, None in the first; `arrivals` are the clocks of
    earlier batches whose rows may still be fresh. An idle stream does not hold the watermark back.
    `candidates` bounds what a hop has in flight, below the usual bound: less memory, more time. `allowance`
    says how much each hop may do; None means everything. A driver order may be a policy, which chooses by the
    batch's own rows; what it needs to know of earlier batches are `selectivities` of hops and `gains`, the
    results that a row of each stream has had part in. `placement` says to which partition each row goes;
    None: there is only one.

    Where states that the plan needs are not there yet, an earlier plan answers, `meanwhile` with an allowance
    for its hops, and the batch may spend an `effort`, in steps of hops, on making them; None: all it takes.
    """

    plan: Join
    driver_order: DriverOrder
    clock: int | None = None
    arrivals: Mapping[int, int] = field(default_factory=dict)
    idle: tuple[str, ...] = ()
    candidates: int | None = None
    allowance: Allowance | None = None
    selectivities: Mapping[Hop, float] = field(default_factory=dict)
    gains: Mapping[str, float] = field(default_factory=dict)
    placement: Placement | None = None
    reason: str = ""
    meanwhile: Allowance | None = None
    effort: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.driver_order, str):
            check_policy(self.driver_order)
        elif sorted(self.driver_order) != sorted(self.plan.streams):
            raise QueryError(
                f"the driver order {self.driver_order} must name each stream of the plan {self.plan} once"
            )
        if self.allowance is not None:
            self.allowance.check(self.plan)
