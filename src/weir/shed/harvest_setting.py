"""How many age ranges each hop takes within a budget (Gedik et al. 2007, sections IV-D and V-A)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Literal, get_args

import numpy as np

from weir.errors import QueryError
from weir.shed.directions import Direction, Setting, cost, everything, output
from weir.shed.harvest_moves import Move, Taken, longer, ratio, shorter

Metric = Literal["output", "output per cost", "delta"]
# Costs are sums of many products; what exceeds the budget by less than this is rounding.
_HAIR = 1 + 1e-9
_NO_MOVE = Move(0, 0.0, 0.0, -math.inf)


def greedy(
    directions: Sequence[Direction], budget: float, metric: Metric = "delta", start: Setting | None = None
) -> Setting:
    """Add the range that the metric ranks best until none fits (Gedik et al. 2007, figure 6).

    A direction gives nothing before every hop of it has a range, so its first step takes one at each. Only
    the moves of the changed direction are evaluated again; Gedik et al. 2007 evaluate all at each step.
    """
    _check(metric)
    setting = list(start or [(0,) * len(one.looks) for one in directions])
    worth = [one.worth(taken) for one, taken in zip(directions, setting, strict=True)]
    spent, found = sum(c for _, c in worth), sum(o for o, _ in worth)
    most = budget * _HAIR
    if metric == "delta":
        return _filled_up(directions, setting, spent, most)
    offered = [sorted(one.moves.forward(setting[i])) for i, one in enumerate(directions)]
    while True:
        chosen, best, best_score = -1, None, 0.0
        for i, moves in enumerate(offered):
            for move in moves:
                if spent + move.cost <= most:
                    score = _score(metric, move, found, spent)
                    if score > best_score:
                        chosen, best, best_score = i, move, score
        if best is None:
            return tuple(setting)
        spent, found = spent + best.cost, found + best.output
        setting[chosen] = longer(setting[chosen], best.hop)
        offered[chosen] = sorted(directions[chosen].moves.forward(setting[chosen]))


def _filled_up(directions: Sequence[Direction], setting: list[Taken], spent: float, most: float) -> Setting:
    """The same by `delta`, whose scores do not change: of each direction only the best move is looked at.

    What does not fit once never does later, as costs only grow.
    """
    offered = [iter(one.moves.forward(taken)) for one, taken in zip(directions, setting, strict=True)]
    heads = [next(moves, _NO_MOVE) for moves in offered]
    ratios = [move.ratio for move in heads]
    while (best := max(ratios)) > 0:
        i = ratios.index(best)
        move = heads[i]
        if spent + move.cost <= most:
            spent += move.cost
            setting[i] = longer(setting[i], move.hop)
            offered[i] = iter(directions[i].moves.forward(setting[i]))
        heads[i] = next(offered[i], _NO_MOVE)
        ratios[i] = heads[i].ratio
    return tuple(setting)


def greedy_reverse(directions: Sequence[Direction], budget: float) -> Setting:
    """The same from the other end: give up range by range what is missed least, until all fits.

    What the last one given up leaves of the budget is then filled as `greedy` does.
    """
    return greedy(directions, budget, start=_shrunk(directions, budget, everything(directions)))


def _shrunk(
    directions: Sequence[Direction], budget: float, start: Setting, held: tuple[int, int] | None = None
) -> Setting:
    """What is left of a setting when it fits; a direction's hop that is held gives nothing up."""
    setting = list(start)
    spent = sum(one.worth(taken)[1] for one, taken in zip(directions, setting, strict=True))
    offered = [one.moves.backward(setting[i]) for i, one in enumerate(directions)]
    while spent > budget * _HAIR:
        chosen, best = -1, None
        for i, moves in enumerate(offered):
            # The first of a direction's moves is its best.
            move = next((move for move in moves if (i, move.hop) != held), None)
            if move is not None and (best is None or move.ratio > best.ratio):
                chosen, best = i, move
        if best is None:
            break
        spent += best.cost
        setting[chosen] = shorter(setting[chosen], best.hop)
        offered[chosen] = directions[chosen].moves.backward(setting[chosen])
    return tuple(setting)


def double_sided(directions: Sequence[Direction], budget: float) -> Setting:
    """Whichever of the two begins nearer to its end (Gedik et al. 2007, section VI-A)."""
    whole = cost(directions, everything(directions))
    share = budget / whole if whole else 1.0
    near_nothing = share <= 0.5 ** ((len(directions) - 1) / 2)
    return greedy(directions, budget) if near_nothing else greedy_reverse(directions, budget)


def exchanged(directions: Sequence[Direction], budget: float, setting: Setting) -> Setting:
    """A setting made better, as long as it can be, by one range more somewhere and fewer elsewhere.

    Greedy steps fill up the cheap later hops of a direction, and then cannot pay for a range of its first
    hop, which would be worth more.
    """
    best, most = setting, output(directions, setting)
    while True:
        tried = [
            greedy(directions, budget, start=_shrunk(directions, budget, more, held=held))
            for more, held in _one_more(directions, best)
        ]
        fitting = [one for one in tried if cost(directions, one) <= budget * _HAIR]
        found = max(fitting, key=lambda one: output(directions, one), default=best)
        if output(directions, found) <= most * _HAIR:
            return best
        best, most = found, output(directions, found)


def _one_more(directions: Sequence[Direction], setting: Setting) -> Iterator[tuple[Setting, tuple[int, int]]]:
    for i, one in enumerate(directions):
        for move in sorted(one.moves.forward(setting[i])):
            yield (*setting[:i], longer(setting[i], move.hop), *setting[i + 1 :]), (i, move.hop)


def brute_force(directions: Sequence[Direction], budget: float) -> Setting:
    """The best setting there is.

    Directions do not depend on each other, so of each only those settings are combined with the others'
    that none beats in both cost and output; the best one is never lost by that.
    """
    best: list[tuple[float, float, Setting]] = [(0.0, 0.0, ())]
    for one in directions:
        front = _front([(c, o, (taken,)) for taken in _settings(one) for o, c in (one.worth(taken),)])
        best = _front(
            [
                (c + more, o + added, sofar + taken)
                for c, o, sofar in best
                for more, added, taken in front
                if c + more <= budget * _HAIR
            ]
        )
    return max(best, key=lambda found: found[1])[2]


def _settings(one: Direction) -> Iterator[Taken]:
    yield (0,) * len(one.looks)
    yield from product(*(range(1, most + 1) for most in one.most))


def _front(found: list[tuple[float, float, Setting]]) -> list[tuple[float, float, Setting]]:
    """Those that give more than every cheaper one."""
    order = np.lexsort(([-o for _, o, _ in found], [c for c, _, _ in found]))
    kept, most = [], -math.inf
    for i in order.tolist():
        if found[i][1] > most:
            kept.append(found[i])
            most = found[i][1]
    return kept


def _score(metric: Metric, move: Move, found: float, spent: float) -> float:
    """The metrics of Gedik et al. 2007, section V-A.2."""
    if metric == "output":
        return found + move.output if move.output > 0 else 0.0
    if metric == "output per cost":
        return ratio(found + move.output, spent + move.cost)
    return move.ratio


def _check(metric: str) -> None:
    if metric not in get_args(Metric):
        raise QueryError(f"a metric is one of {', '.join(map(repr, get_args(Metric)))}; got {metric!r}")
