"""The steps of a search for settings: from some ranges of a direction to one more or one less."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

Taken = tuple[int, ...]


class Move(NamedTuple):
    """A direction's next setting, how its output and cost change by it, and the one for the other.

    The `ratio` is 002's metric of the greatest change of output for what it costs (section V-A.2); of what is
    given up, it is the loss for what is saved, below zero.
    """

    hop: int
    taken: Taken
    output: float
    cost: float
    ratio: float


class Moves:
    """The moves of one direction, those with the best ratio first, and of equal ones those of early hops.

    `worth` tells results and cost of a setting. A search comes by the same settings again and again, so that
    all answers are kept.
    """

    def __init__(self, worth: Callable[[Taken], tuple[float, float]], most: Taken) -> None:
        self._find, self._most = worth, most
        self._worth: dict[Taken, tuple[float, float]] = {}
        self._forward: dict[Taken, list[Move]] = {}
        self._backward: dict[Taken, list[Move]] = {}

    def worth(self, taken: Taken) -> tuple[float, float]:
        """Results and cost of a setting."""
        found = self._worth.get(taken)
        if found is None:
            found = self._worth[taken] = self._find(taken)
        return found

    def forward(self, taken: Taken) -> list[Move]:
        """To one range more; a direction gives nothing before every hop has one, so it begins with all."""
        found = self._forward.get(taken)
        if found is None:
            results, spent = self.worth(taken)
            found = []
            for hop, longer in self._longer(taken):
                more, dearer = self.worth(longer)
                gain, price = more - results, dearer - spent
                found.append(Move(hop, longer, gain, price, ratio(gain, price)))
            self._forward[taken] = found = sorted(found, key=_by_ratio)
        return found

    def backward(self, taken: Taken) -> list[Move]:
        """To one range less, or to nothing."""
        found = self._backward.get(taken)
        if found is None:
            results, spent = self.worth(taken)
            found = []
            for hop, shorter in _shorter(taken):
                less, cheaper = self.worth(shorter)
                gain, price = less - results, cheaper - spent
                found.append(Move(hop, shorter, gain, price, -ratio(-gain, -price)))
            self._backward[taken] = found = sorted(found, key=_by_ratio)
        return found

    def _longer(self, taken: Taken) -> Iterator[tuple[int, Taken]]:
        if not all(taken):
            yield 0, (1,) * len(taken)
            return
        for hop, (ranges, most) in enumerate(zip(taken, self._most, strict=True)):
            if ranges < most:
                yield hop, (*taken[:hop], ranges + 1, *taken[hop + 1 :])


def _shorter(taken: Taken) -> Iterator[tuple[int, Taken]]:
    if not all(taken):
        return
    for hop, ranges in enumerate(taken):
        fewer = (*taken[:hop], ranges - 1, *taken[hop + 1 :])
        yield hop, fewer if ranges > 1 else (0,) * len(taken)


def _by_ratio(move: Move) -> float:
    return -move.ratio


def ratio(gain: float, price: float) -> float:
    """A gain for its price; what is free is worth anything."""
    if price > 0:
        return gain / price
    return math.inf if gain > 0 else 0.0
