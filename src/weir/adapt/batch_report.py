"""The one record of what a micro-batch did: progress, statistics and history are all made from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weir.kernel.decision import Decision
from weir.plan.tree import Join
from weir.shed.allowance import Allowance
from weir.stats.batch_counts import BatchCounts, StateSize
from weir.stats.hop import Hop, HopStats


@dataclass(frozen=True, slots=True)
class BatchReport:
    """The decision that a batch went by, what it counted, what the state is after it, and how long it took.

    `decision` is the one for the active plan. `counts` are those of all partitions; they lack probes
    and results if `is_complete` is false, because the sink did not read all results. `is_mixed` says that
    other partitions had another active plan; `steps` are those of the hops in the busiest partition.
    `rows` entered each stream's state: they came in time and passed its filters. `newest` is the newest event
    time of each stream before the batch and `reached` after it (µs). `held` are the rows of each state that
    could still join before the batch. `order` is the one in which streams went, None if partitions differ.
    `seconds` are those of the whole batch, `work` the CPU seconds of the join in the slowest partition, which
    grow and shrink with what is probed. `interval` are the seconds between triggers, None without any.
    `recall` is the estimate after the batch. `evicted` are rows of each state given up for memory, `building`
    tells how much is there of each state that a later plan needs. `produced` tells of each chunk of results
    when it was there, in seconds since the batch began, and how many rows it has.
    """

    batch: int
    decision: Decision
    counts: BatchCounts
    rows: Mapping[str, int]
    newest: Mapping[str, int]
    reached: Mapping[str, int]
    held: Mapping[str, float]
    seconds: float
    work: float
    is_complete: bool = True
    is_mixed: bool = False
    steps: int = 0
    order: tuple[str, ...] | None = None
    watermark: int | None = None
    state: Mapping[str, StateSize] = field(default_factory=dict)
    recall: float | None = None
    interval: float | None = None
    evicted: Mapping[str, int] = field(default_factory=dict)
    building: Mapping[str, float] = field(default_factory=dict)
    produced: tuple[tuple[float, int], ...] = ()

    @property
    def plan(self) -> Join:
        """The active plan."""
        return self.decision.plan

    @property
    def allowance(self) -> Allowance | None:
        """What the hops of that plan were allowed."""
        return self.decision.allowance

    @property
    def per_hop(self) -> Mapping[Hop, HopStats]:
        """The work of each hop of that plan."""
        return self.counts.hops

    @property
    def results(self) -> int:
        """How many results were put out."""
        return self.counts.results

    @property
    def shed(self) -> int:
        """Rows that were dropped, did not probe at a hop that they had reached, or were evicted."""
        return self.counts.shed + sum(self.evicted.values())

    @property
    def span(self) -> float:
        """The event seconds by which the batch went on; zero if that is not known."""
        if not self.newest or not self.reached:
            return 0.0
        return max(0, max(self.reached.values()) - max(self.newest.values())) / 1e6
