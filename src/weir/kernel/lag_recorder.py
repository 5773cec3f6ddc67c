"""Record the time lags between the rows of results, for harvesting (Gedik et al. 2007, section V-B).

Sampled rows probe all ages, so their results represent all results, whatever ages the other rows probe. Where
all rows that probe find all their matches, and had the same chance to probe, all results do.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from weir.kernel.keys import Int64s
from weir.kernel.partial import Partial
from weir.kernel.physical_plan import PhysicalPlan
from weir.kernel.probe_sample import ProbeSample
from weir.kernel.state_schema import time_name
from weir.query.model import Query
from weir.query.windows import RowWindow
from weir.shed.allowance import Allowance
from weir.stats.lag_histogram import LagHistogram, LagHistograms

# Buckets over all lags that the windows allow: many more than the basic windows of a window.
_BUCKETS = 128
# Of one chunk of results, no more than this many are counted: they tell enough, and counting costs little.
_MOST_RESULTS = 1024


class LagRecorder:
    """Running histograms of T(t_i) - T(t_1) for each stream i after the first.

    `samples` holds the sample of each driver's path; None: all results represent those not found.
    """

    def __init__(self, query: Query, samples: Mapping[str, ProbeSample] | None) -> None:
        first, *others = query.names
        self._first, self._samples = first, samples
        self._ranges = {name: _lag_range(query, name) for name in others}
        self._counts: dict[str, Int64s] = {name: np.zeros(_BUCKETS, np.int64) for name in others}

    @staticmethod
    def of(physical: PhysicalPlan, allowance: Allowance | None, batch: int) -> LagRecorder | None:
        """Return a recorder for a batch; None without a sample, and for all but mjoins over time windows."""
        query, root = physical.query, physical.root
        counts_rows = any(isinstance(window, RowWindow) for window in query.windows)
        if (
            allowance is None
            or not allowance.sample
            or counts_rows
            or not set(root.inputs) <= set(query.names)
        ):
            return None
        first_hops = [path[0].hop for path in root.paths]
        if _finds_fairly(allowance, physical):
            return LagRecorder(query, None)
        return LagRecorder(
            query, {hop.driver: ProbeSample(hop, batch, allowance.sample) for hop in first_hops}
        )

    def add(self, results: Partial) -> None:
        """Count the lags of those results that represent all."""
        if self._samples is not None:
            sampled = self._samples[results.groups[0].schema.node].mark(results)
            results = results.pick(np.flatnonzero(sampled))
        elif results.rows > _MOST_RESULTS:
            results = results.pick(np.linspace(0, results.rows - 1, _MOST_RESULTS).astype(np.int64))
        first_times = results.numbers(time_name(self._first))
        for name, (low, high) in self._ranges.items():
            lags = results.numbers(time_name(name)) - first_times
            buckets = (lags - low) * _BUCKETS // (high - low)
            self._counts[name] += np.bincount(np.clip(buckets, 0, _BUCKETS - 1), minlength=_BUCKETS)

    def get(self) -> LagHistograms:
        """Return the histograms so far, in seconds."""
        lags = {
            name: LagHistogram(low / 1e6, high / 1e6, tuple(map(float, self._counts[name])))
            for name, (low, high) in self._ranges.items()
        }
        return LagHistograms(self._first, lags)


def _finds_fairly(allowance: Allowance, physical: PhysicalPlan) -> bool:
    """True if each result has the same chance: at most a share of the driver rows is chosen, all by hash."""
    first, later = set[float](), set[float]()
    for path in physical.root.paths:
        first.add(allowance.share(path[0].hop))
        later |= {allowance.share(half_join.hop) for half_join in path[1:]}
    is_even = first == {1.0} or (len(first) == 1 and allowance.choose == "hash")
    return is_even and later <= {1.0} and not allowance.ages and not allowance.drop


def _lag_range(query: Query, name: str) -> tuple[int, int]:
    """Return the least and the greatest lag of a stream that the windows allow, in microseconds."""
    upper, first, own = query.bounds.upper, 0, query.names.index(name)
    known = [abs(bound) for row in upper for bound in row if bound is not None]
    widest = max(known, default=1) + 1
    ahead, back = upper[first][own], upper[own][first]
    low, high = -widest if back is None else -back, widest if ahead is None else ahead + 1
    return (low, high) if low < high else (low, low + 1)
