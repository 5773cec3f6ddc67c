"""The loops of `weir.kernel.ranges`, compiled by Numba: one pass each, without arrays in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types

from weir.kernel.keys import Bools, Int64s

_INTS = types.Array(types.int64, 1, "C", readonly=True)
_BOOLS = types.Array(types.boolean, 1, "C", readonly=True)


def _compile(*arguments: Any) -> Callable[[Any], Any]:
    """Compile a loop for these types, or take it from the disk; keep it there if the disk allows that."""

    def decorate(loop: Any) -> Any:
        try:
            return njit([arguments], cache=True, nogil=True)(loop)
        except (RuntimeError, OSError):  # no folder to keep it in, or no room
            return njit([arguments], nogil=True)(loop)

    return decorate


@_compile(_INTS, _INTS, types.int64, _INTS, _BOOLS, _INTS, _INTS)
def find_ranges(
    starts: Int64s, codes: Int64s, bits: int, ranks: Int64s, present: Bools, low: Int64s, high: Int64s
) -> tuple[Int64s, Int64s]:
    """Search the offsets of times among the rows of each rank; an empty `low` or `high` is no bound."""
    first, count = np.zeros(len(ranks), np.int64), np.zeros(len(ranks), np.int64)
    for i in range(len(ranks)):
        if not present[i]:
            continue
        rank = ranks[i]
        begin, end = starts[rank], starts[rank + 1]
        if len(low):
            least, right = (rank << bits) + low[i], end
            while begin < right:
                middle = (begin + right) >> 1
                if codes[middle] < least:
                    begin = middle + 1
                else:
                    right = middle
        if len(high):
            most, left = (rank << bits) + high[i], begin
            while left < end:
                middle = (left + end) >> 1
                if codes[middle] <= most:
                    left = middle + 1
                else:
                    end = middle
        first[i], count[i] = begin, max(end - begin, 0)
    return first, count


@_compile(_INTS, _INTS, types.int64)
def expand(low: Int64s, count: Int64s, start: int) -> tuple[Int64s, Int64s]:
    """List the driver row and the position of every pair."""
    pairs = count.sum()
    driver, position = np.empty(pairs, np.int64), np.empty(pairs, np.int64)
    n = 0
    for i in range(len(count)):
        for j in range(count[i]):
            driver[n], position[n] = start + i, low[i] + j
            n += 1
    return driver, position
