"""What a batch stores goes to its store while the batch is built: memory holds little of it at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from time import thread_time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from weir.kernel import spill, split_partial, split_table, state
from weir.kernel.decision import Decision
from weir.kernel.physical_plan import compile_plan
from weir.kernel.slice import Slice
from weir.plan.tree import join as tree
from weir.query.build import build_query
from weir.query.options import QueryOptions
from weir.runtime.partition_batch import Assignment, PartitionBatch, PartitionState, SliceEntry
from weir.spark.slice_files import FileStore

ROW = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64(), "n": pa.int64(), "x": pa.string()})
QUERY = build_query(
    dict.fromkeys("abc", ROW),
    QueryOptions(
        on="a.k = b.k AND b.k = c.k AND a.n = c.n",
        within="1 second",
        select="a.n AS a, b.n AS b, c.n AS c, b.x AS x",
    ),
)
PLAN = tree(tree("a", "b"), "c")
STATES = ("a", "b", "c", "(a b)")
LIMIT = 5_000
ROWS = 120


@dataclass
class Recorder:
    """A store in files that records the bytes of each call."""

    store: FileStore
    written: list[int] = field(default_factory=list)

    def write(self, batch: int, partition: int, slices: Sequence[Slice]) -> Sequence[SliceEntry]:
        self.written.append(sum(s.bytes for s in slices))
        return self.store.write(batch, partition, slices)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "SPILL_BYTES", LIMIT)
    monkeypatch.setattr(split_partial, "BYTES", LIMIT // 4)
    monkeypatch.setattr(split_table, "BYTES", LIMIT)


def _tables(batch: int) -> dict[str, pa.Table]:
    times = pa.array(batch * 1_000 + np.arange(ROWS)).cast(pa.timestamp("us"))
    numbers = np.arange(ROWS)
    texts = [f"text {batch} of row {n}" for n in numbers]
    return {name: pa.table([times, numbers % 3, numbers, texts], schema=ROW) for name in "abc"}


def _run(store: Any, batch: int, before: PartitionState) -> tuple[PartitionBatch, Counter[Any]]:
    assignment = Assignment(
        compile_plan(QUERY, PLAN), Decision(PLAN, ("a", "b", "c")), batch, None, {0: before}, store
    )
    running = PartitionBatch(assignment, 0, _tables(batch), thread_time)
    results = pa.concat_tables(running.probe())
    return running, Counter(zip(*(column.to_pylist() for column in results.columns), strict=True))


def _expected(batches: int) -> Counter[Any]:
    rows = [(batch, n) for batch in range(batches) for n in range(ROWS)]
    by_key = {key: [row for row in rows if row[1] % 3 == key] for key in range(3)}
    pairs = [(a, c) for a, c in product(range(batches), repeat=2)]
    found: Counter[Any] = Counter()
    for key, key_rows in by_key.items():
        for n in range(key, ROWS, 3):
            for batch, b in key_rows:
                found[n, b, n, f"text {batch} of row {b}"] += len(pairs)
    return found


def test_a_join_below_the_root_streams_into_files(tmp_path: Path) -> None:
    store = Recorder(FileStore(str(tmp_path)))
    allocated = pa.total_allocated_bytes()
    running, found = _run(store, 0, PartitionState())
    part = running.report().part
    intermediate = [entry for entry in part.slices if entry.node == "(a b)"]
    stored = sum(entry.bytes for entry in intermediate)
    assert stored > 40 * LIMIT
    assert max(store.written) < len(STATES) * LIMIT, "the last call writes what is left of each state"
    assert len({entry.file for entry in intermediate}) > 15
    assert pa.total_allocated_bytes() - allocated < stored / 4, "slices are mapped, not copied"
    assert found == _expected(1)
    assert sum(entry.rows for entry in intermediate) == 3 * (ROWS // 3) ** 2
    _, both = _run(store, 1, part)
    assert found + both == _expected(2)


def test_merged_slices_are_spilled_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_MERGED_BYTES", LIMIT)
    store, part = Recorder(FileStore(str(tmp_path))), PartitionState()
    found: Counter[Any] = Counter()
    for batch in range(3):
        store.written.clear()
        running, results = _run(store, batch, part)
        part, found = running.report().part, found + results
        assert max(store.written) < 2 * len(STATES) * LIMIT
    assert found == _expected(3)
    assert len({entry.place for entry in part.slices}) == len(part.slices)


def test_a_repeated_batch_starts_from_the_same_slices(tmp_path: Path) -> None:
    """A failed attempt leaves files that nobody names; the next one finds the same results."""
    store = FileStore(str(tmp_path))
    running, _ = _run(store, 0, PartitionState())
    part = running.report().part
    first, second = (_run(store, 1, part)[1] for _ in range(2))
    assert first == second
    assert first


@pytest.mark.parametrize("policy", ["timestamp", "round-robin"])
def test_spilled_slices_keep_the_rank_of_each_row(policy: Any, tmp_path: Path) -> None:
    store = FileStore(str(tmp_path))
    assignment = Assignment(compile_plan(QUERY, PLAN), Decision(PLAN, policy), 0, None, {}, store)
    running = PartitionBatch(assignment, 0, _tables(0), thread_time)
    results = pa.concat_tables(running.probe())
    assert Counter(zip(*(c.to_pylist() for c in results.columns), strict=True)) == _expected(1)
    assert any(entry.rank for entry in running.report().part.slices)
    assert replace(assignment, parts={0: running.report().part}).load(0, assignment.physical)
