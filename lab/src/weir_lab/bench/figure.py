"""Figures: ratios of two things measured side by side."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from statistics import median, quantiles
from time import perf_counter
from typing import Literal


@dataclass(frozen=True, slots=True)
class Figure:
    """A ratio, the aim it is held against, and the spread of its repeats (first and third quartile).

    `is_short` says that the time is so short that the ratio does not matter; the note says how short.
    """

    name: str
    ratio: float
    low: float
    high: float
    aim: float
    wanted: Literal["at most", "at least"]
    note: str = ""
    is_short: bool = False

    @property
    def is_reached(self) -> bool:
        """True if the median ratio is on the right side of the aim, or the time is short anyway."""
        return self.is_short or (
            self.ratio <= self.aim if self.wanted == "at most" else self.ratio >= self.aim
        )


def side_by_side(
    ours: Callable[[], object], theirs: Callable[[], object], repeats: int
) -> tuple[list[float], list[float]]:
    """The seconds of both, taken in turns so that a busy machine slows both alike; the first warms up."""
    seconds = time_in_turns(
        {"ours": partial(time_call, ours), "theirs": partial(time_call, theirs)}, repeats, math.inf
    )
    return seconds["ours"], seconds["theirs"]


def time_call(call: Callable[[], object]) -> float:
    """The seconds that a call takes."""
    started = perf_counter()
    call()
    return perf_counter() - started


def time_in_turns(
    runs: Mapping[str, Callable[[], float]], repeats: int, patience: float, warm: int = 1
) -> dict[str, list[float]]:
    """What each run says it took, in turns, of which the first `warm` ones only warm up.

    No turn begins after `patience` seconds; if there has been no other, those that warm up count.
    """
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    started = perf_counter()
    for turn in range(warm + repeats):
        if turn and perf_counter() - started > patience:
            break
        for name, run in runs.items():
            seconds[name].append(run())
    return {name: timings[warm:] or timings for name, timings in seconds.items()}


def ratio(
    name: str,
    above: Sequence[float],
    below: Sequence[float],
    aim: float,
    wanted: Literal["at most", "at least"],
    note: str = "",
) -> Figure:
    """The median of the turns' ratios with its quartiles."""
    return summarise(name, [a / b for a, b in zip(above, below, strict=True)], aim, wanted, note)


def summarise(
    name: str,
    values: Sequence[float],
    aim: float,
    wanted: Literal["at most", "at least"],
    note: str = "",
    is_short: bool = False,
) -> Figure:
    """The median of what each turn gave, with its quartiles."""
    low, _, high = quantiles(values, n=4) if len(values) > 1 else [*values] * 3
    return Figure(name, median(values), low, high, aim, wanted, note, is_short)


def fit_exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """The power of the size with which time grows: least squares of log time on log size.

    >>> round(fit_exponent([10, 20, 40], [1, 4, 16]), 6)
    2.0
    """
    xs, ys = [math.log(size) for size in sizes], [math.log(second) for second in seconds]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)


def tell(figures: Sequence[Figure]) -> Sequence[Figure]:
    """Print figures on stderr as they are done, since stdout may carry them to another process."""
    for figure in figures:
        print(f"{figure.name}: {figure.ratio:.2f} ({figure.note})", file=sys.stderr, flush=True)
    return figures


def to_json(figures: Sequence[Figure]) -> str:
    """The figures as a JSON list."""
    return json.dumps([asdict(figure) | {"reached": figure.is_reached} for figure in figures], indent=2)


def from_json(text: str) -> list[Figure]:
    """The figures of `to_json`."""
    return [
        Figure(**{name: value for name, value in entry.items() if name != "reached"})
        for entry in json.loads(text)
    ]
