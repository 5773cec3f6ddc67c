"""A streaming join as it is started."""

from __future__ import annotations

from dataclasses import dataclass

from weir.kernel.physical_plan import PhysicalPlan
from weir.runtime.decide import DecidedPlan, Policy
from weir.spark.filesystem import Folder
from weir.spark.routing import Routing
from weir.spark.sinks import Sink
from weir.spark.steps import Step
from weir.spark.task import UnionSlots


@dataclass(frozen=True)
class Job:
    """What all batches of a query have in common since its start.

    `plan` is compiled from the plan of `start`, `folder` is weir's part of the checkpoint, `steps` follow the
    join; manifests and slices of the last `batches_to_retain` batches are kept.
    """

    policy: Policy
    start: DecidedPlan
    plan: PhysicalPlan
    routing: Routing
    slots: UnionSlots
    folder: Folder
    sink: Sink
    steps: tuple[Step, ...]
    on_null_time: str
    batches_to_retain: int
