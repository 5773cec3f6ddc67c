"""Batch reports by hand: what a controller would be shown of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weir.adapt.batch_report import BatchReport
from weir.kernel.decision import Decision
from weir.plan.tree import Join
from weir.shed.allowance import Allowance
from weir.stats.batch_counts import BatchCounts
from weir.stats.hop import Hop, HopStats
from weir.stats.lag_histogram import LagHistograms


def report(
    plan: Join,
    allowance: Allowance | None,
    per_hop: Mapping[Hop, HopStats],
    results: int = 0,
    lags: LagHistograms | None = None,
    oldest: int | None = None,
    **fields: Any,
) -> BatchReport:
    decision = Decision(plan, "auto", allowance=allowance)
    counts = BatchCounts(hops=per_hop, results=results, lags=lags, oldest=oldest)
    return BatchReport(batch=0, decision=decision, counts=counts, **fields)
