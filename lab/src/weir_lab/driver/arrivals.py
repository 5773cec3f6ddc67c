"""Arrival times of the rows of a stream (Valsomatzis and Gounaris 2013, section 4.1 and figure 5).

Each pattern is a rate over time. A stream's rows are drawn from it at random, so their number is exact and
the rate holds on average, as the paper words it.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Int64s = NDArray[np.int64]
Arrivals = Literal["uniform", "fast first", "slow first", "sinusoidal", "20-80", "80-20"]

# 1 row per 5 and per 15 time units in turn, changed after each quarter of the rows: of ten million units, a
# fast quarter takes an eighth and a slow one three eighths.
_FAST, _SLOW = 1 / 8, 3 / 8
# The sine goes as often up and down, and from half the mean rate to one and a half times it.
_WAVES, _SWING = 2, 0.5
# Halvings of the b-model: a thousand pieces.
_HALVINGS = 10
_BURST = 0.8
_GRID = 4096


def draw_times(arrivals: Arrivals, rows: int, span: int, rng: np.random.Generator) -> Int64s:
    """The moments at which so many rows come, ascending, from 0 to before `span`."""
    at, share = _cumulated(arrivals, rng)
    drawn = np.interp(np.sort(rng.random(rows)), share, at)
    return np.minimum((drawn * span).astype(np.int64), span - 1)


def _cumulated(arrivals: Arrivals, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Points in time (0 to 1), and the share of the rows that have come until each."""
    if arrivals in ("fast first", "slow first"):
        quarters = [_FAST, _SLOW, _FAST, _SLOW] if arrivals == "fast first" else [_SLOW, _FAST, _SLOW, _FAST]
        return np.cumsum([0.0, *quarters]), np.linspace(0, 1, 5)
    if arrivals == "sinusoidal":
        at = np.linspace(0, 1, _GRID)
        turn = 2 * np.pi * _WAVES
        return at, at + _SWING * (1 - np.cos(turn * at)) / turn
    if arrivals in ("20-80", "80-20"):
        weights = _bursts(1 - _BURST if arrivals == "20-80" else _BURST, rng)
        return np.linspace(0, 1, len(weights) + 1), np.concatenate([[0.0], np.cumsum(weights)])
    return np.array([0.0, 1.0]), np.array([0.0, 1.0])


def _bursts(first: float, rng: np.random.Generator) -> Floats:
    """The b-model: every piece is halved, and one half gets 80 % of it.

    Which half is drawn, as in the model's own paper, but not at the first halving: our paper tells 20-80 from
    80-20, and says that the former is sparse at the beginning.
    """
    weights = np.array([first, 1 - first])
    for _ in range(_HALVINGS - 1):
        left = np.where(rng.random(len(weights)) < 0.5, _BURST, 1 - _BURST)
        weights = np.stack([weights * left, weights * (1 - left)], axis=1).ravel()
    shares: Floats = weights / weights.sum()
    return shares
