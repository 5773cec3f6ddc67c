"""Scenarios: what changes while a query runs, phase by phase, and when each row arrives.

Rows are drawn by event time, and a batch is one second of arrivals. Most rows arrive within their own second;
those of a stream that is held up wait, and come in at three times the speed afterwards; late ones come one
second after their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from weir.errors import QueryError
from weir_lab.regret.streams import SCHEMA, WINDOW, Delta, Shape, draw_second

# Batches of a phase before it counts as steady: two windows.
SETTLING = 2 * WINDOW
_CATCH_UP_SPEED = 3


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of batches.

    `cpu` and `memory` are the budget, as multiples of what the exact join takes in the first phase. `ramp` is
    how many times the rates grow from the first batch to the last. `slowdown` is how many times as long
    everything takes, for a neighbour on the CPU. The stream `held` is held up. `late` is the share of rows
    that come late.
    """

    name: str
    batches: int
    shape: Shape
    cpu: float | None = None
    memory: float | None = None
    ramp: float = 1.0
    slowdown: float = 1.0
    held: str | None = None
    late: float = 0.0

    def __post_init__(self) -> None:
        if self.batches < 1:
            raise QueryError(f"a phase has one batch or more; {self.name} has {self.batches}")
        if self.held is not None and self.held not in self.shape.names:
            raise QueryError(f"stream '{self.held}' is not in the phase {self.name}")

    def shape_at(self, batch: int) -> Shape:
        """What the streams are like in a batch of the phase."""
        if self.ramp == 1.0:
            return self.shape
        return self.shape.faster(self.ramp ** (batch / max(self.batches - 1, 1)))


