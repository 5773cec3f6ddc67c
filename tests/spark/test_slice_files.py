"""Slices read from files are probed like those in memory; this needs no Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from time import thread_time

import numpy as np
import pyarrow as pa
import pytest

from weir.kernel.decision import Decision
from weir.kernel.physical_plan import compile_plan
from weir.order.policies import INTERLEAVING_POLICIES, DriverPolicy
from weir.plan.tree import Join
from weir.plan.tree import join as tree
from weir.query.build import build_query
from weir.query.options import QueryOptions
from weir.runtime.partition_batch import Assignment, PartitionBatch, probe_partition
from weir.spark.slice_files import FileStore
from weir.stats.batch_counts import BatchCounts

ROW = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64()})
QUERY = build_query(
    dict.fromkeys("abc", ROW), QueryOptions(on="a.k = b.k AND b.k = c.k", within="10 seconds")
)


@pytest.mark.parametrize("plan", [tree("a", "b", "c"), tree(tree("a", "b"), "c")], ids=str)
@pytest.mark.parametrize("policy", INTERLEAVING_POLICIES)
def test_rows_keep_their_ranks_for_a_second_job(policy: DriverPolicy, plan: Join, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    tables = {name: pa.table([rng.integers(0, 99, 30), rng.integers(0, 4, 30)], ROW) for name in "abc"}
    decision = Decision(plan, policy)
    assignment = Assignment(compile_plan(QUERY, plan), decision, 0, None, {}, FileStore(str(tmp_path)))
    first = PartitionBatch(assignment, 0, tables, thread_time)
    found = pa.concat_tables(first.probe())
    counts = BatchCounts()
    second = replace(assignment, parts={0: first.report().part})
    again = pa.concat_tables(probe_partition(second, 0, counts))
    assert again.num_rows > 100
    assert again.to_pylist() == found.to_pylist()
    in_memory = first.report().counts.hops
    for hop, stats in counts.hops.items():
        assert (stats.probes, stats.matches) == (in_memory[hop].probes, in_memory[hop].matches)
