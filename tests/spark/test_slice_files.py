"""Slices read from files are probed like those in memory; this needs no Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from time import thread_time

import numpy as np
import pyarrow as pa
import pytest

from weir.kernel.decision import Decision
from weir.kernel.ingest import ingest
from weir.kernel.physical_plan import compile_plan
from weir.kernel.slice import merge
from weir.kernel.state import State
from weir.order.policies import INTERLEAVING_POLICIES, DriverPolicy
from weir.plan.tree import Join
from weir.plan.tree import join as tree
from weir.query.build import build_query
from weir.query.options import QueryOptions
from weir.runtime.partition_batch import Assignment, PartitionBatch, probe_partition
from weir.shed.allowance import Allowance
from weir.spark.slice_files import FileStore
from weir.stats.batch_counts import BatchCounts

ROW = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64()})
RANDOM_DROP = Allowance(drop={"a": 0.5})
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


def test_files_keep_weights_and_give_what_an_eviction_has_left(tmp_path: Path) -> None:
    plan, rng = tree("a", "b", "c"), np.random.default_rng(5)
    tables = {name: pa.table([rng.integers(0, 99, 900), rng.integers(0, 10**9, 900)], ROW) for name in "abc"}
    decision, physical = Decision(plan, "auto", allowance=RANDOM_DROP), compile_plan(QUERY, plan)
    store = FileStore(str(tmp_path))
    report = PartitionBatch(
        Assignment(physical, decision, 0, None, {}, store), 0, tables, thread_time
    ).report()
    whole = {entry.node: entry for entry in report.part.slices}
    assert {name: entry.weight for name, entry in whole.items()} == {"a": 2.0, "b": 1.0, "c": 1.0}
    assert (store.read(whole["a"], physical).row_weights() == 2.0).all()
    for entry in whole.values():
        store.retain([])
        stored, left = store.read(entry, physical), store.read(entry.thin(0.1, 0), physical)
        assert 0 < left.rows < stored.rows / 5 and left.is_rest
        assert left.row_weights().sum() == pytest.approx(entry.weight * stored.rows, rel=0.4)
        fewer = store.read(entry.thin(0.1, 0).thin(0.5, 7), physical)
        assert set(fewer.content()) < set(left.content()) < set(stored.content()), "a part of a part"
        assert fewer.row_weights()[0] == pytest.approx(2 * left.row_weights()[0])
        (kept,) = store.write(1, 0, [left])
        store.retain([])
        again = store.read(kept, physical)
        assert again.data.equals(left.data) and (again.row_weights() == left.row_weights()).all()
        assert kept.is_rest and again.is_rest and kept.rows == left.rows


@pytest.mark.parametrize("watermark", [None, 10**7 + 50])
def test_merging_keeps_weights_with_their_rows(watermark: int | None, tmp_path: Path) -> None:
    plan, rng = tree("a", "b", "c"), np.random.default_rng(5)
    physical = compile_plan(QUERY, plan)
    rows = [pa.table([rng.integers(0, 99, 300), rng.integers(0, 10**9, 300)], ROW) for _ in range(2)]
    state = State()
    for batch, (drop, table) in enumerate(zip((0.0, 0.75), rows, strict=True)):
        decision = Decision(plan, "auto", allowance=Allowance(drop={"a": drop}))
        state = ingest(physical, decision, state, {"a": table}, batch, BatchCounts())
    slices = state.of("a")
    (merged,) = merge(slices, physical.sorts["a"], watermark, None)
    wanted = {
        hash_: weight for s in slices for hash_, weight in zip(s.content(), s.row_weights(), strict=True)
    }
    assert set(merged.row_weights()) == {1.0, 4.0}
    assert all(wanted[hash_] == w for hash_, w in zip(merged.content(), merged.row_weights(), strict=True))
