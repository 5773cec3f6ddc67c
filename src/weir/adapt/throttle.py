"""Throttle: which share of the driver rows may probe the root, so that a batch takes what it is allowed.

Thinning the first hops of the root by a hash needs no model: the states stay whole, so recall falls in a line
with the share, and so does the CPU that probing takes.

    seconds │            ╱ exact      share = (target - kept) / skippable
     target ┼─ ─ ─ ─ ─ ╱
            │       ╱   ╎
       kept ┼───────    ╎             what is stored and joined below the root takes time whatever probes
            └───────────┴─────
            0         share   1

The target is the limit, more or less what recent batches left of theirs or took too much, so that the mean of
ten batches meets the budget whatever the noise of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weir.adapt.cost_fit import CostFit, Work
from weir.adapt.cpu_limit import CpuLimit

# The target stays within these shares of the limit.
_LEAST_TARGET, _MOST_TARGET = 0.85, 1.04
# What recent batches took too much or left is made up for over some batches, so that noise is not repeated.
_BALANCED_PART = 0.3
# Hysteresis: shedding begins only if the exact join is predicted to take this share of the limit.
_BEGIN_SHARE = 1.02
# Hysteresis: if what cannot be skipped takes more than the limit, skipping the rest is given up until it
# takes less than this share of it.
_HOPEFUL_SHARE = 0.9
# The least share of driver rows that probe.
LEAST_SHARE = 0.02


@dataclass(frozen=True, slots=True)
class Throttle:
    """The share of the driver rows that probe the root in the next batch, and the seconds behind it.

    `exact` are the CPU seconds that all rows would take, `kept` those that thinning cannot save, `predicted`
    those of the share. `is_hopeless` if what is kept takes more than the budget allows.
    """

    share: float
    exact: float
    kept: float
    predicted: float
    is_hopeless: bool = False


def choose_share(
    fit: CostFit,
    work: Work,
    limit: CpuLimit,
    spent: Sequence[float] = (),
    is_exact: bool = True,
    was_hopeless: bool = False,
) -> Throttle:
    """Choose the share for a batch that would do this `work` if all rows probed.

    `spent` has the seconds of the last batches that shed, each over what it was allowed; `is_exact` tells
    that nothing is shed now, `was_hopeless` that shedding would not have helped the batch before.

    >>> from weir.adapt.cost_fit import Measurement
    >>> fit = CostFit((Measurement(Work(1.0, 3.0), 1.0, 3.0), Measurement(Work(1.0, 1.5), 1.0, 1.5)))
    >>> round(choose_share(fit, Work(1.0, 3.0), CpuLimit(1.0, 2.5)).share, 1)
    0.5
    """
    kept, skippable = fit.split(work)
    exact = kept + skippable
    # Part of probing is kept too. Before other shares have shown which part, it is no reason to give up: a
    # query that is not thinned would never learn it.
    certain = kept if fit.has_varied else fit.measure_outside(work)
    allowed, is_hopeless = limit.seconds, certain > (_HOPEFUL_SHARE if was_hopeless else 1.0) * limit.seconds
    if is_hopeless:
        # Shed only until the batch ends before the next trigger.
        allowed = exact if limit.room is None else max(limit.room, allowed)
    if exact <= allowed * (_BEGIN_SHARE if is_exact else 1.0) or skippable <= 0:
        return Throttle(1.0, exact, kept, exact, is_hopeless)
    balance = 1.0 + _BALANCED_PART * sum(1.0 - ratio for ratio in spent)
    target = allowed * min(max(balance, _LEAST_TARGET), _MOST_TARGET)
    share = min(1.0, max(LEAST_SHARE, (target - kept) / skippable))
    return Throttle(share, exact, kept, kept + share * skippable, is_hopeless)
