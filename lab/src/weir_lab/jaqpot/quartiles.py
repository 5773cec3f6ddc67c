"""Quartiles of each point of a curve, over seeds and settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from weir_lab.jaqpot.freshness import Staleness
from weir_lab.jaqpot.sensors import Mark
from weir_lab.jaqpot.shift import Minute
from weir_lab.jaqpot.throughput import Point

# A plan, a policy, a place on the x axis, and a value measured there.
Value = tuple[str, str, float, float]


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and quartiles of one place of a curve, over all settings, seeds or starts."""

    figure: str
    plan: str
    policy: str
    at: float
    count: int
    mean: float
    lower: float
    median: float
    upper: float


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """The lower quartile, the median and the upper one."""
    lower, middle, upper = np.quantile(values, (0.25, 0.5, 0.75)).tolist()
    return lower, middle, upper


def summarise_spreads(
    points: Sequence[Point], minutes: Sequence[Minute], marks: Sequence[Mark], stale: Sequence[Staleness]
) -> list[Spread]:
    """All places of figures 6 to 9."""
    held = (run for run in stale if run.loosened == 1)
    return [
        *_spreads("6: results", ((m.shape, m.policy, m.minute, m.results) for m in minutes)),
        *_spreads("7: share of saturation", ((p.shape, p.policy, p.resources, p.share) for p in points)),
        *_spreads("8: results", ((f"{m.budget:g} probes/s", m.policy, m.seconds, m.results) for m in marks)),
        *_spreads("9: stale share", ((run.plan, run.policy, run.factor, run.share) for run in held)),
    ]


def _spreads(figure: str, values: Iterable[Value]) -> list[Spread]:
    places: dict[tuple[str, str, float], list[float]] = {}
    for plan, policy, at, value in values:
        places.setdefault((plan, policy, at), []).append(value)
    return [
        Spread(figure, plan, policy, at, len(values), float(np.mean(values)), *quartiles(values))
        for (plan, policy, at), values in places.items()
    ]
