"""Work cap: the most steps that a batch may take, so that no overload makes it much longer than its trigger.

The controller decides by what earlier batches took; the cap catches what it could not foresee, from the first
batch on. With a budget of `cpu` and batches of `length` seconds, a partition may take

    steps = 1.5 * cpu * length * (cores per partition, at most 1) / (seconds per step)

where a step is a probe, a comparison or a match. The seconds per step are assumed at first and then measured.
Where the controller has to let a batch take more than the budget, the cap is so many times as large.
"""

from __future__ import annotations

from weir.adapt.average import Average
from weir.stats.unit_costs import UnitCosts

# More than the budget, as the controller may go over it in a single batch.
_SLACK = 1.5
# Measurements weigh as much as the assumption once they cover so many steps: a batch of few steps spends most
# of its time on other things.
_STEPS_ASSUMED = 1_000_000
# Without a trigger, batches differ in length; one may be so many times as long as the last.
_MOST_GROWTH = 4.0


def derive_work_cap(cpu_seconds: float, step_seconds: float) -> int:
    """Derive the steps that a partition may take if the budget gives it so many CPU seconds in a batch.

    >>> derive_work_cap(1.0, 2e-8)
    75000000
    """
    return max(1, round(_SLACK * cpu_seconds / step_seconds))


def estimate_step_seconds(measured: Average, assumed: float) -> float:
    """Estimate the seconds per step by what was measured, which says little if the steps were few."""
    return (assumed * _STEPS_ASSUMED + measured.total) / (_STEPS_ASSUMED + measured.exposure)


def assume_step_seconds(costs: UnitCosts, columns: int) -> float:
    """Assume the seconds per step of a query with so many result columns, before anything is measured.

    A result is a comparison and a match, and its values are put out.
    """
    return max(costs.probe, (costs.compare + costs.match + costs.out * columns) / 2)


def find_batch_length(interval: float | None, span: float | None, last_span: float) -> float | None:
    """Return the seconds for which a batch has a budget; None if nothing tells, as in the first backlog.

    That is the trigger interval or, without one, the event time that the batch spans; at least as much as the
    last one did, as streams may come one after the other. Where the span shows only afterwards, the last
    batch's tells.

    >>> find_batch_length(None, 0.0, last_span=2.0)
    2.0
    """
    if interval is not None:
        return interval
    return (_MOST_GROWTH * last_span if span is None else max(span, last_span)) or None
