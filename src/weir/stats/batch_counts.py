"""What was counted during one micro-batch: in one partition, or summed over all of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from weir.stats.hop import Hop, HopStats
from weir.stats.lag_histogram import LagHistograms
from weir.stats.weight_sums import WeightSums

Rows = dict[str, int]
K = TypeVar("K")
V = TypeVar("V", int, HopStats, WeightSums)


@dataclass(frozen=True, slots=True)
class StateSize:
    """How much one state holds."""

    rows: int
    bytes: int
    slices: int


@dataclass(slots=True)
class BatchCounts:
    """Rows in and out and the work of each hop, counted while a batch runs; those of partitions are added up.

    - Of each stream: `rows_in`, and of these the rows that are `late`, of `null_time`, `ahead` of all clocks,
      or `dropped` by an allowance. `order` is the order in which the streams went.
    - Of the join: `results`; `stale` ones that were held back; rows that were `quarantined`; the work of the
      plan's `hops`, and that of `migration_hops` on states for the next plan.
    - `weights`: those of the results, by driver, which tell how many results are missing.
    - `lags`: those of sampled results. `oldest`: the age of the oldest row in a result (µs), where a
      freshness is asked for.
    """

    rows_in: Rows = field(default_factory=dict)
    late: Rows = field(default_factory=dict)
    null_time: Rows = field(default_factory=dict)
    ahead: Rows = field(default_factory=dict)
    dropped: Rows = field(default_factory=dict)
    order: tuple[str, ...] = ()
    results: int = 0
    stale: int = 0
    quarantined: int = 0
    hops: dict[Hop, HopStats] = field(default_factory=lambda: defaultdict(HopStats))
    migration_hops: dict[Hop, HopStats] = field(default_factory=lambda: defaultdict(HopStats))
    weights: dict[str, WeightSums] = field(default_factory=dict)
    lags: LagHistograms | None = None
    oldest: int | None = None

    @property
    def shed(self) -> int:
        """Rows that were dropped, or did not probe at a hop that they had reached."""
        return sum(self.dropped.values()) + sum(hop.skipped for hop in self.hops.values()) + self.capped

    @property
    def capped(self) -> int:
        """Rows of streams and of states that did not probe because the work cap was reached."""
        return sum(hop.capped for hop in (*self.hops.values(), *self.migration_hops.values()))

    @property
    def rows_admitted(self) -> dict[str, int]:
        """The rows of each stream that were neither late nor ahead nor without a time nor dropped."""
        lost = Counter(self.late) + Counter(self.null_time) + Counter(self.ahead) + Counter(self.dropped)
        return {name: rows - lost[name] for name, rows in self.rows_in.items()}

    @property
    def arrived(self) -> frozenset[str]:
        """The streams that brought a row with a usable time: late ones tell the time as well."""
        unusable = Counter(self.null_time) + Counter(self.ahead)
        return frozenset(name for name, rows in self.rows_in.items() if rows > unusable[name])

    @property
    def steps(self) -> int:
        """The steps of all hops, also of those that build states for the next plan."""
        return count_steps((*self.hops.values(), *self.migration_hops.values()))

    @property
    def hop_seconds(self) -> float:
        """The CPU seconds of the plan's own hops."""
        return sum(hop.seconds for hop in self.hops.values())

    def __add__(self, other: BatchCounts) -> BatchCounts:
        ours, theirs = self.lags, other.lags
        return BatchCounts(
            rows_in=_add_by_key(self.rows_in, other.rows_in, 0),
            late=_add_by_key(self.late, other.late, 0),
            null_time=_add_by_key(self.null_time, other.null_time, 0),
            ahead=_add_by_key(self.ahead, other.ahead, 0),
            dropped=_add_by_key(self.dropped, other.dropped, 0),
            order=self.order or other.order,
            results=self.results + other.results,
            stale=self.stale + other.stale,
            quarantined=self.quarantined + other.quarantined,
            hops=_add_by_key(self.hops, other.hops, HopStats()),
            migration_hops=_add_by_key(self.migration_hops, other.migration_hops, HopStats()),
            weights=_add_by_key(self.weights, other.weights, WeightSums()),
            lags=ours.decay_and_add(theirs, kept=1.0) if ours and theirs else ours or theirs,
            oldest=max((age for age in (self.oldest, other.oldest) if age is not None), default=None),
        )


def count_steps(hops: Iterable[HopStats]) -> int:
    """The steps that hops took: probes, comparisons and matches."""
    return sum(hop.probes + hop.comparisons + hop.matches for hop in hops)


def _add_by_key(ours: Mapping[K, V], theirs: Mapping[K, V], zero: V) -> dict[K, V]:
    return {key: ours.get(key, zero) + theirs.get(key, zero) for key in (*ours, *theirs)}
