"""Index searches agree with the predicate, at the limits of number types and for vectors of any length."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

import weir

MIN, MAX = -(2**63), 2**63 - 1


def table(values: list[Any], kind: pa.DataType) -> pa.Table:
    rows = len(values)
    return pa.table(
        {
            "ts": pa.array([0] * rows, pa.timestamp("us")),
            "k": pa.array([1] * rows),
            "id": pa.array(range(rows)),
            "x": pa.array(values, kind),
        }
    )


def pairs(on: str, left: list[Any], right: list[Any], kind: pa.DataType) -> list[tuple[int, int]]:
    """Matches matches by the index of a condition; with a key added, the condition becomes a residual."""
    tables = {"a": table(left, kind), "b": table(right, kind)}
    by_index, by_residual = (
        weir.join(
            on=text, within="1 s", select="a.id AS a, b.id AS b", session={"ansi": False}, streams=tables
        ).to_arrow()
        for text in (on, f"{on} AND a.k = b.k")
    )
    matches, expected = (
        sorted(tuple(row.values()) for row in t.to_pylist()) for t in (by_index, by_residual)
    )
    assert matches == expected
    return matches


@pytest.mark.parametrize(
    ("kind", "left", "right", "matches"),
    [
        (pa.int64(), [2**62 + 10], [2**62 + 11, 2**62 + 12], 1),
        (pa.int64(), [MAX, MIN + 2**62], [MAX, MAX - 1, MAX - 2], 2),
        (pa.int64(), [-(2**62) - 10], [-(2**62) - 11, -(2**62)], 1),
        (pa.decimal128(18, 2), [99 * 10**14], [99 * 10**14, 99 * 10**14 - 1, 0], 2),
    ],
)
def test_a_band_far_from_zero(kind: pa.DataType, left: list[Any], right: list[Any], matches: int) -> None:
    assert len(pairs("abs(a.x - b.x) <= 1", left, right, kind)) == matches


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64()], ids=str)
@pytest.mark.parametrize("width", ["0", "1", "100"])
def test_a_band_wraps_around_where_the_difference_does(kind: pa.DataType, width: str) -> None:
    """Spark without ANSI: the largest less the smallest is -1, and the smallest has no absolute value."""
    half = 2 ** (kind.bit_width - 1)
    values = [-half, -half + 1, -1, 0, 1, half - 2, half - 1]
    matches = pairs(f"abs(a.x - b.x) <= {width}", values, values, kind)
    assert ((0, 6) in matches) == (width != "0")
    assert (0, 3) in matches and (0, 0) in matches


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
@pytest.mark.parametrize("width", ["1", "1e308D", "CAST('inf' AS DOUBLE)"])
def test_a_band_over_infinity_and_nan(kind: pa.DataType, width: str) -> None:
    values = [0.5, 1.0, math.inf, -math.inf, math.nan, 1e38, -1e38, None]
    assert {(0, 1), (1, 0)} <= set(pairs(f"abs(a.x - b.x) <= {width}", values, values, kind))


@pytest.mark.parametrize(
    ("kind", "length"),
    [
        (kind, length)
        for kind, lengths in ((pa.float32(), ()), (pa.float64(), (1e100, 1e-100)))
        for length in (1e25, 1e-30, 1e-44, *lengths)
    ],
    ids=str,
)
def test_vectors_of_any_length_have_a_direction(kind: pa.DataType, length: float) -> None:
    left, right = [[length, 0.0], [0.0, length]], [[2 * length, 0.0]]
    assert pairs("cosine(a.x, b.x) >= 0.9", left, right, pa.list_(kind)) == [(0, 0)]
    assert pairs("cosine(a.x, b.x) >= 0.9", left, right, pa.list_(kind, 2)) == [(0, 0)]


@pytest.mark.parametrize("threshold", ["0.9", "-2", "1e300D"])
def test_vectors_without_a_direction_match_nothing(threshold: str) -> None:
    tables = {
        "a": table([[math.inf, 1.0], [math.nan, 1.0], [0.0, 0.0], None, []], pa.list_(pa.float64())),
        "b": table([[1.0, 1.0], [1e300, 1.0]], pa.list_(pa.float64())),
    }
    matches = weir.join(on=f"cosine(a.x, b.x) >= {threshold}", within="1 s", streams=tables).to_arrow()
    assert matches.num_rows == 0


def test_a_null_in_a_column_declared_not_nullable_equals_nothing() -> None:
    schema = pa.schema([pa.field("ts", pa.timestamp("us")), pa.field("k", pa.int64(), nullable=False)])
    rows = pa.Table.from_arrays([pa.array([0, 0], pa.timestamp("us")), pa.array([None, 0])], schema=schema)
    matches = weir.join(on="a.k = b.k", within="1 s", select="a.k", a=rows, b=rows).to_arrow()
    assert matches.column("k").to_pylist() == [0]
