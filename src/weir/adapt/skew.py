"""How evenly work lies on the partitions, and at what pace rows come; old batches fade."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weir.adapt.calibrate import TYPICAL
from weir.stats.batch import Hop, HopStats

# How a batch weighs beside the next one: the rate seen lately counts.
_AGEING = 0.5
# What finding partners in other partitions takes more than finding them in one's own, and the seconds of the
# second Spark job that it needs.
_SHARING, SECOND_JOB = 1.2, 0.3
# For so many batches in a row another spread must have been cheaper.
_PATIENCE = 3


@dataclass(frozen=True, slots=True)
class SkewMonitor:
    """Rows stored and the event time (µs) they came in, and for how many batches keys were too uneven."""

    rows: float = 0.0
    micros: float = 0.0
    uneven: int = 0

    def after(self, rows: int, micros: int, uneven: bool) -> SkewMonitor:
        """With one batch more."""
        return SkewMonitor(
            _AGEING * self.rows + rows, _AGEING * self.micros + micros, self.uneven + 1 if uneven else 0
        )

    @property
    def rate(self) -> float:
        """Rows a µs; zero while nothing is known."""
        return self.rows / self.micros if self.micros > 0 else 0.0

    @property
    def is_dominated(self) -> bool:
        """True if one partition has had too much of the work for long enough to act on it."""
        return self.uneven >= _PATIENCE


def work(rows: int, per_hop: Mapping[Hop, HopStats]) -> float:
    """The seconds that a partition's batch takes on a typical machine, by what it counted."""
    hops = per_hop.values()
    probes, comparisons = sum(hop.probes for hop in hops), sum(hop.comparisons for hop in hops)
    return TYPICAL.insert * rows + TYPICAL.probe * probes + TYPICAL.compare * comparisons


def is_uneven(seconds: Sequence[float], partitions: int, cores: int, extra: float) -> bool:
    """True if sharing the work of all partitions evenly would take less time than the largest alone takes.

    `extra` is what sharing takes however little there is to do.

    >>> is_uneven([8.0, 1.0, 1.0, 1.0], partitions=4, cores=4, extra=0.3)
    True
    >>> is_uneven([8.0, 1.0, 1.0, 1.0], partitions=4, cores=1, extra=0.3)
    False
    """
    total = sum(seconds)
    by_key = max(max(seconds, default=0.0), total / cores)
    return _SHARING * total / min(partitions, cores) + extra < by_key