@dataclass(frozen=True, slots=True)
class Scenario:
    """Phases of one query; `what` says what changes. Bars about steady phases skip those that are not."""

    name: str
    what: str
    phases: tuple[Phase, ...]
    lagged: bool = False
    late: str | None = None

    def __post_init__(self) -> None:
        if len({phase.shape.names for phase in self.phases}) != 1:
            raise QueryError(f"all phases of {self.name} have the same streams")

    @property
    def names(self) -> tuple[str, ...]:
        """The streams."""
        return self.phases[0].shape.names

    @property
    def batches(self) -> int:
        """How many there are."""
        return sum(phase.batches for phase in self.phases)

    def locate(self, batch: int) -> tuple[int, int]:
        """The phase of a batch, and its number within it."""
        for number, phase in enumerate(self.phases):
            if batch < phase.batches:
                return number, batch
            batch -= phase.batches
        raise QueryError(f"the scenario {self.name} has {self.batches} batches")

    def is_steady(self, batch: int) -> bool:
        """True from the third window of a phase on, unless the phase itself keeps changing."""
        number, within = self.locate(batch)
        phase = self.phases[number]
        return within >= SETTLING and phase.ramp == 1.0 and phase.held is None

    def start_of(self, number: int) -> int:
        """The first batch of a phase."""
        return sum(phase.batches for phase in self.phases[:number])

    def feed(self, seed: int) -> list[Delta]:
        """The rows of every batch."""
        arriving: list[dict[str, list[pa.Table]]] = [{n: [] for n in self.names} for _ in range(self.batches)]
        for second in range(self.batches):
            number, within = self.locate(second)
            phase = self.phases[number]
            for name, rows in draw_second(phase.shape_at(within), second, seed).items():
                for batch, part in self._arrive(name, rows, second, phase.late, seed):
                    if batch < self.batches:
                        arriving[batch][name].append(part)
        return [{name: _gather(parts) for name, parts in batch.items()} for batch in arriving]

    def _arrive(
        self, name: str, rows: pa.Table, second: int, late: float, seed: int
    ) -> Iterator[tuple[int, pa.Table]]:
        """The batches in which the rows of a second arrive."""
        batch = self._released(name, second)
        if not late:
            yield batch, rows
            return
        is_late = (
            np.random.default_rng([seed, 99, second, self.names.index(name)]).random(rows.num_rows) < late
        )
        yield batch, rows.filter(pa.array(~is_late))
        yield batch + 1, rows.filter(pa.array(is_late))

    def _released(self, name: str, second: int) -> int:
        """When a stream's rows of a second are let go: rows after a hold-up wait for those before them."""
        released = second
        for number, phase in enumerate(self.phases):
            begin = self.start_of(number)
            if phase.held == name and second >= begin:
                released = max(released, begin + phase.batches + (second - begin) // _CATCH_UP_SPEED)
        return released


def _gather(parts: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables([SCHEMA.empty_table(), *parts]).combine_chunks()


_THREE = Shape(dict.fromkeys("abc", 50.0), keys=100)
_FOUR = Shape(dict.fromkeys("abcd", 40.0), keys=100)
# Of ten candidates that the key leaves, about four are near; the last stream finds most results.
_LAGGED = Shape(dict.fromkeys("abc", 50.0), keys=25, lags={"a": 0.0, "b": 1.5, "c": 3.0})
_AHEAD = replace(_LAGGED, lags={"a": 3.0, "b": 1.5, "c": 0.0})
_BRIEFLY = 3
_GAP = 8


def list_scenarios(n: int) -> tuple[Scenario, ...]:
    """All scenarios, with so many batches in a phase.

    Streams are small, so that hundreds of fixed decisions can be tried: what the machine takes for a row is a
    matter of its unit costs.
    """
    rare = {name: replace(_FOUR, misses={name: 0.7}) for name in "ad"}
    return (
        Scenario("calm", "nothing", (Phase("calm", 2 * n, _FOUR, 0.6),)),
        Scenario(
            "burst",
            "five times the rate, and back",
            (
                Phase("calm", n, _THREE, 8.0),
                Phase("five times the rate", n, _THREE.faster(5), 8.0),
                Phase("calm again", n, _THREE, 8.0),
            ),
        ),
        Scenario(
            "ramp",
            "rates grow to three times",
            (
                Phase("calm", n, _THREE, 3.0),
                Phase("ramp", n, _THREE, 3.0, ramp=3.0),
                Phase("three times the rate", n, _THREE.faster(3), 3.0),
            ),
        ),
        Scenario(
            "lag jump",
            "the stream that came last comes first",
            (Phase("c trails", n, _LAGGED, 0.25), Phase("a trails", n, _AHEAD, 0.25)),
            lagged=True,
        ),
        Scenario(
            "selectivity shift",
            "another stream has few partners",
            (Phase("d is rare", n, rare["d"], 0.5), Phase("a is rare", n, rare["a"], 0.5)),
        ),
        Scenario(
            "skew shift",
            "some keys become hot",
            (Phase("even keys", n, _THREE, 1.2), Phase("hot keys", n, replace(_THREE, skew=0.6), 1.2)),
        ),
        Scenario(
            "neighbour",
            "everything takes three times as long for three batches",
            (
                Phase("calm", n, _THREE, 0.7),
                Phase("neighbour", _BRIEFLY, _THREE, 0.7, slowdown=3.0),
                Phase("calm again", n, _THREE, 0.7),
            ),
        ),
        Scenario(
            "memory halved",
            "the memory budget",
            (
                Phase("enough memory", n, _LAGGED, memory=1.2),
                Phase("half of it", n, _LAGGED, memory=0.6),
            ),
            lagged=True,
        ),
        Scenario(
            "silent stream",
            "one stream says nothing for a while",
            (
                Phase("calm", n, _THREE, 0.6),
                Phase("c is silent", _GAP, _THREE.without("c"), 0.6),
                Phase("calm again", n, _THREE, 0.6),
            ),
        ),
        Scenario(
            "catching up",
            "one stream is held up and then catches up, with little memory",
            (
                Phase("calm", n, _THREE, 0.8, memory=1.2),
                Phase("c is held up", _GAP, _THREE, 0.8, memory=1.2, held="c"),
                Phase("c catches up", n, _THREE, 0.8, memory=1.2),
            ),
        ),
        Scenario(
            "late rows",
            "half of the rows come a second late",
            (
                Phase("calm", n, _THREE, 0.6),
                Phase("late rows", n, _THREE, 0.6, late=0.5),
                Phase("calm again", n, _THREE, 0.6),
            ),
            late="2 seconds",
        ),
        Scenario(
            "raised budget",
            "twice the CPU",
            (Phase("little CPU", n, _THREE, 0.4), Phase("twice as much", n, _THREE, 0.8)),
        ),
    )
