"""Streams with given rates and selectivities, as rows that the engine can join.

Every edge of the join graph gets a column of its own on both sides. Keys are uniform over n = ⌊1/σ⌋ values,
and one side leaves a share of 1 − nσ of its rows without a partner, so the selectivity is exactly σ: for
σ = 0.15, six values and every tenth row blank. Edges are independent of each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from weir.errors import QueryError
from weir.stats.join_graph import JoinGraph

Arrivals = Literal["regular", "poisson"]
_SECOND = 1_000_000
_BLANK = -1


@dataclass(frozen=True, slots=True)
class Workload:
    """The streams of a join graph; each delta is a pure function of the seed, the stream and its number.

    Rows of a `regular` stream come at even distances, those of a `poisson` one at random.

    >>> graph = JoinGraph.of({"a": 20, "b": 10}, 5, {("a", "b"): 0.15})
    >>> work = Workload(graph, arrivals="regular")
    >>> work.on
    'a.ab = b.ab'
    >>> {name: table.num_rows for name, table in work.delta(3, every=0.5).items()}
    {'a': 10, 'b': 5}
    """

    graph: JoinGraph
    arrivals: Arrivals = "poisson"
    seed: int = 1

    def __post_init__(self) -> None:
        if any(not self.graph.selectivities[edge] for edge in self.graph.edges):
            raise QueryError("a workload needs selectivities above zero")

    @property
    def on(self) -> str:
        """The predicate."""
        pairs = [(*sorted(edge), "".join(sorted(edge))) for edge in self.graph.edges]
        return " AND ".join(f"{left}.{key} = {right}.{key}" for left, right, key in pairs)

    @property
    def within(self) -> str:
        """The window, which is the same for all."""
        windows = {self.graph.window_seconds(name) for name in self.graph.streams}
        if len(windows) > 1:
            raise QueryError("a workload's streams have one window for all")
        return f"{round(windows.pop() * 1000)} milliseconds"

    def schema(self, stream: str) -> pa.Schema:
        """The columns of a stream: its time, and one key per edge."""
        fields = [
            ("ts", pa.timestamp("us")),
            *((self._key(edge), pa.int64()) for edge in self._edges(stream)),
        ]
        return pa.schema(fields)

    def delta(self, number: int, every: float) -> dict[str, pa.Table]:
        """The rows that arrive from `number · every` to `(number + 1) · every` seconds."""
        return {
            name: self._rows(name, np.random.default_rng([self.seed, place, number]), number, every)
            for place, name in enumerate(self.graph.streams)
        }

    def feed(self, seconds: float, every: float) -> Iterator[dict[str, pa.Table]]:
        """All deltas of the first seconds."""
        return (self.delta(number, every) for number in range(round(seconds / every)))

    def _rows(self, stream: str, rng: np.random.Generator, number: int, every: float) -> pa.Table:
        times = self._times(stream, rng, number * every, every)
        columns = [pa.array((times * _SECOND).astype(np.int64)).cast(pa.timestamp("us"))]
        columns += [pa.array(self._keys(stream, edge, rng, len(times))) for edge in self._edges(stream)]
        return pa.Table.from_arrays(columns, schema=self.schema(stream))

    def _times(
        self, stream: str, rng: np.random.Generator, start: float, every: float
    ) -> NDArray[np.float64]:
        rate = self.graph.rates[stream]
        if self.arrivals == "poisson":
            times: NDArray[np.float64] = start + every * np.sort(rng.random(rng.poisson(rate * every)))
            return times
        # Streams are a little apart, so that no two rows come at the same time.
        apart = (self.graph.streams.index(stream) + 0.5) / len(self.graph.streams)
        first, last = (int(np.ceil(rate * time - apart - 1e-9)) for time in (start, start + every))
        return (np.arange(first, last, dtype=np.float64) + apart) / rate

    def _keys(
        self, stream: str, edge: frozenset[str], rng: np.random.Generator, count: int
    ) -> NDArray[np.int64]:
        share = self.graph.selectivities[edge]
        # A hair, since 1 / 0.02 may come out below 50.
        values = int(1 / share + 1e-9)
        keys = rng.integers(values, size=count)
        if stream == min(edge):
            keys[rng.random(count) >= values * share] = _BLANK
        return keys

    def _edges(self, stream: str) -> list[frozenset[str]]:
        return [edge for edge in self.graph.edges if stream in edge]

    @staticmethod
    def _key(edge: frozenset[str]) -> str:
        return "".join(sorted(edge))
