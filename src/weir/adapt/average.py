"""Windowed averages: earlier batches fade out, and a jump to another level shows within two batches.

Lag histograms fade likewise, and are replaced once the lags have drifted by the Kolmogorov–Smirnov test.

batches    100  100  100  500  520
average    100  100  100  236  520      the second batch that far above confirms the jump
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from weir.stats.lag_histogram import LagHistograms

# Weight of a batch relative to the next one; an average covers about 1 / (1 - 0.8) = 5 batches.
DECAY = 0.8
# A batch counts as a jump if it is this many times above or below the average ...
_JUMP_FACTOR = 1.5
# ... and, for counts, off by this many standard deviations of a Poisson count, so that chance is ruled out.
_JUMP_DEVIATIONS = 4.0
# Forget the earlier histograms if the new ones differ from them by more than this share of the results.
_REPLACING_SHARE = 0.25
# Critical value of the two-sample Kolmogorov–Smirnov statistic, times sqrt(1/n + 1/m): exceeded by chance
# once in a thousand tests.
_CRITICAL_VALUE = 1.95
# With fewer independent results than this in either histogram, the test says nothing.
_FEWEST_RESULTS = 10


@dataclass(frozen=True, slots=True)
class Average:
    """A faded sum and the exposure it was counted over, such as rows and event seconds.

    `last_jump` is the direction in which the last batch jumped: 1 up, -1 down, 0 not at all.

    >>> Average().after(10, 2).after(10, 2).value
    5.0
    """

    total: float = 0.0
    exposure: float = 0.0
    last_jump: int = 0

    @property
    def value(self) -> float | None:
        """The average; None without any exposure."""
        return self.total / self.exposure if self.exposure > 0 else None

    def after(
        self, total: float, exposure: float, is_count: bool = True, is_confirmed: bool = False
    ) -> Average:
        """Add a batch.

        Counts vary by chance, seconds and bytes (`is_count=False`) do not. A jump replaces the average once a
        second batch jumps in the same direction, or at once if other evidence `is_confirmed`.
        """
        if exposure <= 0:
            return self
        jump = self.detect_jump(total, exposure, is_count)
        if jump and (is_confirmed or jump == self.last_jump):
            return Average(total, exposure, jump)
        return Average(DECAY * self.total + total, DECAY * self.exposure + exposure, jump)

    def fade(self) -> Average:
        """Reduce the weight, but to no less than a single count, after a batch without evidence."""
        kept = max(DECAY, 1 / self.total) if self.total > 1 else 1.0
        return Average(kept * self.total, kept * self.exposure, self.last_jump)

    def detect_jump(self, total: float, exposure: float, is_count: bool = True) -> int:
        """Return 1 if a batch lies far above the average, -1 if far below, else 0."""
        if self.value is None or exposure <= 0:
            return 0
        expected = self.value * exposure
        if expected / _JUMP_FACTOR <= total <= expected * _JUMP_FACTOR:
            return 0
        if is_count and abs(total - expected) <= _JUMP_DEVIATIONS * math.sqrt(max(total, expected)):
            return 0
        return 1 if total > expected else -1


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
    sums = [[sum(lags.counts) for lags in histograms.lags.values()] for histograms in (before, after)]
    counts = [max(rows, default=0.0) / results_each for rows in sums]
    if min(counts) < _FEWEST_RESULTS:
        return False
    distance = max(
        float(np.abs(np.cumsum(before.lags[name].shares) - np.cumsum(after.lags[name].shares)).max())
        for name in before.lags.keys() & after.lags.keys()
    )
    return distance > max(change, _CRITICAL_VALUE * math.sqrt(sum(1 / count for count in counts)))
