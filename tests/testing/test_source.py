"""What a list source makes of rows, and what it refuses."""

from __future__ import annotations

import pyarrow as pa
import pytest

from weir.errors import QueryError
from weir.testing import Crash, ListSource, Wait


def test_columns_come_from_all_rows_and_missing_values_are_null() -> None:
    source = ListSource({"a": [{"k": 1}]}, {"a": [{"k": None, "v": "x"}], "b": [{"k": 0.5}]})
    assert source.schemas["a"] == pa.schema({"k": pa.int64(), "v": pa.string()})
    assert [batch["a"].to_pylist() for batch in source.batches] == [
        [{"k": 1, "v": None}],
        [{"k": None, "v": "x"}],
    ]
    assert [batch["b"].num_rows for batch in source.batches] == [0, 1]


def test_a_given_schema_counts_even_without_rows() -> None:
    schema = pa.schema({"k": pa.int32()})
    source = ListSource({"a": [{"k": 1}]}, schemas={"a": schema, "b": schema})
    assert source.batches[0]["a"].schema == source.batches[0]["b"].schema == schema


def test_an_unknown_column_is_named() -> None:
    with pytest.raises(QueryError, match=r"'w'.*of stream 'a'"):
        ListSource({"a": [{"w": 1}]}, schemas={"a": pa.schema({"k": pa.int32()})})


def test_waits_before_a_batch_add_up() -> None:
    source = ListSource({"a": [{"k": 1}]}, Wait("1 minute"), Crash(), Wait("5 seconds"), {"a": [{"k": 2}]})
    assert (source.waits, source.crashes) == ({1: 65_000_000}, {1: ("sync_results",)})


def test_a_crash_needs_a_phase_and_a_batch() -> None:
    with pytest.raises(QueryError, match="'emited'"):
        Crash("emited")
    with pytest.raises(QueryError, match="a crash needs a batch after it"):
        ListSource({"a": [{"k": 1}]}, Crash())
