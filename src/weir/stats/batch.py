"""What one micro-batch did, half-way join by half-way join."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weir.stats.lag_histogram import LagHistograms


@dataclass(frozen=True, slots=True, order=True)
class Hop:
    """One half-way join: rows of `driver` on their way through `node` probe the state of `partner`."""

    driver: str
    node: str
    partner: str

    def __str__(self) -> str:
        return f"{self.driver} ⋉ {self.partner} in {self.node}"


@dataclass(frozen=True, slots=True)
class HopStats:
    """The work of one hop in one batch.

    `comparisons` are the candidates the index left over, `matches` those that passed; `matches_by_slice`
    names each slice that was visited by (basic window, batch) and says how many matches it gave. `skipped`
    are the rows that reached the hop and did not probe; `narrowed` those that did, but did not look at all
    ages, and `unvisited` the slices that were left out for that, run by run. `sampled` are the probes by
    rows that an allowance samples, and `sampled_matches` what they found; both are parts of `probes` and
    `matches`.
    """

    probes: int = 0
    comparisons: int = 0
    matches: int = 0
    seconds: float = 0.0
    matches_by_slice: Mapping[tuple[int, int], int] = field(default_factory=dict)
    skipped: int = 0
    sampled: int = 0
    sampled_matches: int = 0
    narrowed: int = 0
    unvisited: int = 0


@dataclass(frozen=True, slots=True)
class StateSize:
    """How much one state holds."""

    rows: int
    bytes: int
    slices: int


@dataclass(frozen=True, slots=True)
class BatchStats:
    """What came in, what was dropped, what each hop did, and what is kept.

    `estimated_recall` is emitted / exact over the last batches; None if it is not known. `lags` tells how far
    apart in time the rows of sampled results lie; None if there is no sample. `order` are the streams as
    their first rows went; `produced` tells of each chunk of results when it was there, in seconds since the
    batch began, and how many rows it has. `building` tells of each state that another plan needs how much of
    it is there, and `per_hop_beside` what that took. `oldest` is the age of the oldest row in a result (µs),
    where a freshness is asked for; `let_go` are rows of states given up so that the others fit into memory.
    `deciding` are the seconds of learning from the batch before and of deciding about this one.
    """

    batch: int
    rows_in: Mapping[str, int]
    late: Mapping[str, int]
    null_time: Mapping[str, int]
    dropped: Mapping[str, int]
    results: int
    stale: int
    per_hop: Mapping[Hop, HopStats]
    state: Mapping[str, StateSize]
    watermark: int | None
    seconds: float
    estimated_recall: float | None = None
    order: tuple[str, ...] = ()
    produced: tuple[tuple[float, int], ...] = ()
    lags: LagHistograms | None = None
    per_hop_beside: Mapping[Hop, HopStats] = field(default_factory=dict)
    building: Mapping[str, float] = field(default_factory=dict)
    oldest: int | None = None
    let_go: Mapping[str, int] = field(default_factory=dict)
    deciding: float = 0.0

    @property
    def shed(self) -> int:
        """How many rows were dropped, did not probe where they had come to, or were let go for memory."""
        skipped = sum(found.skipped for found in self.per_hop.values())
        return sum(self.dropped.values()) + skipped + sum(self.let_go.values())
