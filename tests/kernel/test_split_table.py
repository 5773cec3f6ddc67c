"""Tables are split by bytes: in order, without a copy, and never more than a piece may have."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.kernel import split_table as module
from weir.kernel.split_table import split_table

_MOST = 200


@given(st.lists(st.lists(st.integers(0, 90), max_size=8), max_size=6))
def test_pieces_hold_all_rows_in_order(chunks: list[list[int]]) -> None:
    schema = pa.schema({"n": pa.int64(), "x": pa.string()})
    numbers = iter(range(1000))
    batches = [
        pa.record_batch([[next(numbers) for _ in sizes], ["w" * size for size in sizes]], schema=schema)
        for sizes in chunks
    ]
    table = pa.Table.from_batches(batches, schema)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BYTES", _MOST)
        pieces = split_table(table)
    assert pa.concat_tables(pieces).equals(table)
    assert all(piece.nbytes <= _MOST or piece.num_rows == 1 for piece in pieces)
    assert len(pieces) <= 1 + 4 * table.nbytes / _MOST, "pieces are not needlessly small"


def test_a_small_table_is_one_piece() -> None:
    table = pa.table({"x": ["a", "b"]})
    assert split_table(table) == [table]
