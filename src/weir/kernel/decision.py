"""Decision: everything that is fixed for one micro-batch before it runs, so that a repeat does the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weir.errors import QueryError
from weir.order.policies import DriverOrder, check_policy
from weir.partition.placement import Placement
from weir.plan.tree import Join
from weir.shed.allowance import Allowance
from weir.stats.hop import Hop


@dataclass(frozen=True, slots=True)
class Decision:
    """What one micro-batch does.

    - `plan`: the plan that the query should run; `reason` says why.
    - `driver_order`: the order of the deltas, or a policy that chooses one by the batch's own rows, by the
      `selectivities` of hops in earlier batches and by the `results_per_row` of each stream.
    - `clock`: the time (µs) by which freshness is judged, the newest event time before the batch; None in the
      first. `arrivals` are the clocks of earlier batches whose rows may still be fresh.
    - `idle`: streams that do not hold the watermark back.
    - `slice_bytes`: the most bytes of a slice, so that eviction can choose; None: no limit but the usual.
    - `max_candidates`: the most candidate pairs that a hop holds at once, if fewer than usual to save memory.
    - `allowance`: how much each hop may do; None: everything.
    - `placement`: the partition of each row; None: there is only one.
    - `one_task`: run all partitions in one task, where that saves more than a second task would.
    - `interim_allowance`: the allowance of the earlier plan, active while states of `plan` are built.
    - `migration_steps`: how many steps of hops the batch may spend on building them; None: no limit.
    """

    plan: Join
    driver_order: DriverOrder
    clock: int | None = None
    arrivals: Mapping[int, int] = field(default_factory=dict)
    idle: tuple[str, ...] = ()
    slice_bytes: int | None = None
    max_candidates: int | None = None
    allowance: Allowance | None = None
    selectivities: Mapping[Hop, float] = field(default_factory=dict)
    results_per_row: Mapping[str, float] = field(default_factory=dict)
    placement: Placement | None = None
    one_task: bool = False
    reason: str = ""
    interim_allowance: Allowance | None = None
    migration_steps: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.driver_order, str):
            check_policy(self.driver_order)
        elif sorted(self.driver_order) != sorted(self.plan.streams):
            raise QueryError(
                f"the driver order {self.driver_order} must name each stream of the plan {self.plan} once"
            )
        if self.allowance is not None:
            self.allowance.check(self.plan)
