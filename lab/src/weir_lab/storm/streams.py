"""Four cameras that see the same objects one after the other, among things that only one of them sees."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir_lab.storm.schedule import Schedule

STREAMS = ("a", "b", "c", "d")
SCHEMA = "ts timestamp, id bigint, k bigint, x double, y double"
# Windows, freshness and lags in ticks.
WINDOW, FRESH, BASIC = 5, 7, 2
# When each camera sees an object after the first did, before and after the lags have drifted: another one
# is the last then.
LAGS = {"a": (0.0, 0.0), "b": (1.8, 3.4), "c": (2.4, 1.0), "d": (3.0, 2.0)}
_JITTER = 0.2
# This share of the rows are objects, which all cameras see.
_OBJECTS = 0.3
KEYS = 16
_NEAR = 0.0003
# The range of values that comes by chance on `x` and on `y`; a shift swaps them.
_SPREAD = (1.0, 3.0)
# By which feature two cameras are compared: not one that an index finds, so that each pair costs.
_COMPARED = (
    ("a", "b", "x"),
    ("b", "c", "x"),
    ("c", "d", "x"),
    ("a", "c", "y"),
    ("b", "d", "y"),
    ("a", "d", "y"),
)
ON = " AND ".join(
    [
        *(f"{left}.k = {right}.k" for left, right in pairwise(STREAMS)),
        *(f"({p}.{v} - {q}.{v}) * ({p}.{v} - {q}.{v}) <= {_NEAR * _NEAR:.10f}" for p, q, v in _COMPARED),
    ]
)
SELECT = ", ".join(f"{name}.id AS {name}" for name in STREAMS)
# An id tells the tick that brought it.
PER_TICK = 1_000_000
# Spark's first watermark is 1970, and a row of that very moment would be late.
START = 1_700_000_000 * 1_000_000
_TIME = pa.timestamp("us", tz="UTC")
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Objects:
    """What the first camera sees in a tick and the others later: times in ticks, key and features."""

    born: Floats
    k: npt.NDArray[np.int64]
    x: Floats
    y: Floats

    def seen(self, stream: str, schedule: Schedule, rng: np.random.Generator) -> Floats:
        """When a camera sees them."""
        before, after = LAGS[stream]
        moved = np.array([schedule.drifted(float(tick)) for tick in np.floor(self.born)])
        jitter = rng.uniform(-_JITTER, _JITTER, len(self.born)) if stream != "a" else 0.0
        return np.asarray(self.born + before + (after - before) * moved + jitter)


@dataclass(frozen=True)
class Streams:
    """The rows of every tick; always the same ones for the same numbers."""

    schedule: Schedule
    rows: int
    interval: float
    seed: int = 0

    def table(self, stream: str, tick: int) -> pa.Table:
        """What a camera sees in a tick, in the order of time."""
        pieces = [self._appearing(stream, tick, born) for born in range(max(0, tick - WINDOW), tick + 1)]
        times, k, x, y = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
        rng = self._rng(1 + STREAMS.index(stream), tick)
        noise = max(0, self.rows * self.schedule.factor(tick) - len(times))
        wide_x, wide_y = self._spreads(tick)
        times = np.concatenate((times, tick + rng.random(noise)))
        k = np.concatenate((k, rng.integers(0, KEYS, noise)))
        x = np.concatenate((x, wide_x * rng.random(noise)))
        y = np.concatenate((y, wide_y * rng.random(noise)))
        order = np.argsort(times, kind="stable")
        micros = START + np.floor(times[order] * self.interval * 1e6).astype(np.int64)
        return pa.table(
            {
                "ts": pa.array(micros).cast(_TIME),
                "id": tick * PER_TICK + np.arange(len(times)),
                "k": k[order],
                "x": x[order],
                "y": y[order],
            }
        )

    def moment(self, tick: int) -> int:
        """The event time at which a tick begins, in microseconds."""
        return START + round(tick * self.interval * 1e6)

    def _appearing(
        self, stream: str, tick: int, born: int
    ) -> tuple[Floats, npt.NDArray[np.int64], Floats, Floats]:
        """The objects of a tick that a camera sees in this one."""
        objects = self._objects(born)
        rng = self._rng(10 + STREAMS.index(stream), born)
        times = objects.seen(stream, self.schedule, rng)
        near = [
            feature + rng.uniform(-_NEAR / 4, _NEAR / 4, len(times)) for feature in (objects.x, objects.y)
        ]
        # Jitter may reach back before the first tick of all.
        here = np.floor(np.maximum(times, 0.0)) == tick
        return times[here], objects.k[here], near[0][here], near[1][here]

    def _objects(self, tick: int) -> Objects:
        rng = self._rng(0, tick)
        count = round(_OBJECTS * self.rows * self.schedule.factor(tick))
        wide_x, wide_y = self._spreads(tick)
        return Objects(
            tick + rng.random(count),
            rng.integers(0, KEYS, count),
            wide_x * rng.random(count),
            wide_y * rng.random(count),
        )

    def _spreads(self, tick: int) -> tuple[float, float]:
        narrow, wide = _SPREAD
        return (wide, narrow) if self.schedule.is_shifted(tick) else (narrow, wide)

    def _rng(self, kind: int, tick: int) -> np.random.Generator:
        return np.random.default_rng((self.seed, kind, tick))
