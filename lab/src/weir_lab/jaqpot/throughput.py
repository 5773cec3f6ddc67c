"""Figure 7 of Mukherji et al. 2011: throughput against resources, both as shares of saturation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import mean

from weir_lab.jaqpot.play import fill_stage
from weir_lab.jaqpot.policies import GREPP, LP, POLICIES_COMPARED, STEADY, divide
from weir_lab.jaqpot.rivals import RIVALS
from weir_lab.jaqpot.settings import SHAPES, Setting, Shape, draw_any_settings, with_time_windows

# Where a starved state is small.
POLICIES_TIMED = ("GlobalHJPR", GREPP, LP, STEADY)
# In longest windows: states of time must first become as small as they will be.
_SETTLE_TIMED = 1.0


@dataclass(frozen=True, slots=True)
class Point:
    """What a policy made of a share of the saturation resources; rates are a second.

    `share` is of all results at saturation; `stale` ones count, as in the paper.
    """

    shape: Shape
    setting: int
    factor: float
    policy: str
    resources: float
    share: float
    results: float
    stale: float
    probes: float
    predicted_results: float
    predicted_probes: float
    loosened: float


def measure_throughput(
    setting: Setting, resources: Sequence[float], windows: float, tell: Callable[[str], None]
) -> list[Point]:
    """All policies at all budgets, measured for so many of the longest windows after a third as many.

    All begin with full states and join the same rows.
    """
    fresh = setting.fresh_seconds(setting.factor)
    return _throughput(setting, POLICIES_COMPARED, fresh, resources, windows / 3, windows, tell)


def measure_timed_throughput(
    setting: Setting, resources: Sequence[float], windows: float, tell: Callable[[str], None]
) -> list[Point]:
    """The same with windows of time, where what a state holds follows from what feeds it; no freshness."""
    return _throughput(
        with_time_windows(setting), POLICIES_TIMED, None, resources, _SETTLE_TIMED, windows, tell
    )


def _throughput(
    setting: Setting,
    policies: Sequence[str],
    fresh: Mapping[str, float] | None,
    resources: Sequence[float],
    settle: float,
    windows: float,
    tell: Callable[[str], None],
) -> list[Point]:
    if not resources:
        return []
    graph, tree = setting.graph, setting.tree
    tell(f"figure 7, {setting.shape} {setting.number}: all of it")
    full = fill_stage(setting, setting.factor, setting.number)
    _, later = full.play(settle * setting.longest)
    best, _ = later.play(windows * setting.longest)
    points: list[Point] = []
    for share in resources:
        for policy in policies:
            tell(f"figure 7, {setting.shape} {setting.number}: {policy} at {share:.0%}")
            division = divide(policy, graph, tree, share * setting.full.spent, fresh)
            _, settled = full.play(settle * setting.longest, division.allowance)
            played, _ = settled.play(windows * setting.longest, division.allowance)
            points.append(
                Point(
                    shape=setting.shape,
                    setting=setting.number,
                    factor=setting.factor,
                    policy=policy,
                    resources=share,
                    share=played.all_rate / best.all_rate,
                    results=played.fresh_rate,
                    stale=played.stale / played.seconds,
                    probes=played.probes / played.seconds,
                    predicted_results=division.results,
                    predicted_probes=division.probes,
                    loosened=division.loosened,
                )
            )
    return points


@dataclass(frozen=True, slots=True)
class Prediction:
    """The most that the model says can be had of a setting anywhere in table 3, and what its best rival has.

    Both are shares of the saturation throughput; `dearest` is what one hop takes of its resources, at most.
    """

    shape: Shape
    setting: int
    resources: float
    best: float
    rival: float
    dearest: float


def forecast_table3(count: int, resources: Sequence[float], seed: int = 11) -> list[Prediction]:
    """Settings from all of table 3, most of which no engine could play; there GrePP is the best."""
    return [
        _predict(setting, share)
        for shape in SHAPES
        for setting in islice(draw_any_settings(shape, seed), count)
        for share in resources
    ]


def _predict(setting: Setting, share: float) -> Prediction:
    full = setting.full

    def made(policy: str) -> float:
        return divide(policy, setting.graph, setting.tree, share * full.spent).results / full.results

    return Prediction(
        shape=setting.shape,
        setting=setting.number,
        resources=share,
        best=made(GREPP),
        rival=max(map(made, RIVALS)),
        dearest=max(full.probes) / full.spent,
    )


def average(points: Sequence[Point], shape: Shape, policy: str, resources: float) -> float:
    """The mean share of the saturation throughput over all settings."""
    return mean(
        point.share
        for point in points
        if (point.shape, point.policy, point.resources) == (shape, policy, resources)
    )


def advantages(points: Sequence[Point], shape: Shape, policy: str) -> dict[float, float]:
    """For every share of the resources, how many times the best rival's results a policy has."""
    gains = {}
    for resources in sorted({point.resources for point in points}):
        best = max(average(points, shape, rival, resources) for rival in RIVALS)
        mine = average(points, shape, policy, resources)
        gains[resources] = mine / best if best else float("inf")
    return gains
