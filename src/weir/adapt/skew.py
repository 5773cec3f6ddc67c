"""Skew: detect that one partition has so much of the work that sharing the work evenly would be faster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weir.stats.hop import Hop, HopStats
from weir.stats.unit_costs import TYPICAL

# Weight of a batch relative to the next one; small, so that the rate follows the last few batches.
_DECAY = 0.5
# Probing slices of other partitions takes this many times as long as probing one's own.
_SHARING_FACTOR = 1.2
# Seconds that the second Spark job of a shared batch takes, however little it has to do.
SECOND_JOB_SECONDS = 0.3
# Change the spread only after this many skewed batches in a row, so that single batches do not trigger it.
_SKEWED_BATCHES = 3


@dataclass(frozen=True, slots=True)
class SkewMonitor:
    """Faded sums of stored rows and of event time (µs), and the number of skewed batches in a row."""

    rows: float = 0.0
    micros: float = 0.0
    skewed_batches: int = 0

    def after(self, rows: int, micros: int, uneven: bool) -> SkewMonitor:
        """Add a batch."""
        skewed_batches = self.skewed_batches + 1 if uneven else 0
        return SkewMonitor(_DECAY * self.rows + rows, _DECAY * self.micros + micros, skewed_batches)

    @property
    def rate(self) -> float:
        """Rows per µs; zero while unknown."""
        return self.rows / self.micros if self.micros > 0 else 0.0

    @property
    def is_skewed(self) -> bool:
        """True if the work has been skewed for enough batches to act on it."""
        return self.skewed_batches >= _SKEWED_BATCHES


def estimate_work(rows: int, per_hop: Mapping[Hop, HopStats]) -> float:
    """Estimate the seconds of a partition's batch from its counts, with typical unit costs."""
    hops = per_hop.values()
    probes, comparisons = sum(hop.probes for hop in hops), sum(hop.comparisons for hop in hops)
    return TYPICAL.insert * rows + TYPICAL.probe * probes + TYPICAL.compare * comparisons


def is_uneven(seconds: Sequence[float], partitions: int, cores: int, extra: float) -> bool:
    """True if sharing the work of all partitions evenly is faster than waiting for the slowest.

    `extra` is the fixed cost of sharing in seconds.

    >>> is_uneven([8.0, 1.0, 1.0, 1.0], partitions=4, cores=4, extra=0.3)
    True
    >>> is_uneven([8.0, 1.0, 1.0, 1.0], partitions=4, cores=1, extra=0.3)
    False
    """
    total = sum(seconds)
    seconds_by_key = max(max(seconds, default=0.0), total / cores)
    seconds_shared = _SHARING_FACTOR * total / min(partitions, cores) + extra
    return seconds_shared < seconds_by_key
