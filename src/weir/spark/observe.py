"""What a batch on Spark showed, from what its tasks told and from the manifests around it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weir.adapt.observed import Observed
from weir.adapt.slice_summary import SliceSummary, live_summaries
from weir.kernel.decision import Decision
from weir.spark.emit import summed
from weir.spark.ledger import Manifest
from weir.spark.report import ProbeCounts, TaskReport

# The phases of a task that do less if less is probed.
_JOINING = ("build", "probe")


@dataclass(frozen=True, slots=True)
class Run:
    """What a batch began with, cores, and the seconds between triggers."""

    held: Sequence[SliceSummary]
    cores: int
    interval: float | None


def observed(
    run: Run,
    decision: Decision,
    before: Manifest,
    after: Manifest,
    reports: Sequence[TaskReport],
    told: Mapping[int, ProbeCounts],
    seconds: float,
) -> Observed:
    """What is to be learned from a batch whose counts are all known."""
    counts = summed(told)
    works = join_seconds(reports, told)
    order = decision.driver_order
    return Observed(
        plan=decision.plan,
        allowance=decision.allowance,
        rows=_entered(after.batch, reports),
        newest=before.newest,
        reached=after.newest,
        per_hop=counts.per_hop(decision.plan),
        held=live_summaries(run.held, max(before.newest.values(), default=None)),
        # Making another plan ready is neither work of this one nor done in every batch.
        seconds=seconds - max((report.seconds.get("migrate", 0.0) for report in reports), default=0.0),
        # More partitions than cores take turns.
        work=max(max(works, default=0.0), sum(works) / run.cores),
        order=None if isinstance(order, str) else order,
        watermark=after.watermark,
        state=after.sizes(),
        results=counts.results,
        lags=counts.lags,
        oldest=counts.oldest,
        recall=after.recall.estimate(decision.plan),
        interval=run.interval,
    )


def join_seconds(reports: Sequence[TaskReport], told: Mapping[int, ProbeCounts]) -> list[float]:
    """The seconds of each partition's join: of its task, and of what it probed in a job of its own.

    Reading, merging and writing state take what they take, whatever is skipped.
    """
    seconds: dict[int, float] = defaultdict(float)
    for report in reports:
        joining = sum(report.seconds.get(phase, 0.0) for phase in _JOINING)
        seconds[report.partition] += joining - _hop_seconds(report.counts)
    for number, counts in told.items():
        seconds[number] += _hop_seconds(counts)
    return list(seconds.values())


def _hop_seconds(counts: ProbeCounts) -> float:
    return sum(hop["seconds"] for hop in counts.hops.values())


def _entered(batch: int, reports: Sequence[TaskReport]) -> dict[str, int]:
    """The rows of each stream that went into the join, once each."""
    stored, read = Counter[str](), Counter[str]()
    for report in reports:
        for entry in report.part.slices:
            if entry.batch == batch:
                stored[entry.node] += entry.rows
        read.update(report.entered)
    # Filters make the first less than the second, and copies for segments of time more.
    return {name: min(stored[name], count) for name, count in read.items()}
