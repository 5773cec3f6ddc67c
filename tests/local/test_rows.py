"""Rows that are dicts: what type each column gets, and what is said about rows that cannot be used."""

from __future__ import annotations

from collections import UserDict
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weir
from weir.errors import QueryError
from weir.local.rows import read_rows

NOON = datetime(2024, 1, 2, 12)
AWARE = NOON.replace(tzinfo=ZoneInfo("America/New_York"))
NULLS = (None, pd.NaT, pd.NA)


@pytest.mark.parametrize(("values", "expected"), [
    ([1, None], pa.int64()),
    ([None, None, 1], pa.int64()),
    ([1, 2.5], pa.float64()),
    ([2.5, 1], pa.float64()),
    ([1, Decimal("1.5")], pa.decimal128(2, 1)),
    ([Decimal("1.5"), Decimal("10.25")], pa.decimal128(4, 2)),
    ([True, None], pa.bool_()),
    (["x", ""], pa.string()),
    ([b"x", bytearray(b"y")], pa.binary()),
    ([NOON], pa.timestamp("us")),
    ([AWARE, NOON.replace(tzinfo=UTC)], pa.timestamp("us", "America/New_York")),
    ([date(2024, 1, 2)], pa.date32()),
    ([timedelta(seconds=1)], pa.duration("us")),
    ([[1, None], None, []], pa.list_(pa.int64())),
    ([(1, 2.5)], pa.list_(pa.float64())),
    ([{"x": None}, None, {"y": "z"}, {"x": 1}], pa.struct({"x": pa.int64(), "y": pa.string()})),
    ([None, None], pa.null()),
    ([np.int32(1), np.int32(2)], pa.int32()),
    ([np.array([1.0, 2.0])], pa.list_(pa.float64())),
    ([pd.Timestamp(NOON), pd.NaT], pa.timestamp("us")),
    ([pd.NA, 1], pa.int64()),
])  # fmt: skip
def test_types_follow_from_all_rows(values: list[Any], expected: pa.DataType) -> None:
    table = read_rows("a", [{"v": value} for value in values])
    found = table.schema.field("v").type
    is_zoned = pa.types.is_timestamp(found) and found.tz
    assert found == expected or (is_zoned and expected.tz), found
    assert table["v"].null_count == sum(any(value is null for null in NULLS) for value in values)


def test_instants_stay_what_they_are() -> None:
    rows = [{"ts": AWARE, "k": 1}, {"ts": AWARE.astimezone(UTC), "k": 2}]
    made = weir.join(a=rows, b=rows, on="a.k = b.k", within="1 second", select="a.ts")
    assert made.collect() == [{"ts": AWARE}, {"ts": AWARE}]
    naive = [{"ts": AWARE.astimezone(UTC).replace(tzinfo=None), "k": 1}]
    assert len(weir.join(a=rows, b=naive, on="a.ts = b.ts", within="1 second").collect()) == 2, "naive is UTC"


def test_missing_keys_are_null_wherever_they_are_missing() -> None:
    table = read_rows("a", [{"x": 1}, {}, UserDict(y="z")])
    assert table.to_pylist() == [{"x": 1, "y": None}, {"x": None, "y": None}, {"x": None, "y": "z"}]


VALUES = st.one_of(
    st.just(st.booleans()), st.just(st.integers(-(2**63), 2**63 - 1)), st.just(st.floats(allow_nan=False)),
    st.just(st.text(st.characters(exclude_categories=["Cs"]))), st.just(st.binary()),
    st.just(st.dates()), st.just(st.datetimes()), st.just(st.datetimes(timezones=st.just(UTC))),
    st.just(st.timedeltas(timedelta(-9999), timedelta(9999))),
    st.just(st.decimals(-(10**9), 10**9, places=3)), st.just(st.lists(st.none() | st.integers(0, 9))),
    st.just(st.fixed_dictionaries({"p": st.none() | st.integers(0, 9), "q": st.lists(st.text("ab"))})),
)  # fmt: skip


@given(st.lists(VALUES, min_size=1, max_size=4).flatmap(
    lambda columns: st.lists(st.tuples(*(st.none() | values for values in columns)), min_size=1, max_size=5)
))  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_values_come_back_as_they_went_in(rows: list[tuple[Any, ...]]) -> None:
    """Every row joins itself alone; what is put in is the oracle."""
    given = [{"ts": NOON, "n": n, **{f"c{i}": v for i, v in enumerate(row)}} for n, row in enumerate(rows)]
    made = weir.join(a=given, b=given, on="a.n = b.n", within="1 second", select="a.*")
    results = sorted(made.collect(), key=lambda row: row["n"])
    assert results == given
    query = made.start()
    query.process(a=given[:1], b=given)
    assert query.collect(a=given[1:]) == results[1:], "in batches, the types are those of the query"


A = [{"ts": NOON, "k": 1}]
B = [{"ts": NOON, "k": 1, "v": [1.5], "d": date(2024, 1, 2), "s": {"p": 1}, "t": "x", "o": True}]
GOOD: dict[str, Any] = {"on": "a.k = b.k", "within": "10 seconds"}


def column(*values: Any) -> list[dict[str, Any]]:
    return [{"ts": NOON, "k": value} for value in values]


