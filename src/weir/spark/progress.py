"""What a batch did, as `lastProgress["weir"]` shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weir.adapt.describe_decision import describe_decision
from weir.adapt.statistics import Statistics
from weir.kernel.decision import Decision
from weir.kernel.plan_migration import answering
from weir.plan.tree import Join
from weir.spark.ledger import Manifest
from weir.spark.report import ProbeCounts, TaskReport
from weir.stats.batch import StateSize


@dataclass(frozen=True)
class Progress:
    """One batch; what was put out, skipped and done is None if the sink did not read all results."""

    batch: int
    section: Mapping[str, Any]

    @staticmethod
    def of(
        batch: int,
        decision: Decision,
        answered: Decision | None,
        after: Manifest,
        reports: Sequence[TaskReport],
        counts: ProbeCounts | None,
        let_go: Mapping[str, int],
        seconds: Mapping[str, float],
    ) -> Progress:
        """The progress of a committed batch.

        Where partitions went by different plans, an earlier one is shown until the last has gone over.
        `let_go` are the rows of each state that went for lack of memory.
        """
        said = answered or answering(decision, _earlier(after, decision))
        sizes = after.sizes()
        section = {
            "numOutputRows": None if counts is None else counts.results,
            "numRowsStale": None if counts is None else counts.stale,
            "numRowsShed": None if counts is None else counts.shed + _dropped(reports) + sum(let_go.values()),
            "estimatedRecall": None if counts is None else after.recall.estimate(said.plan),
            "oldestAge": None if counts is None else counts.oldest,
            "watermark": after.watermark,
            "newest": dict(after.newest),
            "plan": str(said.plan),
            "decision": {**describe_decision(said), "building": _building(after, decision)},
            "placement": _placement(after),
            "statistics": _statistics(after.statistics, decision.plan),
            "streams": _streams(reports),
            "state": {
                node: {
                    "numRowsTotal": size.rows,
                    "memoryUsedBytes": size.bytes,
                    "numSlices": size.slices,
                    "numRowsShed": let_go.get(node, 0),
                }
                for node in sorted({*sizes, *let_go})
                for size in [sizes.get(node, StateSize(0, 0, 0))]
            },
            "partitions": _partitions(after, reports),
            "hops": None if counts is None else counts.hops,
            "building": None if counts is None else _spent(counts),
            "lags": None if counts is None or counts.lags is None else counts.lags.to_json(),
            "seconds": {**seconds, "task": _longest(reports)},
        }
        return Progress(batch, section)


def _earlier(after: Manifest, decision: Decision) -> Join:
    plans = [part.standing.plan for part in after.parts.values() if part.standing is not None]
    return next((plan for plan in plans if plan != decision.plan), decision.plan)


def _building(after: Manifest, decision: Decision) -> dict[str, float]:
    """How much is there of each state that the plan decided needs, where there is least."""
    shares: dict[str, float] = {}
    for part in after.parts.values():
        found = {} if part.standing is None else part.standing.shares(decision.plan)
        shares |= {node: min(share, shares.get(node, 1.0)) for node, share in found.items()}
    return shares


def _spent(counts: ProbeCounts) -> dict[str, float]:
    steps, seconds = counts.building
    return {"steps": steps, "seconds": seconds}


def _statistics(known: Statistics, plan: Join) -> dict[str, Any] | None:
    """What is known of the streams and of what batches take; None if nobody asked for it."""
    if not known.batches:
        return None
    return {
        "batches": known.batches,
        "rates": known.rates,
        "selectivities": {str(hop): share for hop, share in known.selectivities(plan).items()},
        "scale": known.scale,
        "fixed": known.fixed.value,
        "work": known.work,
        "seconds": known.seconds,
        "span": known.span,
        "lag": known.lag,
        "oldest": known.oldest,
    }


def _placement(after: Manifest) -> dict[str, Any] | None:
    if after.placement is None:
        return None
    found = after.placement
    return {"spread": found.spread, "partitions": found.partitions, "relocated": found.relocate}


def _partitions(after: Manifest, reports: Sequence[TaskReport]) -> dict[str, dict[str, int]]:
    rows_in = {report.partition: sum(report.rows_in.values()) for report in reports}
    slices = {number: part.slices for number, part in after.parts.items()}
    return {
        str(number): {
            "numInputRows": rows_in.get(number, 0),
            "numRowsTotal": sum(entry.rows for entry in slices.get(number, ())),
            "memoryUsedBytes": sum(entry.bytes for entry in slices.get(number, ())),
        }
        for number in sorted({*slices, *rows_in})
    }


def _dropped(reports: Sequence[TaskReport]) -> int:
    return sum(sum(report.dropped.values()) for report in reports)


def _streams(reports: Sequence[TaskReport]) -> dict[str, dict[str, int]]:
    rows, late, null, shed = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for report in reports:
        rows.update(report.rows_in)
        late.update(report.late)
        null.update(report.null_time)
        shed.update(report.dropped)
    return {
        name: {
            "numInputRows": rows[name],
            "numRowsDroppedByWatermark": late[name],
            "numRowsNullTime": null[name],
            "numRowsShed": shed[name],
        }
        for name in rows
    }


def _longest(reports: Sequence[TaskReport]) -> dict[str, float]:
    """Seconds per phase of the slowest task."""
    phases = {phase for report in reports for phase in report.seconds}
    return {phase: max(report.seconds.get(phase, 0.0) for report in reports) for phase in sorted(phases)}
