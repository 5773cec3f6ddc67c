"""CPU limit: how many CPU seconds the budget gives the next batch.

A batch may take `cpu` times the trigger interval or, without one, `cpu` times the event time it spans. Only
CPU seconds of the tasks count: a busy neighbour makes batches longer, not more costly.
"""

from __future__ import annotations

from dataclasses import dataclass

from weir.adapt.statistics import Statistics
from weir.query.model import Budget


@dataclass(frozen=True, slots=True)
class CpuLimit:
    """For the next batch: the event seconds it will span, the CPU seconds it may take, and its room.

    `room` is how long its tasks may take for the batch to end before the next trigger; None without one.
    """

    span: float
    seconds: float
    room: float | None = None

    def allow(self, span: float) -> float:
        """The seconds that a batch was allowed that has turned out to span so many event seconds.

        >>> CpuLimit(1.0, 0.5).allow(3.0), CpuLimit(1.0, 0.5, room=0.9).allow(3.0)
        (1.5, 0.5)
        """
        return self.seconds if self.room is not None else self.seconds * span / self.span


def derive_cpu_limit(budget: Budget, statistics: Statistics, interval: float | None) -> CpuLimit | None:
    """Derive the limit of the next batch; None without a CPU budget, and while no batch has had a span.

    If the last batch took longer than the interval, rows have piled up, and each may cost less.
    """
    span = statistics.span
    if interval is not None and statistics.event_time_speed.value:
        span = statistics.event_time_speed.value * max(interval, statistics.seconds)
    if budget.cpu is None or not span:
        return None
    if interval is None:
        return CpuLimit(span, budget.cpu * span)
    return CpuLimit(span, budget.cpu * interval, max(0.0, interval - (statistics.fixed.value or 0.0)))
