"""Which slices are kept when the state of a query takes more memory than it may."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weir.adapt.held import Held
from weir.stats import Correlations

# What a row is worth of its life where no result of such a lag was seen yet.
_UNSEEN = 0.01


def admitted(
    slices: Sequence[Held], allowed: int, now: int | None, lags: Correlations | None = None
) -> list[bool]:
    """Which slices stay, so that together they take no more bytes than allowed: those worth most a byte.

    A row is worth the results it may still be part of: by the learned lags, or else by the rest of its life.
    A slice that does not fit into what is left goes, and smaller ones may take its place. Rows of row windows
    have no deadline and always stay.
    """
    if sum(one.bytes for one in slices) <= allowed:
        return [True] * len(slices)
    worth = [one.rows * _left(one, now, lags) / max(one.bytes, 1) for one in slices]
    kept = [one.deadline is None for one in slices]
    left = allowed - sum(one.bytes for one in slices if one.deadline is None)
    # Of slices worth the same, the younger.
    for i in sorted(range(len(slices)), key=lambda i: (worth[i], slices[i].last), reverse=True):
        if not kept[i] and slices[i].bytes <= left:
            kept[i] = True
            left -= slices[i].bytes
    return kept


def _left(one: Held, now: int | None, lags: Correlations | None) -> float:
    """The share of the results of a row of the slice that are still to come, or the share of its life."""
    if now is None or one.deadline is None:
        return 1.0
    middle = (one.first + one.last) / 2
    life = one.deadline - middle
    share = min(1.0, max(0.0, (one.deadline - now) / life)) if life > 0 else 0.0
    if lags is None or not any(any(found.counts) for found in lags.lags.values()):
        return share
    drivers = [name for name in (lags.first, *lags.lags) if name != one.node]
    if len(drivers) > len(lags.lags):
        # A joined state has no lag of its own.
        return share
    ages = np.array([-life, (now - middle), life]) / 1e6
    ages[1] = min(max(ages[1], ages[0]), ages[2])
    found = [lags.ages(driver, one.node, ages) for driver in drivers]
    to_come, whole = sum(float(part[1]) for part in found), sum(float(part.sum()) for part in found)
    return max(to_come / whole, _UNSEEN * share) if whole > 0 else share
