"""RandomDrop, the rival in Gedik et al. 2007: drop rows of the streams before they reach the join."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from weir.shed.directions import Direction
from weir.shed.grepp import check_budget

Floats = NDArray[np.float64]
# No stream is thinned out further than to e^-30 of its rows.
_LEAST = -30.0


def random_drop(directions: Sequence[Direction], budget: float) -> dict[str, float]:
    """The share of each stream that is dropped, for the most results within a budget.

    Every result needs a row of each stream, so results are a constant times the product of the shares kept;
    the cost is a sum of products of them. That is a geometric program: convex in their logarithms.
    """
    check_budget(budget)
    from scipy.optimize import minimize

    logs, powers = _terms(directions)

    def over(kept: Floats) -> float:
        return math.log(budget) - float(np.logaddexp.reduce(logs + powers @ kept))

    def slope(kept: Floats) -> Floats:
        terms = np.exp(logs + powers @ kept - np.max(logs + powers @ kept))
        return np.asarray(-(terms @ powers) / terms.sum())

    nothing = np.zeros(len(directions))
    if not len(logs) or over(nothing) >= 0:
        return dict.fromkeys((one.stream for one in directions), 0.0)
    even = _even(over, len(directions))
    found = minimize(
        lambda kept: -kept.sum(),
        even,
        jac=lambda kept: -np.ones_like(kept),
        bounds=[(_LEAST, 0.0)] * len(directions),
        constraints={"type": "ineq", "fun": over, "jac": slope},
        method="SLSQP",
    )
    kept = np.exp(np.clip(found.x if found.success else even, _LEAST, 0.0))
    return {one.stream: float(1 - share) for one, share in zip(directions, kept, strict=True)}


def _even(over: Callable[[Floats], float], count: int) -> Floats:
    """The same share for all streams, as large as the budget allows."""
    low, high = _LEAST, 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if over(np.full(count, middle)) >= 0 else (low, middle)
    return np.full(count, low)


def _terms(directions: Sequence[Direction]) -> tuple[Floats, NDArray[np.int64]]:
    """The cost as a sum of terms: the logarithm of each, and how often it holds each stream's share."""
    place = {one.stream: i for i, one in enumerate(directions)}
    logs, powers = [], []
    for i, one in enumerate(directions):
        partials, held = one.rate, np.eye(len(directions), dtype=np.int64)[i]
        for look, (gives, takes) in zip(one.looks, one.menus, strict=True):
            partner = held + np.eye(len(directions), dtype=np.int64)[place[look.hop.partner]]
            for seconds, shares in ((look.search, held), (takes[-1] - look.search, partner)):
                if partials * seconds > 0:
                    logs.append(math.log(partials * seconds))
                    powers.append(shares)
            partials, held = partials * gives[-1], partner
    return np.array(logs), np.array(powers, np.int64).reshape(-1, len(directions))
