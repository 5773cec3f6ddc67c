"""Streams with a known truth: rates, keys and lags of each stream, second by second.

A row has a time, a key `k` and a position `x`. Streams join where keys are equal; where streams have lags, a
row's position is its own time minus its stream's lag, with noise, and positions must be close as well. Keys
say nothing about ages, positions all: an index on the key leaves candidates of every age, of which only those
of some ages match, so that harvesting pays (Gedik et al. 2007).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from weir.errors import QueryError

SECOND = 1_000_000
WINDOW = 5
SCHEMA = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64(), "x": pa.float64()})
# Positions match if they are no further apart than this many seconds; the noise is that of one position.
NEAR = 1.0
_NOISE = 0.2

Delta = dict[str, pa.Table]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Shape:
    """What the streams are like for a while.

    `rates` are rows a second, by stream. Keys are 0 to `keys` - 1, of which number i is drawn in proportion
    to 1 / (i + 1)^`skew`; of the streams in `misses`, so many of each row's keys have no partner. `lags` are
    seconds, by stream.

    >>> Shape({"a": 50, "b": 50}, keys=100).faster(5).rates
    {'a': 250, 'b': 250}
    """

    rates: Mapping[str, float]
    keys: int
    skew: float = 0.0
    misses: Mapping[str, float] | None = None
    lags: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        if self.keys < 1 or any(rate < 0 for rate in self.rates.values()):
            raise QueryError("streams have one key or more, and rates of zero or more")
        if self.lags is not None and set(self.lags) != set(self.rates):
            raise QueryError("streams have lags or none has; give the lag of every stream")

    @property
    def names(self) -> tuple[str, ...]:
        """The streams."""
        return tuple(self.rates)

    def faster(self, factor: float) -> Shape:
        """The same streams at other rates."""
        return replace(self, rates={name: factor * rate for name, rate in self.rates.items()})

    def without(self, stream: str) -> Shape:
        """The same streams while one is silent."""
        return replace(self, rates={**self.rates, stream: 0.0})


def condition(names: tuple[str, ...], lagged: bool) -> str:
    """What joins the streams, as a chain.

    >>> condition(("a", "b"), lagged=True)
    'a.k = b.k AND (a.x - b.x) * (a.x - b.x) <= 1'
    """
    chain = [f"{left}.k = {right}.k" for left, right in pairwise(names)]
    if lagged:
        # A product, since no index can search for it.
        gaps = [f"({left}.x - {right}.x)" for left, right in pairwise(names)]
        chain += [f"{gap} * {gap} <= {NEAR**2:g}" for gap in gaps]
    return " AND ".join(chain)


def draw_second(shape: Shape, second: int, seed: int) -> Delta:
    """Draw the rows whose times lie within one second: a pure function of its arguments."""
    return {
        name: _draw_rows(shape, name, second, np.random.default_rng([seed, i, second]))
        for i, name in enumerate(shape.names)
    }


def _draw_rows(shape: Shape, name: str, second: int, rng: np.random.Generator) -> pa.Table:
    # Even numbers of rows: the truth should not depend on how many come by chance.
    count = round(shape.rates[name])
    times = second + np.sort(rng.random(count))
    keys = (
        rng.choice(shape.keys, count, p=_weights(shape))
        if shape.skew
        else rng.integers(shape.keys, size=count)
    )
    keys[rng.random(count) < (shape.misses or {}).get(name, 0.0)] = -1 - shape.names.index(name)
    positions = np.zeros(count)
    if shape.lags is not None:
        positions = times - shape.lags[name] + _NOISE * rng.normal(size=count)
    stamps = pa.array((times * SECOND).astype(np.int64)).cast(pa.timestamp("us"))
    return pa.Table.from_arrays([stamps, pa.array(keys), pa.array(positions)], schema=SCHEMA)


def _weights(shape: Shape) -> Floats:
    weights = np.arange(1, shape.keys + 1, dtype=np.float64) ** -shape.skew
    return np.asarray(weights / weights.sum(), np.float64)
