"""RandomDrop (Gedik et al. 2007): drop rows of the streams before they reach the join."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from weir.shed.flow import check_budget
from weir.shed.harvest_model import Directions, Floats

# No stream is thinned out further than to e^-30 of its rows.
_LEAST = -30.0
# Decimal places of a share; a row in a hundred million more or less is beyond any budget's precision.
_DIGITS = 8


def random_drop(directions: Directions, budget: float) -> dict[str, float]:
    """The share of each stream to drop, for the most results within a budget.

    Every result needs a row of each stream, so results are a constant times the product of the shares kept;
    the cost is a sum of products of them. That is a geometric program: convex in their logarithms.
    """
    check_budget(budget)
    from scipy.optimize import minimize

    logs, powers = _cost_terms(directions)

    def headroom(kept: Floats) -> float:
        return math.log(budget) - float(np.logaddexp.reduce(logs + powers @ kept))

    def headroom_gradient(kept: Floats) -> Floats:
        terms = np.exp(logs + powers @ kept - np.max(logs + powers @ kept))
        return np.asarray(-(terms @ powers) / terms.sum())

    if not len(logs) or headroom(np.zeros(len(directions))) >= 0:
        return dict.fromkeys((direction.stream for direction in directions), 0.0)
    # To start from: one share for all streams, as large as the budget allows.
    low, high = _LEAST, 0.0
    for _ in range(60):
        middle = (low + high) / 2
        fits = headroom(np.full(len(directions), middle)) >= 0
        low, high = (middle, high) if fits else (low, middle)
    even = np.full(len(directions), low)
    solution = minimize(
        lambda kept: -kept.sum(),
        even,
        jac=lambda kept: -np.ones_like(kept),
        bounds=[(_LEAST, 0.0)] * len(directions),
        constraints={"type": "ineq", "fun": headroom, "jac": headroom_gradient},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 300},
    )
    kept = np.exp(np.clip(solution.x if solution.success else even, _LEAST, 0.0))
    # Rounded, so that machines whose last digits differ drop the same rows.
    dropped = np.round(1 - kept, _DIGITS)
    return {direction.stream: float(share) for direction, share in zip(directions, dropped, strict=True)}


def _cost_terms(directions: Directions) -> tuple[Floats, NDArray[np.int64]]:
    """The cost as a sum of terms: the logarithm of each, and the power of each stream's share in it."""
    unit = np.eye(len(directions), dtype=np.int64)
    powers_of = {direction.stream: unit[i] for i, direction in enumerate(directions)}
    logs, powers = [], []
    for direction in directions:
        flowing, driving = direction.rate, powers_of[direction.stream]
        for hop, (partials, costs) in zip(direction.hops, direction.tables, strict=True):
            joined = driving + powers_of[hop.hop.partner]
            for cost, power in ((hop.search, driving), (costs[-1] - hop.search, joined)):
                if flowing * cost > 0:
                    logs.append(math.log(flowing * cost))
                    powers.append(power)
            flowing, driving = flowing * partials[-1], joined
    return np.array(logs), np.array(powers, np.int64).reshape(-1, len(directions))
