"""The one record of what a micro-batch did: progress and statistics are made from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weir.adapt.recall import RecallEstimate
from weir.kernel.decision import Decision
from weir.plan.tree import Join
from weir.shed.allowance import Allowance
from weir.stats.batch_counts import BatchCounts, StateSize
from weir.stats.hop import Hop, HopStats


@dataclass(frozen=True, slots=True)
class BatchReport:
    """What a batch did, what the state is after it, and how long it took; times are in µs."""

    batch: int
    decision: Decision  # the one for the active plan
    counts: BatchCounts  # of all partitions; without probes and results unless `is_complete`
    rows: Mapping[str, int]  # that entered each stream's state: they came in time and passed its filters
    newest: Mapping[str, int]  # the newest event time of each stream before the batch ...
    reached: Mapping[str, int]  # ... and after it
    held: Mapping[str, float]  # the rows of each state that could still join before the batch
    seconds: float  # of the whole batch
    work: float  # CPU seconds of the slowest task, without states built for another plan
    probing: float = 0.0  # of these, the seconds in which the root is probed
    probe_cpu: float = 0.0  # CPU seconds of all hops and of putting out results, in all partitions
    is_complete: bool = True  # False if the sink did not read all results
    is_mixed: bool = False  # True if partitions had different active plans
    steps: int = 0  # of the hops in the busiest partition
    order: tuple[str, ...] | None = None  # in which the streams went; None if partitions differ
    watermark: int | None = None  # after the batch
    state: Mapping[str, StateSize] = field(default_factory=dict)  # the size of each state after the batch
    batch_recall: RecallEstimate | None = None  # of the batch; None: unknown
    windows_recall: RecallEstimate | None = None  # of the last windows
    interval: float | None = None  # seconds between triggers; None without any
    evicted: Mapping[str, int] = field(default_factory=dict)  # rows of each state given up for memory
    building: Mapping[str, float] = field(default_factory=dict)  # the built share of a later plan's states
    produced: tuple[tuple[float, int], ...] = ()  # of each chunk of results: seconds until it was there, rows

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
    def recall(self) -> float | None:
        """Emitted over exact results of the batch, estimated; None: unknown."""
        return None if self.batch_recall is None else self.batch_recall.value

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
