"""Figures 8.g and 8.h: rows come twice as fast from some moment on; later, beyond the figures, no more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from weir.partition.resize import Resize, ResizeMode
from weir.partition.ring_cost import best_length
from weir_lab.psp.settings import MACHINE, RATE, Setting, arrivals
from weir_lab.ring.clock import Clock, feed
from weir_lab.ring.model import equal_steps
from weir_lab.ring.ring import Ring
from weir_lab.ring.stored import Row
from weir_lab.ring.tally import Tally

Way = Literal["none", "smoothed", "passive", "aggressive"]
WAYS_TO_ADAPT: tuple[Way, ...] = ("none", "smoothed", "passive", "aggressive")
START = 4
# How often rates are looked at, and by how many nodes a ring must be off to be changed.
_EVERY = 2.0
# Limits lag behind a growing window, and the tail holds the difference: 2 seconds are too long for 10.
_BALANCED_EVERY = 0.5
_OFF = 2


@dataclass(frozen=True, slots=True)
class Second:
    """One second of a run: mean response of results whose last row came in it, nodes, rows held, waiting.

    `fullest` is how many times its even share the fullest node holds.
    """

    way: Way
    second: int
    response: float
    nodes: int
    state: int
    waiting: int
    fullest: float


def play_adaptation(calm: int, busy: int, tell: Callable[[str], None]) -> list[Second]:
    """A ring of four nodes: `calm` seconds at the paper's rate, `busy` ones at twice that, as many after."""
    seconds = []
    for way in WAYS_TO_ADAPT:
        tell(f"the rate doubles: {way}")
        seconds += _played(way, calm, busy)
    return seconds


def _played(way: Way, calm: int, busy: int) -> list[Second]:
    setting = Setting()
    end = calm + 2 * busy
    rates = [(-setting.window, RATE), (float(calm), 2 * RATE), (float(calm + busy), RATE), (float(end), 0.0)]
    rows = arrivals(setting.streams, rates, seed=1)
    clock, task = Clock(), setting.task
    tally = Tally(task.matching)
    ring = Ring(task, START, MACHINE, clock, tally.emit)
    ring.fill([row for row in rows if row.time < 0], 0.0)
    after = [row for row in rows if row.time >= 0]
    watched = _Watched(ring, setting)
    feed(clock, after, watched.arrive)
    every = _BALANCED_EVERY if way == "smoothed" else _EVERY
    for tick in range(1, int(end / every)):
        clock.at(tick * every, watched.look, way)
    seen = []
    for second in range(end):
        clock.run(second + 1.0)
        fullest = max(node.rows for node in ring.nodes) * len(ring.nodes) / ring.rows
        seen.append((second, len(ring.nodes), ring.rows, ring.waiting, fullest))
    clock.run()
    return [Second(way, sample[0], tally.mean(sample[0]), *sample[1:]) for sample in seen]


class _Watched:
    """A ring that is looked at now and then, and whose length may follow the rate at which rows come."""

    def __init__(self, ring: Ring, setting: Setting) -> None:
        self._ring, self._setting, self._seen = ring, setting, 0

    def arrive(self, row: Row) -> None:
        self._seen += 1
        self._ring.arrive(row)

    def look(self, way: Way) -> None:
        if way == "smoothed":
            self._ring.balance()
        elif way != "none":
            self._adapt(way)

    def _adapt(self, how: ResizeMode) -> None:
        setting = self._setting
        rate = self._seen / _EVERY / setting.streams
        self._seen = 0
        steps = equal_steps(setting.streams, rate, setting.window, setting.selectivity)
        nodes = best_length(steps, MACHINE).nodes
        if abs(nodes - len(self._ring.nodes)) >= _OFF:
            self._ring.resize(Resize(nodes, how))


def count_settling_seconds(seconds: Sequence[Second], way: Way, begin: int, end: int) -> int:
    """Seconds from `begin` on until the ring has as many nodes as at `end`."""
    mine = [second for second in seconds if second.way == way and begin <= second.second < end]
    others = [second.second for second in mine if second.nodes != mine[-1].nodes]
    return max(others) + 1 - begin if others else 0
