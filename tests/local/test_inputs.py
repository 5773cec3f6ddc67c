"""What may come in as a table, and what is said about a table that cannot be used."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import weir
from weir.errors import QueryError

from .tables import GOOD, STATEMENT, A, B, joined, refused

PANDAS = A.to_pandas()
ON_TEXT = {"on": "a.s = b.s", "select": "b.s"}


def test_a_stream_of_batches_is_read_once() -> None:
    made = weir.join(a=A.to_reader(), b=B.to_reader(), **GOOD)
    assert made.to_arrow()["k"].to_pylist() == [1]
    assert made.to_arrow()["k"].to_pylist() == [1]
    assert weir.sql(STATEMENT, a=A.to_reader(), b=B.to_reader()).to_arrow().num_rows == 1


def test_one_stream_of_batches_may_be_two_inputs() -> None:
    reader = A.to_reader()
    assert joined(a=reader, b=reader) == [1, 2]
    both = "SELECT x.k FROM t x, t y WHERE x.k = y.k WINDOW 10 SECONDS"
    assert weir.sql(both, t=A.to_reader()).to_arrow().num_rows == 2
    again = A.to_reader()
    assert weir.join(a=A.schema, b=A.schema, **GOOD).start().process(a=again, b=again).num_rows == 2


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["x", "y", "z"])], ids=["categorical", "enum"])
def test_categories_of_polars_are_text(kind: Any) -> None:
    def coded(table: pa.Table) -> Any:
        return pl.DataFrame(table).with_columns(pl.col("s").cast(kind))

    assert joined(a=coded(A), b=coded(B), **ON_TEXT) == ["x"]
    assert joined(a=coded(A)[:0], b=coded(B), **ON_TEXT) == []


def test_categories_inside_lists_and_structs_are_text() -> None:
    frame = pl.DataFrame(A).with_columns(
        pl.Series("l", [["p", None], None], dtype=pl.List(pl.Categorical)),
        pl.Series("f", [["p", "q"], None], dtype=pl.Array(pl.Categorical, 2)),
        pl.Series("d", [{"c": "p"}, None], dtype=pl.Struct({"c": pl.Categorical})),
    )
    found = weir.join(a=frame, b=A, on="a.k = b.k", within="1 minute", select="a.l, a.f, a.d").to_arrow()
    assert found.to_pydict() == {"l": [["p", None], None], "f": [["p", "q"], None], "d": [{"c": "p"}, None]}
    assert found.schema.field("l").type == pa.list_(pa.string())


def test_an_unnamed_index_of_pandas_is_no_column() -> None:
    filtered = PANDAS[PANDAS.k > 1]
    made = weir.join(a=filtered, b=PANDAS, on="a.k = b.k", within="10 seconds")
    assert made.schema.names == ["a_ts", "a_k", "a_s", "b_ts", "b_k", "b_s"]
    assert made.to_arrow()["a_k"].to_pylist() == [2]
    assert made.start().process(a=PANDAS, b=filtered)["b_k"].to_pylist() == [2]


def test_a_named_index_of_pandas_is_a_column() -> None:
    assert joined(a=PANDAS.set_index("k")) == [1]


def test_columns_that_arrow_cannot_hold_are_named() -> None:
    number = pl.DataFrame(A).with_columns(pl.col("k").cast(pl.Int128).alias("big"))
    assert "stream 'a', column 'big'" in refused(a=number)
    assert "stream 'a', column 'm'" in refused(a=PANDAS.assign(m=[1, "x"]))
    assert "stream 'a', column 'k'" in refused(a=pd.concat([PANDAS, PANDAS[["k"]]], axis=1))
    assert "stream 'a': Arrow cannot hold this Series" in refused(a=pl.Series([1]))


@pytest.mark.parametrize("give", [lambda table: table, lambda table: table.schema], ids=["table", "schema"])
def test_an_extension_type_is_refused_by_column(give: Callable[[pa.Table], Any]) -> None:
    with_id = A.append_column("id", pa.array([uuid.uuid4().bytes] * 2, pa.uuid()))
    message = refused(a=give(with_id))
    assert "stream 'a', column 'id'" in message
    assert "cast it to fixed_size_binary[16]" in message


def test_a_decimal_that_is_too_long_is_named() -> None:
    long = A.append_column("d", pa.array([1, 2], pa.decimal256(50, 0)))
    assert "stream 'a', column 'd': decimal(50,0) is not a type" in refused(a=long)


def test_batches_are_named_as_in_sql() -> None:
    query = weir.join(a=A.schema, b=B.schema, **GOOD).start()
    assert query.process(A=A, B=B)["k"].to_pylist() == [1]


@pytest.mark.parametrize(("give", "message"), [
    (lambda query: query.process([A]), r"by name, like process\(a=table\).*got list"),
    (lambda query: query.process({"a": A}, a=A), "stream 'a' is given twice"),
    (lambda query: query.process({"a": A}, A=A), "stream 'a' is given twice"),
    (lambda query: query.process(aa=A), "unknown stream 'aa'; did you mean 'a'"),
    (lambda query: query.process({5: A}), "unknown stream '5'; known: 'a', 'b'"),
    (lambda query: query.process(a=5), "stream 'a' must be an Arrow"),
    (lambda query: query.process(a=A.append_column("k", A["k"])), "stream 'a' has column 'k' 2 times"),
    (lambda query: query.process(a=A.drop("k")), "stream 'a' lacks column 'k'; it has 'ts', 's'"),
])  # fmt: skip
def test_a_wrong_batch_is_refused(give: Callable[[Any], Any], message: str) -> None:
    query = weir.join(a=A.schema, b=B.schema, **GOOD).start()
    with pytest.raises(QueryError, match=message):
        give(query)
    assert query.process(a=A, b=B).num_rows == 1
