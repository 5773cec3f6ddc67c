"""Figure 7 of 000: throughput against resources, both as shares of saturation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from weir.lab.jaqpot.divide import GREPP, LP, POLICIES_COMPARED, RIVALS, STEADY, divide
from weir.lab.jaqpot.play import staged
from weir.lab.jaqpot.settings import Setting, Shape, timed

# Where a starved state is small.
POLICIES_TIMED = ("GlobalHJPR", GREPP, LP, STEADY)


@dataclass(frozen=True, slots=True)
class Point:
    """What a policy made of a share of the saturation resources; rates are a second.

    `share` and `fresh_share` are of all results at saturation: all that were found, and the fresh ones.
    """

    shape: Shape
    setting: int
    factor: float
    policy: str
    resources: float
    share: float
    fresh_share: float
    results: float
    stale: float
    probes: float
    foretold_results: float
    foretold_probes: float
    loosened: float


def throughput(
    setting: Setting, resources: Sequence[float], windows: float, tell: Callable[[str], None]
) -> list[Point]:
    """All policies at all budgets, measured for so many of the longest windows after a half to settle.

    All begin with full states and join the same rows.
    """
    fresh = setting.fresh_seconds(setting.factor)
    return _throughput(setting, POLICIES_COMPARED, fresh, resources, windows, tell)


def timed_throughput(
    setting: Setting, resources: Sequence[float], windows: float, tell: Callable[[str], None]
) -> list[Point]:
    """The same with windows of time, where what a state holds follows from what feeds it; no freshness."""
    return _throughput(timed(setting), POLICIES_TIMED, None, resources, windows, tell)


def _throughput(
    setting: Setting,
    policies: Sequence[str],
    fresh: Mapping[str, float] | None,
    resources: Sequence[float],
    windows: float,
    tell: Callable[[str], None],
) -> list[Point]:
    graph, tree = setting.graph, setting.tree
    _, full = staged(setting, setting.factor, setting.number).play(1.2 * setting.longest)
    best, _ = full.play(windows * setting.longest)
    points: list[Point] = []
    for share in resources:
        for policy in policies:
            tell(f"figure 7, {setting.shape} {setting.number}: {policy} at {share:.0%}")
            division = divide(policy, graph, tree, share * setting.full.spent, fresh)
            _, settled = full.play(setting.longest / 2, division.allowance)
            played, _ = settled.play(windows * setting.longest, division.allowance)
            points.append(
                Point(
                    shape=setting.shape,
                    setting=setting.number,
                    factor=setting.factor,
                    policy=policy,
                    resources=share,
                    share=played.all_rate / best.all_rate,
                    fresh_share=played.fresh_rate / best.all_rate,
                    results=played.fresh_rate,
                    stale=played.stale / played.seconds,
                    probes=played.probes / played.seconds,
                    foretold_results=division.results,
                    foretold_probes=division.probes,
                    loosened=division.loosened,
                )
            )
    return points


def average(points: Sequence[Point], shape: Shape, policy: str, resources: float, fresh: bool) -> float:
    """The mean share of the saturation throughput over all settings."""
    return mean(
        point.fresh_share if fresh else point.share
        for point in points
        if (point.shape, point.policy, point.resources) == (shape, policy, resources)
    )


def advantages(points: Sequence[Point], shape: Shape, policy: str, fresh: bool) -> dict[float, float]:
    """For every share of the resources, how many times the best rival's results a policy has."""
    found = {}
    for resources in sorted({point.resources for point in points}):
        best = max(average(points, shape, rival, resources, fresh) for rival in RIVALS)
        mine = average(points, shape, policy, resources, fresh)
        found[resources] = mine / best if best else float("inf")
    return found
