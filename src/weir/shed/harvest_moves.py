"""The moves of a search for harvest fractions: one basic window more or less at a hop of a direction."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

# How many basic windows each hop of a direction probes.
Counts = tuple[int, ...]
# Of each hop: the partials and the cost of one probe into 0, 1, .. basic windows.
ProbeTables = Sequence[tuple[Sequence[float], Sequence[float]]]


class Move(NamedTuple):
    """One basic window more or less at a hop: how much output and cost change, and their ratio.

    The `ratio` is the best delta output per delta cost (Gedik et al. 2007, section V-A.2); of a removal,
    minus the output lost for the cost saved.
    """

    hop: int
    output: float
    cost: float
    ratio: float


class HarvestMoves:
    """The moves of one direction: those with the best ratio first, of equal ones those of early hops.

    A search meets the same counts again and again, so all answers are kept.
    """

    def __init__(self, rate: float, tables: ProbeTables) -> None:
        self._rate, self._tables = rate, tables
        self._evaluated: dict[Counts, tuple[float, float]] = {}
        self._known_moves: dict[tuple[Counts, int], list[Move]] = {}

    def evaluate(self, counts: Counts) -> tuple[float, float]:
        """Output and cost each second: λ_i N_(i,m) and λ_i C_i (Gedik et al. 2007, section IV-C)."""
        output_and_cost = self._evaluated.get(counts)
        if output_and_cost is None:
            flowing, cost = self._rate, 0.0
            for count, (partials, costs) in zip(counts, self._tables, strict=True):
                cost += flowing * costs[count]
                flowing *= partials[count]
            output_and_cost = self._evaluated[counts] = flowing, cost
        return output_and_cost

    def additions(self, counts: Counts) -> list[Move]:
        """Moves to one basic window more; the first one adds a basic window at every hop."""
        return self._moves(counts, 1)

    def removals(self, counts: Counts) -> list[Move]:
        """Moves to one basic window less, or to none at all."""
        return self._moves(counts, -1)

    def _moves(self, counts: Counts, by: int) -> list[Move]:
        moves = self._known_moves.get((counts, by))
        if moves is None:
            changes: Iterable[tuple[int, float, float]] = ()
            if all(counts):
                changes = self._changes(counts, by)
            elif by > 0:
                changes = [(0, *self.evaluate((1,) * len(counts)))]
            moves = [Move(*change, by * divide_gain(by * change[1], by * change[2])) for change in changes]
            moves = self._known_moves[counts, by] = sorted(moves, key=lambda move: -move.ratio)
        return moves

    def _changes(self, counts: Counts, by: int) -> Iterator[tuple[int, float, float]]:
        """Hop, change of output and change of cost for `by` basic windows more at each hop.

        The hop gets the same partials as before, and each partial that it passes on gives and costs the same
        further on.
        """
        results, cost = [1.0], [0.0]
        for count, (partials, costs) in zip(reversed(counts), reversed(self._tables), strict=True):
            cost.append(costs[count] + partials[count] * cost[-1])
            results.append(partials[count] * results[-1])
        flowing = self._rate
        for hop, (count, (partials, costs)) in enumerate(zip(counts, self._tables, strict=True)):
            after = len(counts) - hop - 1
            if not count + by:
                # Without a basic window at one hop, the direction gives nothing.
                yield hop, -self._rate * results[-1], -self._rate * cost[-1]
            elif count + by < len(partials):
                more = partials[count + by] - partials[count]
                dearer = costs[count + by] - costs[count] + more * cost[after]
                yield hop, flowing * more * results[after], flowing * dearer
            flowing *= partials[count]


def add_basic_window(counts: Counts, hop: int) -> Counts:
    """The counts after an addition."""
    return (*counts[:hop], counts[hop] + 1, *counts[hop + 1 :]) if all(counts) else (1,) * len(counts)


def remove_basic_window(counts: Counts, hop: int) -> Counts:
    """The counts after a removal; a direction without a basic window at some hop probes nothing."""
    return (*counts[:hop], counts[hop] - 1, *counts[hop + 1 :]) if counts[hop] > 1 else (0,) * len(counts)


def divide_gain(gain: float, price: float) -> float:
    """The gain per price; infinite if there is a gain for nothing."""
    if price > 0:
        return gain / price
    return math.inf if gain > 0 else 0.0
