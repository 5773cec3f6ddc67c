"""What a batch did, in Spark's words."""

from __future__ import annotations

from typing import Any

from weir.adapt.describe_decision import describe_decision
from weir.kernel.decision import Decision
from weir.stats.batch import BatchStats


def progress(stats: BatchStats, decision: Decision) -> dict[str, Any]:
    """One entry of `recentProgress`; names are Spark's where Spark has one."""
    return {
        "batchId": stats.batch,
        "numInputRows": sum(stats.rows_in.values()),
        "weir": {
            "numOutputRows": stats.results,
            "numRowsStale": stats.stale,
            "numRowsShed": stats.shed,
            "estimatedRecall": stats.estimated_recall,
            "watermark": stats.watermark,
            "oldestAge": stats.oldest,
            "decision": {**describe_decision(decision), "building": dict(stats.building)},
            "order": list(stats.order),
            "seconds": stats.seconds,
            "decidingSeconds": stats.deciding,
            "lags": None if stats.lags is None else stats.lags.to_json(),
            "streams": {
                name: {
                    "numInputRows": stats.rows_in[name],
                    "numRowsDroppedByWatermark": stats.late[name],
                    "numRowsNullTime": stats.null_time[name],
                    "numRowsShed": stats.dropped[name],
                }
                for name in stats.rows_in
            },
            "state": {
                name: {
                    "numRowsTotal": size.rows,
                    "memoryUsedBytes": size.bytes,
                    "numSlices": size.slices,
                    "numRowsShed": stats.let_go.get(name, 0),
                }
                for name, size in stats.state.items()
            },
            "hops": {
                str(hop): {
                    "probes": found.probes,
                    "skipped": found.skipped,
                    "comparisons": found.comparisons,
                    "matches": found.matches,
                    "seconds": found.seconds,
                    "sampled": found.sampled,
                    "sampledMatches": found.sampled_matches,
                    "narrowed": found.narrowed,
                    "slicesNotVisited": found.unvisited,
                    "matchesBySlice": {
                        f"window {window}, batch {batch}": count
                        for (window, batch), count in found.matches_by_slice.items()
                    },
                }
                for hop, found in stats.per_hop.items()
            },
        },
    }
