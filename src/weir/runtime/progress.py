"""Describe a batch as `lastProgress["weir"]` shows it, with the same keys and types on every engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weir.adapt.batch_report import BatchReport
from weir.adapt.describe_decision import describe_decision
from weir.adapt.recall import RecallEstimate
from weir.adapt.statistics import Statistics
from weir.codec import to_json
from weir.plan.tree import Join
from weir.runtime.commit import FinishedBatch
from weir.runtime.manifest import Manifest
from weir.runtime.partition_batch import TaskReport
from weir.runtime.watermark import Holder
from weir.stats.batch_counts import StateSize, count_steps
from weir.stats.hop import HopStats

_PLACEMENT_KEYS = {"spread": "spread", "partitions": "partitions", "relocated": "relocate"}
# The counts of a hop that are shown by another name.
_HOP_KEYS = {"sampled_matches": "sampledMatches", "visited": "slicesVisited", "unvisited": "slicesNotVisited"}


def describe_batch(
    report: BatchReport,
    batch: FinishedBatch,
    after: Manifest,
    holder: Holder | None,
    seconds: Mapping[str, float],
) -> dict[str, Any]:
    """The progress of a committed batch; `json.dumps` takes it.

    What was put out, skipped and done is None if the sink did not read all results. `seconds` are those of
    the batch's phases; under "task" stand the CPU seconds of its slowest task, phase by phase.
    """
    tasks, counts, building = batch.tasks, report.counts, report.counts.migration_hops.values()
    placed, phases = after.placement, sorted({phase for task in tasks for phase in task.seconds})
    parked = after.parked_rows
    states = {**dict.fromkeys(report.evicted, StateSize(0, 0, 0)), **report.state}
    windows_recall = report.windows_recall
    building_seconds = sum((hop.seconds for hop in building), 0.0)

    def known(value: Any) -> Any:
        return value if report.is_complete else None

    return {
        "numOutputRows": known(counts.results),
        "numRowsStale": known(counts.stale),
        "numRowsQuarantined": known(counts.quarantined),
        "numRowsShed": known(report.shed),
        "numRowsCapped": known(counts.capped),
        "estimatedRecall": known(report.recall),
        "estimatedRecallInterval": known(_describe_interval(report.batch_recall)),
        "estimatedRecallOfWindows": windows_recall and windows_recall.value,
        "estimatedRecallOfWindowsInterval": _describe_interval(windows_recall),
        "oldestAge": known(counts.oldest),
        "watermark": report.watermark,
        "watermarkHeldBy": holder and {"stream": holder.stream, "since": holder.since},
        "idle": list(batch.idle),
        "newest": dict(report.reached),
        "plan": str(report.plan),
        "decision": {**describe_decision(report.decision), "building": dict(report.building)},
        "driverOrder": None if report.order is None else list(report.order),
        "placement": placed and {key: getattr(placed, name) for key, name in _PLACEMENT_KEYS.items()},
        "statistics": _describe_statistics(after.statistics, report.plan),
        "streams": {
            name: {
                "numInputRows": rows,
                "numRowsDroppedByWatermark": counts.late.get(name, 0),
                "numRowsNullTime": counts.null_time.get(name, 0),
                "numRowsAhead": counts.ahead.get(name, 0),
                "numRowsShed": counts.dropped.get(name, 0),
            }
            for name, rows in counts.rows_in.items()
        },
        "state": {
            node: {
                "numRowsTotal": size.rows,
                "memoryUsedBytes": size.bytes,
                "numSlices": size.slices,
                "numRowsShed": report.evicted.get(node, 0),
                "numRowsParked": parked.get(node, 0),
            }
            for node, size in sorted(states.items())
        },
        "partitions": _describe_partitions(after, tasks),
        "hops": known({str(hop): _describe_hop(hop_stats) for hop, hop_stats in counts.hops.items()}),
        "building": known({"steps": count_steps(building), "seconds": building_seconds}),
        "lags": known(None if counts.lags is None else to_json(counts.lags)),
        "seconds": {
            **{phase: spent for phase, spent in seconds.items() if phase != "consumer"},
            "task": {phase: max(task.seconds.get(phase, 0.0) for task in tasks) for phase in phases},
        },
    }


def _describe_interval(recall: RecallEstimate | None) -> list[float] | None:
    return None if recall is None else [recall.low, recall.high]


def _describe_partitions(after: Manifest, tasks: Sequence[TaskReport]) -> dict[str, dict[str, int]]:
    rows_in = {task.partition: sum(task.counts.rows_in.values()) for task in tasks}
    slices = {
        number: [entry for entry in part.slices if not entry.parked] for number, part in after.parts.items()
    }
    return {
        str(number): {
            "numInputRows": rows_in.get(number, 0),
            "numRowsTotal": sum(entry.rows for entry in slices.get(number, ())),
            "memoryUsedBytes": sum(entry.bytes for entry in slices.get(number, ())),
        }
        for number in sorted({*slices, *rows_in})
    }


def _describe_hop(hop: HopStats) -> dict[str, float]:
    return {_HOP_KEYS.get(name, name): getattr(hop, name) for name in HopStats.__slots__}


def _describe_statistics(known: Statistics, plan: Join) -> dict[str, Any] | None:
    """What is known of the streams and of what batches take; None if the query does not learn."""
    if not known.batches:
        return None
    shown = ("batches", "rates", "work", "seconds", "span", "oldest")
    return {
        **{name: getattr(known, name) for name in shown},
        "selectivities": {str(hop): share for hop, share in known.selectivities(plan).items()},
        "watermarkDelay": known.watermark_delay,
        "fixed": known.fixed.value,
    }
