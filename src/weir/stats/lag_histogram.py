"""Lag histograms: the times between the rows of a result (Gedik et al. 2007, sections IV-B and V-B).

With A_i the difference T(t_i) - T(t_1) over results, a histogram of it per stream is enough to estimate how
likely the rows of any two streams have a given lag.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weir.errors import QueryError, unknown_name

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LagHistogram:
    """Histogram of lags in equal buckets from `low` to `high` seconds (L_i of Gedik et al. 2007).

    Lags are uniform within a bucket, and everywhere as long as none was counted.

    >>> float(LagHistogram(-1.0, 1.0, (0, 1, 2, 1)).share(0.0, 0.5))
    0.5
    """

    low: float
    high: float
    counts: tuple[float, ...]

    def __post_init__(self) -> None:
        is_range = math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high
        if not is_range or not self.counts:
            raise QueryError(
                "lags are counted in one bucket or more between two times; "
                f"got {len(self.counts)} from {self.low} to {self.high}"
            )
        if not all(math.isfinite(count) and count >= 0 for count in self.counts):
            raise QueryError(f"lags are counted in numbers of zero or more; got {self.counts}")

    def share(self, first: float | Floats, last: float | Floats) -> Floats:
        """The share of all lags between two times, in seconds."""
        edges, cumulative = self._cumulative
        return np.asarray(np.interp(last, edges, cumulative) - np.interp(first, edges, cumulative))

    @property
    def middles(self) -> Floats:
        """The middle of each bucket."""
        edges, _ = self._cumulative
        return (edges[1:] + edges[:-1]) / 2

    @property
    def shares(self) -> Floats:
        """The share of each bucket."""
        return np.diff(self._cumulative[1])

    @cached_property
    def _cumulative(self) -> tuple[Floats, Floats]:
        """The edges of the buckets, and the cumulative share of lags below each."""
        counts = np.asarray(self.counts, np.float64)
        if not counts.any():
            counts = np.ones(len(counts))
        totals = np.concatenate(([0.0], np.cumsum(counts)))
        return np.linspace(self.low, self.high, len(counts) + 1), totals / totals[-1]


@dataclass(frozen=True)
class LagHistograms:
    """The lag histogram of every stream relative to the stream `first`, whose own lag is zero."""

    first: str
    lags: Mapping[str, LagHistogram]

    def age_shares(self, driver: str, partner: str, edges: Floats) -> Floats:
        """The share of results with T(driver) - T(partner) between each two edges, in seconds."""
        begin, end = edges[:-1], edges[1:]
        if driver == self.first:
            return self._lags(partner).share(-end, -begin)  # Gedik et al. 2007, equation 2
        if partner == self.first:
            return self._lags(driver).share(begin, end)
        # Gedik et al. 2007, equation 4: the two lags are taken to be independent of each other.
        partner_lags = self._lags(partner)
        middles = partner_lags.middles[:, None]
        return partner_lags.shares @ self._lags(driver).share(begin + middles, end + middles)

    def mean_lag(self, stream: str) -> float:
        """The mean lag of a stream behind `first`, in seconds."""
        return 0.0 if stream == self.first else float(self._lags(stream).shares @ self._lags(stream).middles)

    def decay_and_add(self, seen: LagHistograms, kept: float) -> LagHistograms:
        """Decay these counts to the share `kept`, and add those of one more batch."""
        lags = {}
        for name, old in self.lags.items():
            counts = zip(old.counts, seen.lags[name].counts, strict=True)
            lags[name] = replace(old, counts=tuple(kept * before + new for before, new in counts))
        return LagHistograms(self.first, lags)

    def _lags(self, stream: str) -> LagHistogram:
        if stream not in self.lags:
            raise unknown_name("stream", stream, (self.first, *self.lags), where=" in the correlations")
        return self.lags[stream]
