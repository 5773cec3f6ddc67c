"""What one batch showed, whichever engine ran it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weir.plan.tree import Join
from weir.shed.allowance import Allowance
from weir.stats.batch import Hop, HopStats, StateSize
from weir.stats.lag_histogram import LagHistograms


@dataclass(frozen=True, slots=True)
class Observed:
    """The decision that a batch went by, what came, what its hops did, and how long it took.

    `rows` are those that entered each stream's state: in time, and through its filters. `newest` is the
    newest event time of each stream before the batch and `reached` after it (µs). `held` are the rows that
    could still join in each state before it. `order` is the one in which streams went, None if not one for
    all. `seconds` are those of the whole batch, `work` those of the join in the slowest partition, which
    grows and shrinks with what is probed. `interval` are the seconds between triggers, None without any.
    `oldest` is the age of the oldest row in a result (µs), and `recall` the estimate after the batch.
    """

    plan: Join
    allowance: Allowance | None
    rows: Mapping[str, int]
    newest: Mapping[str, int]
    reached: Mapping[str, int]
    per_hop: Mapping[Hop, HopStats]
    held: Mapping[str, float]
    seconds: float
    work: float
    order: tuple[str, ...] | None = None
    watermark: int | None = None
    state: Mapping[str, StateSize] = field(default_factory=dict)
    results: int = 0
    lags: LagHistograms | None = None
    oldest: int | None = None
    recall: float | None = None
    interval: float | None = None

    @property
    def span(self) -> float:
        """The event seconds by which the batch went on; zero if that is not known."""
        if not self.newest or not self.reached:
            return 0.0
        return max(0, max(self.reached.values()) - max(self.newest.values())) / 1e6
