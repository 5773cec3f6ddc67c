"""Workers split the union of all streams piece by piece; this needs no Spark."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from weir.kernel import split_table
from weir.spark.task import COPY, PARTITION, STREAM, Tables, UnionSlots

SLOTS = UnionSlots(
    streams=("a", "b"),
    slots={"a": {"k": "slot0", "x": "slot1"}, "b": {"x": "slot1"}},
    schemas={"a": pa.schema({"k": pa.int64(), "x": pa.string()}), "b": pa.schema({"x": pa.string()})},
)


def _batches() -> list[pa.RecordBatch]:
    rng = np.random.default_rng(3)
    return [
        pa.RecordBatch.from_pydict(
            {
                STREAM: rng.integers(0, 2, rows),
                PARTITION: rng.integers(0, 3, rows),
                COPY: rng.integers(0, 2, rows),
                "slot0": rng.integers(0, 9, rows),
                "slot1": [f"text {batch}.{row}" for row in range(rows)],
            }
        )
        for batch, rows in enumerate((40, 0, 3, 100, 1))
    ]


def _lists(split: dict[int, tuple[Tables, Tables]]) -> dict[int, list[dict[str, Any]]]:
    return {
        partition: [{name: table.to_pylist() for name, table in tables.items()} for tables in both]
        for partition, both in split.items()
    }


def test_pieces_give_the_same_rows_in_the_same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = _lists(SLOTS.split(iter(_batches())))
    monkeypatch.setattr(split_table, "BYTES", 600)
    split = SLOTS.split(iter(_batches()))
    assert _lists(split) == whole
    assert list(whole) == [0, 1, 2]
    assert split[0][0]["a"].column("x").num_chunks > 3
    assert sum(len(rows) for tables, _ in whole.values() for rows in tables.values()) == 144


def test_a_task_without_rows_has_no_partition() -> None:
    assert SLOTS.split(iter(_batches()[1:2])) == {}
