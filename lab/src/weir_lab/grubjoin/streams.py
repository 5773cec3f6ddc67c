"""The streams of Gedik et al. 2007, section VI-B, and the join over them.

A row of stream i at time φ has the value X_i(φ) = (D/η)(φ + τ_i) + κ_i N(0, 1) mod D: all streams go through
the same values, stream i a lag of τ_i earlier and blurred by κ_i. Rows match if their values lie within ε.

A nested loop over the paper's rates takes minutes of real time for a minute of virtual time. So streams are
`thin`: of so many rows one is left, and ε is so much wider. A row then has as many partners as in the paper,
and everything that is counted, comparisons and results for each row and hop, keeps its proportion.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import weir
from weir.errors import QueryError
from weir.local.join import LocalJoin
from weir.plan.tree import Join, Leaf
from weir_lab.virtual_machine import Delta

Floats = NDArray[np.float64]
DOMAIN, PERIOD, WINDOW = 1000.0, 50.0, 20.0
SCHEMA = pa.schema({"ts": pa.timestamp("us"), "x": pa.float32()})
ALIGNED = (0.0, 0.0, 0.0, 0.0, 0.0)
# Gedik et al. 2007: lags 0, 5 and 15 of three streams, deviations 2, 2 and 50; streams 4 and 5 are ours.
LAGGED = (0.0, 5.0, 15.0, 10.0, 2.5)
DEVIATIONS = (2.0, 2.0, 50.0, 50.0, 50.0)


@dataclass(frozen=True, slots=True)
class Streams:
    """Streams of one rate; `rates` are pairs of a time and the rate (of the paper) from then on.

    From the first to the last of the `drift` times, lags move from `lags` to `lags_after`.

    >>> Streams((0.0, 5.0), (2.0, 2.0), ((0.0, 100.0),), thin=4.0).rate(3.0)
    25.0
    """

    lags: tuple[float, ...]
    deviations: tuple[float, ...]
    rates: tuple[tuple[float, float], ...]
    thin: float = 1.0
    seed: int = 1
    drift: tuple[float, float] | None = None
    lags_after: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if len(self.lags) != len(self.deviations) or len(self.lags) < 2:
            raise QueryError("streams need a lag and a deviation each, and are two or more")

    @property
    def names(self) -> tuple[str, ...]:
        """s1, s2, .."""
        return tuple(f"s{i + 1}" for i in range(len(self.lags)))

    @property
    def near(self) -> float:
        """ε."""
        return self.thin

    def rate(self, time: float) -> float:
        """Rows a second that really come, at a time."""
        return [rate for start, rate in self.rates if start <= time + 1e-9][-1] / self.thin

    def between(self, start: float, end: float) -> Delta:
        """The rows of all streams in a span of time during which rates do not change."""
        return {name: self._rows(i, start, end) for i, name in enumerate(self.names)}

    def lags_at(self, times: Floats, i: int) -> Floats:
        """τ_i over time."""
        if self.drift is None:
            return np.full(len(times), self.lags[i])
        return np.interp(times, self.drift, (self.lags[i], self.lags_after[i]))

    def join(self, on: str | None = None) -> LocalJoin:
        """The join as asked; unless told otherwise, in a way that no index helps with.

        Ages are cut exactly whatever the slices, so few of them (of 2 s each) only save time.
        """
        asked = weir.join(
            streams=dict.fromkeys(self.names, SCHEMA),
            on=on or self.on,
            within=f"{WINDOW:g} seconds",
            basic="8 seconds",
            select="true AS found",
            plan=self.plan,
        )
        assert isinstance(asked, LocalJoin)
        return asked

    @property
    def on(self) -> str:
        """|x_i - x_j| <= ε of all pairs, squared: a nested loop, as in the paper."""
        return " AND ".join(
            f"({left}.x - {right}.x) * ({left}.x - {right}.x) <= {self.near**2:g}"
            for left, right in combinations(self.names, 2)
        )

    @property
    def plan(self) -> Join:
        """An mjoin. Any two streams have the same selectivity, so any order is low selectivity first."""
        count = len(self.names)
        orders = tuple(tuple(j for j in range(count) if j != i) for i in range(count))
        return Join(tuple(map(Leaf, self.names)), orders)

    def _rows(self, i: int, start: float, end: float) -> pa.Table:
        rate = self.rate(start)
        first, last = (int(np.ceil(rate * time - 1e-9)) for time in (start, end))
        rng = np.random.default_rng([self.seed, i, round(1000 * start)])
        # One row in each of as many equal parts of the span, anywhere in it.
        count = max(last - first, 0)
        times = start + (np.arange(count) + rng.random(count)) / max(count, 1) * (end - start)
        values = DOMAIN / PERIOD * (times + self.lags_at(times, i))
        values = (values + self.deviations[i] * rng.normal(size=len(times))) % DOMAIN
        stamps = pa.array((times * 1e6).astype(np.int64)).cast(pa.timestamp("us"))
        return pa.Table.from_arrays([stamps, pa.array(values.astype(np.float32))], schema=SCHEMA)
