"""Times and durations in seconds or milliseconds that microseconds cannot hold are refused, never wrapped."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import weir

_S, _MS = (2**63 - 1) // 1_000_000, (2**63 - 1) // 1_000


def _join(rows: pa.Table) -> pa.Table:
    return weir.join(a=rows, b=rows, on="a.k = b.k", within="1 second", select="a.k AS k").to_arrow()


def _table(values: list[int | None], kind: Any) -> pa.Table:
    return pa.table({"ts": pa.array(values, pa.int64()).cast(kind), "k": range(len(values))})


@pytest.mark.parametrize(("unit", "most"), [("s", _S), ("ms", _MS), ("us", 2**63 - 1), ("ns", 2**63 - 1)])
@pytest.mark.parametrize("zone", [None, "Asia/Tokyo"])
def test_the_last_time_that_fits(unit: str, most: int, zone: str | None) -> None:
    assert _join(_table([0, most, -most, None], pa.timestamp(unit, zone))).num_rows == 3


@pytest.mark.parametrize(("unit", "most"), [("s", _S), ("ms", _MS)])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_first_time_that_does_not(unit: str, most: int, sign: int) -> None:
    beyond = sign * (most + 1)
    with pytest.raises(
        weir.QueryError, match=rf"stream 'a', column 'ts', row 2: {beyond} {unit} is out of range"
    ):
        _join(_table([0, None, beyond], pa.timestamp(unit)))


def test_other_columns_are_checked_too() -> None:
    rows = _table([0, 1], pa.timestamp("us")).append_column("took", pa.array([0, 2**60], pa.duration("s")))
    with pytest.raises(weir.QueryError, match=r"column 'took', row 1: .* s is out of range"):
        _join(rows)
    nested = pa.array([[0], [2**60]], pa.list_(pa.timestamp("ms")))
    with pytest.raises(weir.QueryError, match=r"stream 'a', column 'made'.*out of bounds"):
        _join(_table([0, 1], pa.timestamp("us")).append_column("made", nested))


def test_a_batch_is_checked_like_a_table() -> None:
    schema = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64()})
    query = weir.join(streams=dict.fromkeys("ab", schema), on="a.k = b.k", within="1 second").start()
    with pytest.raises(weir.QueryError, match="stream 'b', column 'ts', row 0"):
        query.process(b=_table([2**62], pa.timestamp("s")))
