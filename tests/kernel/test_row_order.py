"""Rows with equal times enter a row window in the order of their content, whatever the order of arrival."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import weir
from weir.kernel.keys import content_hash

# Two values that differ as little as their type allows.
PAIRS: list[tuple[pa.DataType, Any, Any]] = [
    (pa.bool_(), True, False),
    (pa.int64(), 0, None),
    (pa.float64(), 0.0, -0.0),
    (pa.float32(), 1.0, float("nan")),
    (pa.decimal128(38, 2), Decimal("1e20"), Decimal("1.1e20")),
    (pa.string(), "a long string", "a long strinG"),
    (pa.binary(), b"", b"\0"),
    (pa.date32(), date(2024, 1, 1), date(2024, 1, 2)),
    (pa.time32("s"), time(1, 0), time(1, 1)),
    (pa.time64("us"), time(1, 0), time(1, 1)),
    (pa.duration("us"), 1, 2),
    (pa.timestamp("us"), datetime(2024, 1, 1), None),
    (pa.month_day_nano_interval(), (1, 2, 3), (1, 2, 4)),
    (pa.list_(pa.int64()), [1, 2], [2, 1]),
    (pa.list_(pa.int64()), [], None),
    (pa.list_(pa.float32(), 2), [1.0, 2.0], [1.0, None]),
    (pa.list_(pa.list_(pa.string())), [["a"], ["b"]], [["a", "b"]]),
    (pa.struct({"x": pa.int64(), "y": pa.list_(pa.int64())}), {"x": 1, "y": [1]}, {"x": 1, "y": [1, 1]}),
    (pa.struct({"x": pa.int64()}), {"x": None}, None),
    (pa.map_(pa.string(), pa.int64()), [("a", 1)], [("a", 2)]),
]


@pytest.mark.parametrize(("kind", "value", "other"), PAIRS, ids=lambda argument: str(argument)[:24])
def test_every_kind_of_value_has_a_hash(kind: pa.DataType, value: Any, other: Any) -> None:
    column = pa.array([other, value, other, value, None], kind)
    whole = content_hash([column], 5)
    assert whole[1] == whole[3] != whole[0] == whole[2]
    assert np.array_equal(content_hash([column.slice(2)], 3), whole[2:])


@pytest.mark.parametrize(
    ("kind", "passing", "failing", "condition"),
    [
        (pa.bool_(), True, False, "a.x"),
        (pa.list_(pa.int64()), [1], [2], "a.x[0] = 1"),
        (pa.struct({"y": pa.int64()}), {"y": 1}, {"y": 2}, "a.x.y = 1"),
    ],
)
def test_a_column_that_only_a_filter_reads_counts(
    kind: pa.DataType, passing: Any, failing: Any, condition: str
) -> None:
    """Two rows differ in the filter's column only; the window holds just the last of them."""
    b = pa.table({"ts": pa.array([1], pa.timestamp("us")), "k": [1]})
    counts = set()
    for values in ([passing, failing], [failing, passing]):
        a = pa.table({"ts": pa.array([0, 0], pa.timestamp("us")), "k": [1, 1], "x": pa.array(values, kind)})
        join = weir.join(
            on=f"a.k = b.k AND {condition}", within={"a": weir.rows(1), "b": "1 s"}, select="a.k", a=a, b=b
        )
        counts.add(join.to_arrow().num_rows)
    assert len(counts) == 1
