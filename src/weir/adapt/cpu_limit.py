"""CPU limit: how much CPU the budget leaves for the join in the next batch.

A batch should take `cpu` times the trigger interval or, without one, `cpu` times the event time it spans.
Work outside the join cannot be shed, so it is subtracted first.
"""

from __future__ import annotations

import math

from weir.adapt.statistics import Statistics
from weir.plan.limits import Limits
from weir.query.model import Budget

# The join keeps this share of the budget even if the fixed cost of a batch takes more than the rest.
_LEAST_JOIN_SHARE = 0.05


def exceeds_by_fixed_cost(budget: Budget, statistics: Statistics, interval: float | None) -> bool:
    """True if the fixed cost of a batch alone takes the whole CPU budget."""
    if budget.cpu is None or not statistics.span:
        return False
    return (statistics.fixed.value or 0.0) >= budget.cpu * (interval or statistics.span)


def derive_limits(budget: Budget, statistics: Statistics, interval: float | None) -> Limits:
    """Derive what a plan may use in the next batch: seconds of work per event second, and bytes.

    If the last batch took longer than the interval, rows have piled up, and each may cost less.
    """
    span = statistics.span
    if interval is not None and statistics.event_time_speed.value:
        span = statistics.event_time_speed.value * max(interval, statistics.seconds)
    memory = math.inf if budget.bytes is None else float(budget.bytes)
    if budget.cpu is None or not span:
        return Limits(memory=memory)
    allowed_seconds = budget.cpu * (span if interval is None else interval)
    join_seconds = allowed_seconds - (statistics.fixed.value or 0.0)
    return Limits(max(join_seconds, _LEAST_JOIN_SHARE * allowed_seconds) / span, memory)