@pytest.mark.parametrize(("rows", "message"), [
    ([], "stream 'a' has no rows, so its columns are unknown; give an Arrow schema, like pa.schema("),
    (iter(()), "stream 'a' has no rows"),
    ([1], "stream 'a', row 0: a row is a dict of its columns, like {'ts': ..., 'id': 7}; got int"),
    ([*A, (NOON, 1)], "stream 'a', row 1: a row is a dict of its columns, .* got tuple"),
    ([*A, None], "row 1: a row is a dict .* got NoneType"),
    ([*A, pa.table({"k": [1]})], "row 1: a row is a dict .* got Table"),
    (["orders.parquet"], "row 0: a row is a dict .* got str"),
    ([{"ts": NOON, 5: 1}], "stream 'a': the keys of a dict are names of columns; got 5"),
    (column({5: 1}), "stream 'a', column 'k': the keys of a dict are names of columns; got 5"),
    (column(None, 1, "x"), r"stream 'a', column 'k' mixes int \(row 1\) and str \(row 2\); .*None for NULL"),
    (column(True, 1), r"column 'k' mixes bool \(row 0\) and int \(row 1\)"),
    (column(1, 2.5, "x"), r"mixes int \(row 0\) and float \(row 1\) and str \(row 2\)"),
    (column("x", float("nan")), r"mixes str \(row 0\) and float \(row 1\)"),
    (column(2.5, Decimal("2.5")), r"mixes float \(row 0\) and Decimal \(row 1\)"),
    (column(date(2024, 1, 2), NOON), r"mixes date \(row 0\) and datetime without a time zone \(row 1\)"),
    (column(NOON, AWARE), r"mixes datetime without a time zone \(row 0\) and datetime with a time zone"),
    (column(b"x", "x"), r"mixes bytes \(row 0\) and str \(row 1\)"),
    (column(1, [1]), r"mixes int \(row 0\) and list \(row 1\)"),
    (column([1], None, [2, "x"]), r"column 'k', items mixes int \(row 0\) and str \(row 2\)"),
    (column(None, {"p": 1}, {"p": "x"}), r"column 'k', field 'p' mixes int \(row 1\) and str \(row 2\)"),
    (column(1, 2**70), "column 'k', row 1: Arrow cannot hold 1180591620717411303424"),
    (column("x", "\ud800"), "column 'k', row 1: Arrow cannot hold"),
    (column(Decimal("NaN")), "column 'k', row 0: Arrow cannot hold Decimal"),
    (column(object()), "column 'k', row 0: Arrow cannot hold <object"),
    (column(2.5, 2**53 + 1), "column 'k': Arrow cannot hold these values as one type"),
    ([{"ts": "2024-01-02", "k": 1}], "the time of stream 'a' must be a timestamp; 'ts' is string"),
])  # fmt: skip
def test_rows_that_cannot_be_used_are_named(rows: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message.replace("{", r"\{").replace("pa.schema(", r"pa\.schema\(")):
        weir.join(a=rows, b=B, **GOOD)


@pytest.mark.parametrize(("row", "message"), [
    ({"kk": 1}, "unknown column 'kk' in a batch of stream 'b'; did you mean 'k'"),
    ({"s": {"pp": 1}}, "unknown column 'pp' in a batch of stream 'b', column 's'; did you mean 'p'"),
    ({"k": "1"}, "stream 'b', column 'k' is int64 in the query; row 1 of this batch has str"),
    ({"k": 1.0}, "column 'k' is int64 in the query; row 1 of this batch has float"),
    ({"k": True}, "column 'k' is int64 in the query; row 1 of this batch has bool"),
    ({"k": 2**63}, "column 'k', row 1: Arrow cannot hold as int64"),
    ({"ts": AWARE}, r"column 'ts' is timestamp\[us\] in the query; .* datetime with a time zone"),
    ({"ts": 5}, r"column 'ts' is timestamp\[us\] in the query; row 1 of this batch has int"),
    ({"d": NOON}, "column 'd' is date32.* has datetime without a time zone"),
    ({"v": ["x"]}, "column 'v', items is double in the query; row 1 of this batch has str"),
    ({"v": 1.5}, "column 'v' is list.* has float"),
    ({"t": b"x"}, "column 't' is string in the query; row 1 of this batch has bytes"),
    ({"o": 1}, "column 'o' is bool in the query; row 1 of this batch has int"),
    ({"t": time(1)}, "column 't' is string in the query; row 1 of this batch has time"),
])  # fmt: skip
def test_rows_of_a_batch_must_fit_the_query(row: dict[str, Any], message: str) -> None:
    query = weir.join(a=A, b=B, **GOOD, select="b.*").start()
    with pytest.raises(QueryError, match=message):
        query.process(a=A, b=[*B, {"ts": NOON, **row}])
    fits = [{"ts": NOON, "k": 1, "v": [2]}, {"ts": NOON}]
    assert query.collect(a=A, b=fits) == [
        {"ts": NOON, "k": 1, "v": [2.0], "d": None, "s": None, "t": None, "o": None}
    ]
    assert query.collect(b=[]) == query.collect(b=iter(())) == []


def test_a_type_of_the_query_is_not_narrowed_by_a_batch() -> None:
    schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.int32(), "x": pa.decimal128(10, 2)})
    query = weir.join(a=schema, b=schema, **GOOD, select="a.*").start()
    row = {"ts": AWARE, "k": 1, "x": Decimal("2.5")}
    assert query.collect(a=[row], b=[row]) == [row]
    with pytest.raises(QueryError, match=r"column 'x', row 0: Arrow cannot hold as decimal128\(10, 2\)"):
        query.process(a=[{**row, "x": Decimal("2.555")}])
    with pytest.raises(QueryError, match=r"column 'ts' is timestamp.*datetime without a time zone"):
        query.process(a=[{**row, "ts": NOON}])
