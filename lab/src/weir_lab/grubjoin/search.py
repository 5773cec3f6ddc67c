"""Searches for harvest fractions that only experiments need: brute force, double-sided, and other metrics.

Gedik et al. 2007, sections IV-D, V-A.2 and VI-A; the product's own searches are in
`weir.shed.harvest_setting`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Literal

import numpy as np

from weir.shed.harvest_model import Direction, HarvestSetting, compute_cost, compute_output, full_setting
from weir.shed.harvest_moves import Counts, Move, add_basic_window, divide_gain
from weir.shed.harvest_setting import ROUNDING, greedy, greedy_reverse

Metric = Literal["output", "output per cost", "delta"]


def greedy_by(directions: Sequence[Direction], budget: float, metric: Metric) -> HarvestSetting:
    """Add the basic window that a metric ranks best until none fits (Gedik et al. 2007, figure 6)."""
    if metric == "delta":
        return greedy(directions, budget)
    setting = [(0,) * len(direction.hops) for direction in directions]
    spent, output = compute_cost(directions, tuple(setting)), compute_output(directions, tuple(setting))
    offers = [sorted(direction.moves.additions(setting[i])) for i, direction in enumerate(directions)]
    while True:
        chosen, best, best_score = -1, None, 0.0
        for i, moves in enumerate(offers):
            for move in moves:
                if spent + move.cost <= budget * ROUNDING:
                    score = _score(metric, move, output, spent)
                    if score > best_score:
                        chosen, best, best_score = i, move, score
        if best is None:
            return tuple(setting)
        spent, output = spent + best.cost, output + best.output
        setting[chosen] = add_basic_window(setting[chosen], best.hop)
        offers[chosen] = sorted(directions[chosen].moves.additions(setting[chosen]))


def _score(metric: Metric, move: Move, output: float, spent: float) -> float:
    """The metrics of Gedik et al. 2007, section V-A.2."""
    if metric == "output":
        return output + move.output if move.output > 0 else 0.0
    return divide_gain(output + move.output, spent + move.cost)


def double_sided(directions: Sequence[Direction], budget: float) -> HarvestSetting:
    """Greedy or greedy reverse, whichever starts nearer to its end (Gedik et al. 2007, section VI-A)."""
    full = compute_cost(directions, full_setting(directions))
    share = budget / full if full else 1.0
    is_near_nothing = share <= 0.5 ** ((len(directions) - 1) / 2)
    return greedy(directions, budget) if is_near_nothing else greedy_reverse(directions, budget)


def brute_force(directions: Sequence[Direction], budget: float) -> HarvestSetting:
    """The best setting there is (Gedik et al. 2007, section IV-D).

    Directions do not depend on each other, so of each only those settings are combined with the others'
    that none beats in both cost and output; the best one is never lost by that.
    """
    best: list[tuple[float, float, HarvestSetting]] = [(0.0, 0.0, ())]
    for direction in directions:
        front = _front([(c, o, (n,)) for n in _all_counts(direction) for o, c in (direction.evaluate(n),)])
        best = _front(
            [
                (cost + more, output + added, setting + counts)
                for cost, output, setting in best
                for more, added, counts in front
                if cost + more <= budget * ROUNDING
            ]
        )
    return max(best, key=lambda point: point[1])[2]


def _all_counts(direction: Direction) -> Iterator[Counts]:
    yield (0,) * len(direction.hops)
    yield from product(*(range(1, most + 1) for most in direction.full_counts))


def _front(points: list[tuple[float, float, HarvestSetting]]) -> list[tuple[float, float, HarvestSetting]]:
    """The points of cost and output that give more than every cheaper one."""
    order = np.lexsort(([-output for _, output, _ in points], [cost for cost, _, _ in points]))
    kept, most = [], -math.inf
    for i in order.tolist():
        if points[i][1] > most:
            kept.append(points[i])
            most = points[i][1]
    return kept
