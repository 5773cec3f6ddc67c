"""Detect when the lags between streams have drifted: the Kolmogorov–Smirnov test on lag histograms."""

from __future__ import annotations

import math

import numpy as np

from weir.adapt.average import DECAY
from weir.stats.lag_histogram import LagHistograms

# Forget the earlier histograms if the new ones differ from them by more than this share of the results.
_REPLACING_SHARE = 0.25
# Critical value of the two-sample Kolmogorov–Smirnov statistic, times sqrt(1/n + 1/m): exceeded by chance
# once in a thousand tests.
_CRITICAL_VALUE = 1.95
# With fewer independent results than this in either histogram, the test says nothing.
_FEWEST_RESULTS = 10


def update_lags(
    known: LagHistograms | None, batch: LagHistograms | None, results_each: float
) -> LagHistograms | None:
    """Add the lags of a batch to the known ones, or replace these if the lags have drifted."""
    if known is None or batch is None:
        return known or batch
    if lags_differ(known, batch, _REPLACING_SHARE, results_each):
        return batch
    return known.decay_and_add(batch, DECAY)


def lags_differ(before: LagHistograms, after: LagHistograms, change: float, results_each: float) -> bool:
    """True if the lag distributions of some stream differ by more than `change`, and by more than chance.

    Results of one sampled row are not independent: of `results_each` results, only one counts.
    """
    counts = _count_results(before) / results_each, _count_results(after) / results_each
    if min(counts) < _FEWEST_RESULTS:
        return False
    distance = max(
        float(np.abs(np.cumsum(before.lags[name].shares) - np.cumsum(after.lags[name].shares)).max())
        for name in before.lags.keys() & after.lags.keys()
    )
    return distance > max(change, _CRITICAL_VALUE * math.sqrt(sum(1 / count for count in counts)))


def _count_results(lags: LagHistograms) -> float:
    return max((sum(histogram.counts) for histogram in lags.lags.values()), default=0.0)
