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
    """What one micro-batch does; driver policies choose by `selectivities` and `results_per_row`."""

    plan: Join  # the plan that the query should run
    driver_order: DriverOrder  # the order of the deltas, or a policy that chooses one by the batch's own rows
    clock: int | None = None  # by which freshness is judged (µs): the newest event time before, or `now`
    arrivals: Mapping[int, int] = field(default_factory=dict)  # clocks of batches whose rows may be fresh
    now: int | None = None  # the wall clock (µs); None: nothing depends on it
    idle: tuple[str, ...] = ()  # streams silent for so long that they hold the watermark only if they speak
    latest: Mapping[str, int] = field(default_factory=dict)  # of each stream: rows after it (µs) are ahead
    keeps_dropped: bool = False  # rows that are late, ahead or without a time go into the quarantine
    slice_bytes: int | None = None  # the most bytes of a slice, so that eviction can choose; None: the usual
    max_candidates: int | None = None  # that a hop holds at once, if fewer than usual: less memory, more time
    allowance: Allowance | None = None  # how much each hop may do; None: everything
    work_cap: int | None = None  # about the most steps of the hops in one partition; None: no bound
    selectivities: Mapping[Hop, float] = field(default_factory=dict)  # in earlier batches
    learns: bool = False  # later decisions follow from the counts of hops, so none may be left out
    results_per_row: Mapping[str, float] = field(default_factory=dict)  # of each stream, in earlier batches
    placement: Placement | None = None  # the partition of each row; None: there is only one
    one_task: bool = False  # run all partitions in one task, where that saves more than a second task would
    reason: str = ""  # why this plan and allowance
    interim_allowance: Allowance | None = None  # of the earlier plan, active while states of `plan` are built
    migration_steps: int | None = None  # that hops may spend on building them; None: no limit

    def __post_init__(self) -> None:
        if isinstance(self.driver_order, str):
            check_policy(self.driver_order)
        elif sorted(self.driver_order) != sorted(self.plan.streams):
            raise QueryError(
                f"the driver order {self.driver_order} must name each stream of the plan {self.plan} once"
            )
        if self.allowance is not None:
            self.allowance.check(self.plan)
