"""Search the harvest fractions with the most output within a budget (Gedik et al. 2007, section V-A)."""

from __future__ import annotations

import math

from weir.shed.harvest_model import Directions, HarvestSetting, compute_cost, compute_output, full_setting
from weir.shed.harvest_moves import Move, add_basic_window, remove_basic_window

# Costs are sums of many products; a cost above the budget by no more than this factor is rounding.
ROUNDING = 1 + 1e-9
_NO_MOVE = Move(0, 0.0, 0.0, -math.inf)


def find_best_setting(directions: Directions, budget: float) -> HarvestSetting:
    """The better of the two greedy settings, improved by exchanges.

    The two miss the best in different places; at a small budget both may fall below the 0.98 of it that Gedik
    et al. 2007 report.
    """
    return improve_by_exchanges(directions, budget, find_greedy_setting(directions, budget))


def find_greedy_setting(directions: Directions, budget: float) -> HarvestSetting:
    """The better of the two greedy settings, without exchanges, which take most of the time."""
    if compute_cost(directions, full_setting(directions)) <= budget:
        return full_setting(directions)
    settings = (greedy(directions, budget), greedy_reverse(directions, budget))
    return max(settings, key=lambda setting: compute_output(directions, setting))


def greedy(directions: Directions, budget: float, start: HarvestSetting | None = None) -> HarvestSetting:
    """Add the basic window with the best gain per cost until none fits (Gedik et al. 2007, figure 6).

    The ratio of a move does not change until its direction does. So only the best move of each direction is
    examined, where the paper evaluates all at each step; and a move that does not fit never fits
    later, because costs only grow.
    """
    setting = list(start or [(0,) * len(direction.hops) for direction in directions])
    spent = compute_cost(directions, tuple(setting))
    queues = [iter(direction.moves.additions(c)) for direction, c in zip(directions, setting, strict=True)]
    heads = [next(queue, _NO_MOVE) for queue in queues]
    ratios = [move.ratio for move in heads]
    while (best := max(ratios)) > 0:
        i = ratios.index(best)
        move = heads[i]
        if spent + move.cost <= budget * ROUNDING:
            spent += move.cost
            setting[i] = add_basic_window(setting[i], move.hop)
            queues[i] = iter(directions[i].moves.additions(setting[i]))
        heads[i] = next(queues[i], _NO_MOVE)
        ratios[i] = heads[i].ratio
    return tuple(setting)


def greedy_reverse(directions: Directions, budget: float) -> HarvestSetting:
    """From the full setting, remove the basic window with the least loss for its cost until all fits.

    `greedy` then fills what the last removal left of the budget.
    """
    return greedy(directions, budget, start=_shrink(directions, budget, full_setting(directions)))


def _shrink(
    directions: Directions, budget: float, start: HarvestSetting, pinned: tuple[int, int] | None = None
) -> HarvestSetting:
    """Remove basic windows until the setting fits; the `pinned` hop of a direction keeps its own."""
    setting = list(start)
    spent = compute_cost(directions, start)
    offers = [direction.moves.removals(setting[i]) for i, direction in enumerate(directions)]
    while spent > budget * ROUNDING:
        chosen, best = -1, None
        for i, moves in enumerate(offers):
            # The first of a direction's moves is its best.
            move = next((move for move in moves if (i, move.hop) != pinned), None)
            if move is not None and (best is None or move.ratio > best.ratio):
                chosen, best = i, move
        if best is None:
            break
        spent += best.cost
        setting[chosen] = remove_basic_window(setting[chosen], best.hop)
        offers[chosen] = directions[chosen].moves.removals(setting[chosen])
    return tuple(setting)


def improve_by_exchanges(directions: Directions, budget: float, setting: HarvestSetting) -> HarvestSetting:
    """Exchange: one basic window more somewhere and fewer elsewhere, as long as the output grows.

    Greedy steps fill up the cheap later hops of a direction, and then cannot pay for a basic window of its
    first hop, which would be worth more.
    """
    best, most = setting, compute_output(directions, setting)
    while True:
        exchanged = []
        for i, direction in enumerate(directions):
            for move in sorted(direction.moves.additions(best[i])):
                larger = (*best[:i], add_basic_window(best[i], move.hop), *best[i + 1 :])
                fitting = _shrink(directions, budget, larger, pinned=(i, move.hop))
                exchanged.append(greedy(directions, budget, start=fitting))
        affordable = [other for other in exchanged if compute_cost(directions, other) <= budget * ROUNDING]
        better = max(affordable, key=lambda other: compute_output(directions, other), default=best)
        if compute_output(directions, better) <= most * ROUNDING:
            return best
        best, most = better, compute_output(directions, better)
