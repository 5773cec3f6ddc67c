"""A lag that drifts: what it does to a join that learns, to one that has stopped, and to dropping."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from weir_lab.grubjoin.output import Bench
from weir_lab.grubjoin.play import FROZEN, HARVEST, RANDOM_DROP, Way, play
from weir_lab.grubjoin.streams import LAGGED

RATE = 200.0
# Streams 2 and 3 change places in time, and nothing else.
AFTER = (0.0, 12.0, 6.0)
PHASES = ("before", "during", "after")
DRIFTERS = (HARVEST, FROZEN, RANDOM_DROP)


@dataclass(frozen=True, slots=True)
class Moment:
    """The results a second of one way up to a time, in the rows of the paper."""

    way: str
    seed: int
    time: float
    phase: str
    output: float


def play_drift(bench: Bench, seed: int, phase_seconds: float) -> Iterator[Moment]:
    """One run of each way: phases of one length, after the warm-up."""
    start, end = bench.warm + phase_seconds, bench.warm + 2 * phase_seconds
    streams = replace(bench.streams(LAGGED[:3], RATE, seed), drift=(start, end), lags_after=AFTER)
    for name in DRIFTERS:
        way = Way(name, frozen_at=start) if name == FROZEN else Way(name)
        for played in play(streams, bench.machine, way, bench.warm + 3 * phase_seconds):
            if played.time > bench.warm + 1e-9:
                phase = PHASES[min(2, int((played.time - bench.warm - 1e-9) / phase_seconds))]
                yield Moment(name, seed, played.time, phase, streams.thin * played.results / way.period)
