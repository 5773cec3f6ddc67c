"""What the manifest after a batch says of its recall, from the reports of its partitions."""

from __future__ import annotations

import pyarrow as pa
import pytest

from weir.kernel.decision import Decision
from weir.kernel.physical_plan import compile_plan
from weir.plan.tree import join
from weir.query.build import build_query
from weir.query.options import QueryOptions
from weir.runtime.commit import FinishedBatch, next_manifest
from weir.runtime.manifest import Manifest
from weir.runtime.partition_batch import PartitionState, TaskReport
from weir.stats.batch_counts import BatchCounts
from weir.stats.hop import Hop, HopStats
from weir.stats.weight_sums import WeightSums

ROW = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64()})
QUERY = build_query(dict.fromkeys("ab", ROW), QueryOptions(on="a.k = b.k", within="10 seconds"))
PLAN = join("a", "b")


def report(partition: int, probes: int, capped: int, results: int) -> TaskReport:
    """A partition in which rows of `a` find the results."""
    hops = {Hop("a", "(a b)", "b"): HopStats(probes=probes, capped=capped)}
    counts = BatchCounts(results=results, hops=hops, weights={"a": WeightSums(results, float(results))})
    return TaskReport(partition, PartitionState(), counts, {"a": 1}, {})


def test_each_partition_is_scaled_by_the_rows_that_its_own_cap_kept_back() -> None:
    """A partition of few results probes with all rows, and one of many with a hundredth of them."""
    tasks = [report(0, 900, 0, 100), report(1, 10, 990, 500)]
    batch = FinishedBatch(0, Decision(PLAN, ("a", "b")), Manifest(), tasks, is_complete=True)
    after, _ = next_manifest(batch, compile_plan(QUERY, PLAN), False, None)
    assert after.recall.batch is not None
    assert after.recall.batch.value == pytest.approx(600 / (100 + 500 * 100))
