"""Window harvesting (Gedik et al. 2007): choose the ages that each hop of an mjoin probes within a budget."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from weir.shed.ages import Ages
from weir.shed.allowance import Allowance
from weir.shed.harvest_model import Directions, HarvestSetting, compute_cost
from weir.shed.harvest_setting import find_best_setting


@dataclass(frozen=True, slots=True)
class Harvest:
    """What to probe, and the expected results and cost each second."""

    allowance: Allowance
    results: float
    cost: float


def harvest(directions: Directions, budget: float, basic_window: float) -> Harvest:
    """Probe the basic windows of the best setting that fits the budget."""
    setting, shares = _fill_budget(directions, find_best_setting(directions, budget), budget)
    results = cost = 0.0
    for direction, counts in zip(directions, setting, strict=True):
        output, spent = direction.evaluate(counts)
        results += shares[direction.stream] * output
        cost += shares[direction.stream] * spent
    allowed = allow_setting(directions, setting, basic_window)
    partly = {d.hops[0].hop: shares[d.stream] for d in directions if 0 < shares[d.stream] < 1}
    return Harvest(replace(allowed, probes={**allowed.probes, **partly}, choose="hash"), results, cost)


def _fill_budget(
    directions: Directions, setting: HarvestSetting, budget: float
) -> tuple[HarvestSetting, dict[str, float]]:
    """Give the rest of the budget to directions that probe nothing yet: a share of their rows may start.

    The first step of a direction may cost more than a small budget allows: where all matches of the first hop
    have one age, its first basic window passes all of them on, and each probes the next hop.
    """
    counts = dict(zip((direction.stream for direction in directions), setting, strict=True))
    shares = {direction.stream: float(all(counts[direction.stream])) for direction in directions}
    left = budget - compute_cost(directions, setting)
    idle = [direction for direction in directions if not shares[direction.stream]]
    starts = [(direction.stream, *direction.evaluate((1,) * len(direction.hops))) for direction in idle]
    starts.sort(key=lambda start: start[1] / (start[2] or math.inf), reverse=True)
    for stream, results, spent in starts:
        if results > 0 and left > 0:
            shares[stream] = min(1.0, left / spent) if spent else 1.0
            counts[stream] = (1,) * len(counts[stream])
            left -= shares[stream] * spent
    return tuple(counts[direction.stream] for direction in directions), shares


def allow_setting(directions: Directions, setting: HarvestSetting, basic_window: float) -> Allowance:
    """Express a setting as an allowance: hops probe their likeliest ages, idle directions never start."""
    width = round(basic_window * 1e6)
    idle = {d.hops[0].hop: 0.0 for d, counts in zip(directions, setting, strict=True) if not all(counts)}
    ages = {
        hop.hop: Ages(width, frozenset(hop.ranking[:count]))
        for direction, counts in zip(directions, setting, strict=True)
        if all(counts)
        for hop, count in zip(direction.hops, counts, strict=True)
        if count < len(hop.scores)
    }
    return Allowance(idle, ages=ages)
