"""Figures: ratios of two things measured side by side."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median, quantiles
from time import perf_counter
from typing import Literal


@dataclass(frozen=True, slots=True)
class Figure:
    """A ratio, the aim it is held against, and the spread of its repeats (first and third quartile)."""

    name: str
    ratio: float
    low: float
    high: float
    aim: float
    wanted: Literal["at most", "at least"]
    note: str = ""

    @property
    def is_reached(self) -> bool:
        """True if the median ratio is on the right side of the aim."""
        return self.ratio <= self.aim if self.wanted == "at most" else self.ratio >= self.aim


def side_by_side(
    ours: Callable[[], object], theirs: Callable[[], object], repeats: int
) -> tuple[list[float], list[float]]:
    """The seconds of both, taken in turns so that a busy machine slows both alike; the first warms up."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for turn in range(repeats + 1):
        for run, timings in zip((ours, theirs), seconds, strict=True):
            started = perf_counter()
            run()
            if turn:
                timings.append(perf_counter() - started)
    return seconds


def ratio(
    name: str,
    above: Sequence[float],
    below: Sequence[float],
    aim: float,
    wanted: Literal["at most", "at least"],
    note: str = "",
) -> Figure:
    """The median of the turns' ratios with its quartiles."""
    ratios = [a / b for a, b in zip(above, below, strict=True)]
    low, _, high = quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
    return Figure(name, median(ratios), low, high, aim, wanted, note)


def to_json(figures: Sequence[Figure]) -> str:
    """The figures as a JSON list."""
    return json.dumps([asdict(figure) | {"reached": figure.is_reached} for figure in figures], indent=2)


def from_json(text: str) -> list[Figure]:
    """The figures of `to_json`."""
    return [
        Figure(**{name: value for name, value in entry.items() if name != "reached"})
        for entry in json.loads(text)
    ]
