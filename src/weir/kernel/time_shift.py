"""Shift event times by a length: a sum beyond the range of int64 becomes the end of that range.

No time lies beyond it, so a range of times that ends there is right.
"""

from __future__ import annotations

import numpy as np

from weir.kernel.keys import Int64s

MIN_TIME, MAX_TIME = -(2**63), 2**63 - 1


def shift_times(times: Int64s, by: int, span: tuple[int, int]) -> Int64s:
    """Add a length to times, all of which lie in a span.

    >>> shift_times(np.array([5, MAX_TIME - 2]), 10, (5, MAX_TIME)).tolist() == [15, MAX_TIME]
    True
    """
    first, last = span
    if first + by >= MIN_TIME and last + by <= MAX_TIME:
        return times + by
    shifted: Int64s = np.clip(times, MIN_TIME - min(by, 0), MAX_TIME - max(by, 0)) + by
    return shifted
