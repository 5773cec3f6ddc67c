"""How much CPU the next batch may take, from a budget and from what the last batches took.

A batch should take `cpu` times the trigger interval or, without one, `cpu` times the event time it spans.
Work outside the join cannot be skipped, so it is subtracted first.
"""

from __future__ import annotations

import math

from weir.adapt.statistics import Statistics
from weir.plan.limits import Limits
from weir.query.model import Budget

# Where fixed costs take almost all, so much of the budget is left to the join all the same.
_LEAST = 0.05


def is_stuck(budget: Budget, statistics: Statistics, interval: float | None) -> bool:
    """True if what is no work of the join takes the whole budget alone."""
    if budget.cpu is None or not statistics.span:
        return False
    return (statistics.fixed.value or 0.0) >= budget.cpu * (interval or statistics.span)


def limits(budget: Budget, statistics: Statistics, interval: float | None) -> Limits:
    """What a plan may take: seconds of work per event second in the batch to come, and bytes.

    Where the last batch took longer than the interval, more than usual has piled up meanwhile.
    """
    span = statistics.span
    if interval is not None and statistics.pace.value:
        span = statistics.pace.value * max(interval, statistics.seconds)
    memory = math.inf if budget.bytes is None else float(budget.bytes)
    if budget.cpu is None or not span:
        return Limits(memory=memory)
    whole = budget.cpu * (span if interval is None else interval)
    return Limits(max(whole - (statistics.fixed.value or 0.0), _LEAST * whole) / span, memory)
