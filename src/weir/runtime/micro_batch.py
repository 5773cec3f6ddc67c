"""Run a micro-batch on any engine: decide, build, probe, publish, commit.

    before = manifest of batch N - 1
      decide        from what is known ─▶ Decision, recorded before any work: a repeat decides the same
      build         store the batch's rows as slices, and run every join below the root
      probe         the root's hops ─▶ results; in the tasks that build, if the sink allows it
      sync_batch    what the batch wrote is on the disk
      publish       results ─▶ sink, or piece by piece to the caller
      sync_results  these, and the next manifest, are on the disk
      commit        ─▶ manifest of batch N: live slices, watermark, statistics

A batch that fails before it is committed is run again from the same manifest and gives the same results. Its
decision is the recorded one, with fewer candidates in flight from the third attempt on; in one process, where
nothing is recorded, it is made anew.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa

from weir.adapt.batch_report import BatchReport
from weir.kernel.decision import Decision
from weir.kernel.physical_plan import PhysicalPlan
from weir.kernel.plan_migration import PhysicalPlans
from weir.runtime.batch_events import notify
from weir.runtime.clock_warnings import ClockWarnings
from weir.runtime.commit import FinishedBatch, next_manifest, report_batch
from weir.runtime.decide import BatchLog, Decider, Placer
from weir.runtime.manifest import Manifest
from weir.runtime.partition_batch import Assignment, PhaseTimer, SliceStore, TaskReport, check_null_times
from weir.runtime.progress import describe_batch
from weir.runtime.watermark import find_holder

Rows = TypeVar("Rows", contravariant=True)
# Spark itself remembers the last hundred.
_KEPT_PROGRESS = 200
_Produced = list[tuple[float, int]]  # when each chunk was there, and its rows


@dataclass(frozen=True)
class Batch:
    """A micro-batch as it is decided; `is_first` since the start of the query."""

    number: int
    attempt: int
    decision: Decision
    before: Manifest
    physical: PhysicalPlan
    is_first: bool

    def assign(self, store: SliceStore) -> Assignment:
        """Collect what partitions must know of the batch."""
        before = self.before
        return Assignment(self.physical, self.decision, self.number, before.watermark, before.parts, store)


class Engine(Placer, Protocol[Rows]):
    """What differs between one process and Spark; the defaults are those of one partition."""

    interval: float | None  # the seconds between triggers; None if batches run one after the other
    parks: bool = False  # whether slices are files, so that those which nothing can join yet need no memory

    def clock(self) -> float:
        """The seconds by which batches are timed."""

    def measure_span(self, rows: Rows, before: Manifest) -> float | None:
        """The event seconds that a batch brings; None if that shows only once it has run."""
        return None

    def relocate(self, before: Manifest, decision: Decision) -> Manifest:
        """Move slices to where the decision wants them, before the batch begins."""
        return before

    def build(self, rows: Rows, batch: Batch) -> Sequence[TaskReport]:
        """Store the batch's rows and run every join below the root, in every partition that got rows.

        An engine may probe the root in the same tasks, as Spark does where workers write the results.
        """

    def emit(
        self, batch: Batch, tasks: Sequence[TaskReport]
    ) -> Generator[pa.Table, None, Sequence[TaskReport] | None]:
        """Probe the root, unless `build` did, and hand results to the sink, or to the caller in pieces.

        Returns the reports with all probes counted, or None if the sink did not read everything.
        """

    def is_skewed(self, batch: FinishedBatch) -> bool:
        """True if one partition had so much of the work that another spread would have been cheaper."""
        return False

    def whole_seconds(self, batch: int, seconds: float) -> float:
        """The seconds of a batch with what the engine does before and after it."""
        return seconds


class MicroBatches(Generic[Rows]):
    """Runs the batches of one query, one after the other."""

    def __init__(
        self, engine: Engine[Rows], log: BatchLog, decider: Decider, plans: PhysicalPlans, on_null_time: str
    ) -> None:
        self._engine, self._log, self.decider, self._plans = engine, log, decider, plans
        self._on_null_time = on_null_time
        self._warnings = ClockWarnings()
        self._is_first = True
        self.last_report: BatchReport | None = None
        self.progress: dict[int, dict[str, Any]] = {}

    def run(self, rows: Rows, number: int) -> Iterator[pa.Table]:
        """Run micro-batch `number`; running it again gives the same results."""
        timer, started = PhaseTimer(self._engine.clock), perf_counter()
        notify("vacuum", number)
        manifest = self._log.begin(number)
        timer.end("begin")
        notify("decide", number)
        batch = self._decide(manifest, number, self._engine.measure_span(rows, manifest))
        timer.end("decide")
        notify("build", number)
        tasks = self._engine.build(rows, batch)
        check_null_times(self._plans.query, [task.counts for task in tasks], self._on_null_time)
        notify("sync_batch", number)
        self._log.sync_batch(number, tasks)
        timer.end("build")
        notify("publish", number)
        produced, emitted = _Produced(), list[Sequence[TaskReport] | None]()

        def emit() -> Iterator[pa.Table]:
            emitted.append((yield from self._engine.emit(batch, tasks)))

        for chunk in emit():
            produced.append((perf_counter() - started, chunk.num_rows))
            timer.end("emit")
            yield chunk
            timer.end("consumer")
        timer.end("emit")
        probed_tasks, is_complete = emitted[0] or tasks, emitted[0] is not None
        finished = FinishedBatch(number, batch.decision, batch.before, probed_tasks, is_complete)
        report, after = self._commit(finished, batch.physical, produced, timer)
        notify("spark_commit", number)
        self.last_report = report
        streams, last_arrivals = self._plans.query.streams, after.last_arrivals
        holder = find_holder(streams, after.newest, finished.idle, last_arrivals)
        self._warnings.check_silence(holder, batch.decision.now)
        self._warnings.check_ahead(finished.counts.ahead, batch.decision.latest)
        self.progress[number] = describe_batch(report, finished, after, holder, timer.seconds)
        for old in [kept for kept in self.progress if kept <= number - _KEPT_PROGRESS]:
            del self.progress[old]
        self.decider.analyse()
        self._is_first = False

    def _decide(self, manifest: Manifest, number: int, span: float | None) -> Batch:
        decision, attempt = self.decider.decide(manifest, number, span)
        before = manifest.accept_until(decision.latest).prepare_for(decision.plan, self._plans)
        before = self._engine.relocate(before, decision)
        return Batch(number, attempt, decision, before, self._plans.of(decision.plan), self._is_first)

    def _commit(
        self, batch: FinishedBatch, physical: PhysicalPlan, produced: _Produced, timer: PhaseTimer
    ) -> tuple[BatchReport, Manifest]:
        is_skewed, max_bytes = self._engine.is_skewed(batch), self.decider.max_bytes
        after, evicted = next_manifest(batch, physical, is_skewed, max_bytes, self._engine.parks)
        report = report_batch(batch, physical, after, evicted, self._engine.cores)
        timer.end("commit")
        seconds, interval = self._seconds(batch, report.work, timer), self._engine.interval
        report = replace(report, seconds=seconds, interval=interval, produced=tuple(produced))
        after = replace(after, statistics=self.decider.observe(after.statistics, report))
        timer.end("observe")
        notify("sync_results", batch.number)
        self._log.sync_results(after)
        notify("commit", batch.number)
        self._log.commit(after)
        timer.end("commit")
        return report, after

    def _seconds(self, finished: FinishedBatch, work: float, timer: PhaseTimer) -> float:
        """Return what a batch took; for the first after a restart, its join and the usual rest of a batch."""
        spent = sum(seconds for phase, seconds in timer.seconds.items() if phase != "consumer")
        whole = self._engine.whole_seconds(finished.number, spent)
        usual = finished.before.statistics.fixed.value
        if self._is_first and usual is not None:
            # With a restart, workers start and much is done for the first time.
            return work + usual
        # Building states for another plan is neither work of this one nor done in every batch.
        return whole - max((task.seconds.get("migrate", 0.0) for task in finished.tasks), default=0.0)
