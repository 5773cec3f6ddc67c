"""Simulate one setting: a ring, or aligned or coordinated routing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import mean
from typing import Protocol

from weir.partition.ring_cost import latency
from weir_lab.psp.settings import CTR_SEGMENT, MACHINE, Setting, arrivals
from weir_lab.ring.atr import AlignedRouting
from weir_lab.ring.clock import Clock, feed
from weir_lab.ring.ctr import CoordinatedRouting
from weir_lab.ring.hardware import Hardware
from weir_lab.ring.model import equal_steps
from weir_lab.ring.ring import Emit, Ring
from weir_lab.ring.stored import Row
from weir_lab.ring.tally import Tally

_SAMPLES = 20


class Spread(Protocol):
    """Nodes that take rows."""

    def arrive(self, row: Row) -> None:
        """Take a row."""

    @property
    def rows(self) -> int:
        """Rows held."""


@dataclass(frozen=True, slots=True)
class Point:
    """What one run showed: seconds from a row to its results, rows held on average, results.

    `value` is the segment length of ATR or the copies of CTR; `model` is what equation 5 says of a ring
    without a queue.
    """

    scheme: str
    streams: int
    selectivity: float
    value: float
    nodes: int
    response: float
    state: float
    results: float
    model: float


def play_ring(setting: Setting, nodes: int, seconds: float, interleave: int = 1) -> Point:
    """A ring with full windows from the start."""
    before, after = _with_full_windows(setting, seconds)
    clock, task = Clock(), setting.task
    tally = Tally(task.matching)
    ring = Ring(task, nodes, MACHINE, clock, tally.emit, interleave)
    ring.fill(before, 0.0)
    state = _run(ring, after, clock, 0.0, seconds)
    return _point("PSP" if interleave == 1 else "PSP-I", setting, interleave, nodes, tally, state, MACHINE)


def play_alone(setting: Setting, nodes: int, rows: int, machine: Hardware = MACHINE) -> Point:
    """A ring with full windows, each row coming when the one before is done, as equation 5 has it.

    Windows move by the rows' own times, so state moves on from node to node as it would at the full rate.
    """
    before, after = _with_full_windows(setting, 3 * rows / (setting.rate * setting.streams))
    clock, task = Clock(), setting.task
    tally = Tally(task.matching)
    began = 0.0

    def emit(row: Row, content: object, begin: float, done: float) -> None:
        tally.emit(row, content, begin - began + row.time, done - began + row.time)

    ring = Ring(task, nodes, machine, clock, emit)
    ring.fill(before, 0.0)
    for row in after[:rows]:
        began = clock.now
        ring.arrive(row)
        clock.run()
    return _point("PSP", setting, 1, nodes, tally, ring.rows, machine)


def _with_full_windows(setting: Setting, seconds: float) -> tuple[list[Row], list[Row]]:
    rows = arrivals(setting.streams, [(-setting.window, setting.rate), (seconds, 0.0)], seed=1)
    return [row for row in rows if row.time < 0], [row for row in rows if row.time >= 0]


def play_atr(setting: Setting, nodes: int, segment: float, seconds: float) -> Point:
    """Aligned routing from empty states; measured after the first window."""

    def make(clock: Clock, emit: Emit) -> Spread:
        return AlignedRouting(setting.task, nodes, segment, MACHINE, clock, emit)

    return _from_empty("ATR", setting, nodes, segment, seconds, make)


def play_ctr(setting: Setting, nodes: int, copies: int, seconds: float) -> Point:
    """Coordinated routing from empty states; measured after the first window."""

    def make(clock: Clock, emit: Emit) -> Spread:
        return CoordinatedRouting(setting.task, nodes, copies, CTR_SEGMENT, MACHINE, clock, emit)

    return _from_empty("CTR", setting, nodes, copies, seconds, make)


def _from_empty(
    scheme: str,
    setting: Setting,
    nodes: int,
    value: float,
    seconds: float,
    make: Callable[[Clock, Emit], Spread],
) -> Point:
    end = setting.window + seconds
    rows = arrivals(setting.streams, [(0.0, setting.rate), (end, 0.0)], seed=1)
    clock, tally = Clock(), Tally(setting.task.matching)

    def emit(row: Row, content: object, begin: float, done: float) -> None:
        if row.time >= setting.window:
            tally.emit(row, content, begin, done)

    state = _run(make(clock, emit), rows, clock, setting.window, end)
    return _point(scheme, setting, value, nodes, tally, state, MACHINE)


def _run(spread: Spread, rows: list[Row], clock: Clock, begin: float, end: float) -> float:
    """Play rows; the state is what was held on average, looked at now and then."""
    held: list[int] = []
    feed(clock, rows, spread.arrive)
    for sample in range(1, _SAMPLES + 1):
        clock.run(begin + (end - begin) * sample / _SAMPLES)
        held.append(spread.rows)
    clock.run()
    return mean(held)


def _point(
    scheme: str, setting: Setting, value: float, nodes: int, tally: Tally, state: float, machine: Hardware
) -> Point:
    steps = equal_steps(setting.streams, setting.rate, setting.window, setting.selectivity)
    return Point(
        scheme,
        setting.streams,
        setting.selectivity,
        value,
        nodes,
        tally.response,
        state,
        tally.total,
        latency(steps, machine, nodes),
    )
