"""The rows of a data set, and what table 2 says of them, counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from weir.order.policies import PendingRows
from weir.plan.tree import hops
from weir.stats.hop import Hop
from weir_lab.driver.arrivals import Int64s, draw_times
from weir_lab.driver.settings import DataSet


@dataclass(frozen=True)
class Streams:
    """Keys and arrival times of every stream, oldest first; keys below `data_set.shared` are shared."""

    data_set: DataSet
    keys: Mapping[str, Int64s]
    times: Mapping[str, Int64s]

    def cuts(self, batches: int) -> dict[str, Int64s]:
        """Where each batch begins in each stream, and at last where the stream ends."""
        edges = np.linspace(0, self.data_set.span, batches + 1)
        return {name: np.searchsorted(stamps, edges) for name, stamps in self.times.items()}

    def waiting(self, cuts: Mapping[str, Int64s], batch: int, known: Known) -> PendingRows:
        """A batch as the policies see it."""
        return PendingRows(
            self.data_set.plan,
            {name: int(at[batch + 1] - at[batch]) for name, at in cuts.items()},
            {name: int(at[batch]) for name, at in cuts.items()},
            known.selectivities,
            known.gains,
        )


@dataclass(frozen=True, slots=True)
class Known:
    """What the paper takes for known: the selectivity of every hop, and results for each row of a stream."""

    selectivities: Mapping[Hop, float]
    gains: Mapping[str, float]


def generate(data_set: DataSet, seed: int) -> Streams:
    """Draw the streams; the number of rows of each key is exact, when they come is random."""
    rng = np.random.default_rng([seed, len(data_set.rows), data_set.shared])
    keys: dict[str, Int64s] = {}
    moments: dict[str, Int64s] = {}
    alone = data_set.shared
    for name, per_key, rows, arrivals in zip(
        data_set.streams, data_set.per_key, data_set.rows, data_set.arrivals, strict=True
    ):
        shared = np.repeat(np.arange(data_set.shared), per_key)
        others = np.arange(alone, alone + rows - len(shared))
        alone += len(others)
        keys[name] = rng.permutation(np.concatenate([shared, others]))
        moments[name] = draw_times(arrivals, rows, data_set.span, rng)
    return Streams(data_set, keys, moments)


def count_statistics(streams: Streams) -> Known:
    """Counted from the keys of whole streams."""
    names = streams.data_set.streams
    sizes = {name: len(streams.keys[name]) for name in names}
    whole = count_results(streams, names)
    return Known(
        {hop: _at(streams, hop) for hop in hops(streams.data_set.plan)},
        {name: whole / sizes[name] for name in names},
    )


def count_results(streams: Streams, names: tuple[str, ...]) -> int:
    """How many rows the join of some of the streams has."""
    size = 1 + max(int(streams.keys[name].max()) for name in names)
    counts = [np.bincount(streams.keys[name], minlength=size) for name in names]
    return int(np.prod(counts, axis=0).sum())


def selectivity(streams: Streams, left: tuple[str, ...], right: str) -> float:
    """Selectivity of joining `left` with a stream (Valsomatzis and Gounaris 2013, table 1)."""
    return count_results(streams, (*left, right)) / (count_results(streams, left) * len(streams.keys[right]))


def whole_selectivity(streams: Streams) -> float:
    """σ_Mjoin: the results over the product of all streams."""
    names = streams.data_set.streams
    return count_results(streams, names) / prod(len(streams.keys[name]) for name in names)


def _at(streams: Streams, hop: Hop) -> float:
    names = streams.data_set.streams
    before = [name for name in names if name != hop.driver]
    left = (hop.driver, *before[: before.index(hop.partner)])
    return selectivity(streams, left, hop.partner)
