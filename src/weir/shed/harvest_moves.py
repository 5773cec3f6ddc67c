"""The steps of a search for settings: from some ranges of a direction to one more or one less."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

Taken = tuple[int, ...]
# Of each hop, what a probe gives and takes for 0, 1, .. ranges.
Menus = Sequence[tuple[Sequence[float], Sequence[float]]]


class Move(NamedTuple):
    """One range more or less at a hop: how output and cost change by it, and the one for the other.

    The `ratio` is best delta output per delta cost (Gedik et al. 2007, section V-A.2); of what is
    given up, it is the loss for what is saved, below zero.
    """

    hop: int
    output: float
    cost: float
    ratio: float


class Moves:
    """The moves of one direction, those with the best ratio first, and of equal ones those of early hops.

    A search comes by the same settings again and again, so that all answers are kept.
    """

    def __init__(self, rate: float, menus: Menus) -> None:
        self._rate, self._menus = rate, menus
        self._worth: dict[Taken, tuple[float, float]] = {}
        self._forward: dict[Taken, list[Move]] = {}
        self._backward: dict[Taken, list[Move]] = {}

    def worth(self, taken: Taken) -> tuple[float, float]:
        """Results and cost each second: λ_i N_(i,m) and λ_i C_i (Gedik et al. 2007, section IV-C)."""
        found = self._worth.get(taken)
        if found is None:
            partials, cost = self._rate, 0.0
            for ranges, (gives, takes) in zip(taken, self._menus, strict=True):
                cost += partials * takes[ranges]
                partials *= gives[ranges]
            found = self._worth[taken] = partials, cost
        return found

    def forward(self, taken: Taken) -> list[Move]:
        """To one range more; a direction gives nothing before every hop has one, so it begins with all."""
        found = self._forward.get(taken)
        if found is None:
            first = (0, *self.worth((1,) * len(taken)))
            changes = self._changes(taken, 1) if all(taken) else iter([first])
            moves = [Move(hop, gain, price, ratio(gain, price)) for hop, gain, price in changes]
            found = self._forward[taken] = sorted(moves, key=_by_ratio)
        return found

    def backward(self, taken: Taken) -> list[Move]:
        """To one range less, or to nothing."""
        found = self._backward.get(taken)
        if found is None:
            changes = self._changes(taken, -1) if all(taken) else iter(())
            moves = [Move(hop, gain, price, -ratio(-gain, -price)) for hop, gain, price in changes]
            found = self._backward[taken] = sorted(moves, key=_by_ratio)
        return found

    def _changes(self, taken: Taken, by: int) -> Iterator[tuple[int, float, float]]:
        """What so many ranges more at each hop change: it gets the same partials, and what follows costs and
        gives the same for each that it passes on.
        """
        results, cost = [1.0], [0.0]
        for ranges, (gives, takes) in zip(reversed(taken), reversed(self._menus), strict=True):
            cost.append(takes[ranges] + gives[ranges] * cost[-1])
            results.append(gives[ranges] * results[-1])
        partials = self._rate
        for hop, (ranges, (gives, takes)) in enumerate(zip(taken, self._menus, strict=True)):
            after = len(taken) - hop - 1
            if not ranges + by:
                # Nothing at one hop is nothing at all.
                yield hop, -self._rate * results[-1], -self._rate * cost[-1]
            elif ranges + by < len(gives):
                more = gives[ranges + by] - gives[ranges]
                dearer = takes[ranges + by] - takes[ranges] + more * cost[after]
                yield hop, partials * more * results[after], partials * dearer
            partials *= gives[ranges]


def longer(taken: Taken, hop: int) -> Taken:
    """The setting after a move forward."""
    return (*taken[:hop], taken[hop] + 1, *taken[hop + 1 :]) if all(taken) else (1,) * len(taken)


def shorter(taken: Taken, hop: int) -> Taken:
    """The setting after a move back; a direction without a range at some hop gives nothing."""
    return (*taken[:hop], taken[hop] - 1, *taken[hop + 1 :]) if taken[hop] > 1 else (0,) * len(taken)


def ratio(gain: float, price: float) -> float:
    """A gain for its price; what is free is worth anything."""
    if price > 0:
        return gain / price
    return math.inf if gain > 0 else 0.0


def _by_ratio(move: Move) -> float:
    return -move.ratio
