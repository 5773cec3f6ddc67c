"""Operator throttling (Gedik et al. 2007, section III): the share of its work that a join may do."""

from __future__ import annotations

import math

from weir.errors import QueryError

# A join that consumed nothing in an interval is not throttled to nothing, from where it could not come back.
_LEAST = 1e-3


def throttled(throttle: float, consumed: float, arrived: float, boost: float = 1.2) -> float:
    """The throttle fraction after an interval in which so many rows arrived and so many were consumed.

    >>> throttled(0.8, consumed=50, arrived=100), throttled(0.5, consumed=100, arrived=100, boost=1.5)
    (0.4, 0.75)
    """
    check_throttle(throttle)
    if not (math.isfinite(boost) and boost > 1):
        raise QueryError(f"the boost factor must be above 1; got {boost}")
    performance = consumed / arrived if arrived else 1.0
    return min(1.0, boost * throttle) if performance >= 1 else max(_LEAST, performance * throttle)


def check_throttle(throttle: float) -> None:
    """Refuse a fraction that leaves nothing, or more than all."""
    if not 0 < throttle <= 1:
        raise QueryError(f"the throttle fraction must be above 0 and at most 1; got {throttle}")
