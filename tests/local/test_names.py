"""Columns may have any name: with dots, backticks and blanks, or one that weir itself uses inside."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest

import weir
from weir.plan.tree import join as tree

NAMES = [
    "x.y", "a.k", "b.`x`", "a`b", "`", "``", "select", "sp ace", "Ünï", "x--y", "*", "a.*", "'", '"', "\\",
    "x\ny", "1.5", "k@key", "k@time", "@rank", "_rank", "@column", "a@row_order", "k@key@column", "weir",
    "weir_stream", "weir_partition", "weir_time", "slot0", "weir_tried0", "weir_output0", "event_time",
    "report",
]  # fmt: skip
TREE = tree(tree("a", "b"), "c")


def quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _rows(column: str, time: str = "ts", key: str = "k") -> pa.Table:
    times = pa.array([1, 2, 3, 4], pa.timestamp("us"))
    return pa.table([times, [1, 2, 2, 2], [5, 6, 7, 6]], names=[time, key, column])


def _expected(sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        for name in "abc":
            connection.register(name, _rows("x"))
        return sorted(connection.execute(sql).fetchall())


def _sorted(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_a_column_of_any_name_is_key_value_and_output(name: str) -> None:
    x, rows = quote(name), _rows(name)
    joined = weir.join(
        a=rows,
        b=rows,
        c=rows,
        on=f"a.k = b.k AND b.{x} = c.{x} AND a.{x} + 1 >= c.{x} AND b.{x} > 5",
        within="1 minute",
        plan=TREE,
        select=f"a.{x}, b.{x} AS {quote(name + '2')}, c.{x} + a.k AS total",
    ).to_arrow()
    wanted = _expected(
        """SELECT a.x, b.x, c.x + a.k FROM a, b, c
           WHERE a.k = b.k AND b.x = c.x AND a.x + 1 >= c.x AND b.x > 5"""
    )
    assert joined.column_names == [name, f"{name}2", "total"]
    assert _sorted(joined) == wanted
    assert wanted


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("quoted", [False, True])
def test_a_time_of_any_name(name: str, quoted: bool) -> None:
    x, rows = quote(name), _rows("v", time=name)
    joined = weir.join(
        a=rows,
        b=rows,
        on=f"a.k = b.k AND b.{x} > a.{x} - INTERVAL 2 MICROSECONDS AND b.{x} <= a.{x}",
        time=x if quoted else name,
        select=f"a.v AS av, b.{x} - a.{x} AS lag",
    )
    assert joined.to_arrow().num_rows == len(
        _expected("SELECT 1 FROM a, b WHERE a.k = b.k AND epoch_us(a.ts) - epoch_us(b.ts) BETWEEN 0 AND 1")
    )


def test_a_key_whose_code_would_have_the_name_of_a_column() -> None:
    """The code of the key `a.k`, which all streams share, is stored beside the column `k@key` of a."""
    rows = _rows("k@key", key="a.k")
    for plan in ("mjoin", TREE):
        joined = weir.join(
            a=rows,
            b=rows,
            c=rows,
            on="a.`a.k` = b.`a.k` AND b.`a.k` = c.`a.k`",
            within="1 minute",
            plan=plan,
            select="a.`a.k` AS k, a.`k@key` AS a, b.`k@key` AS b, c.`k@key` AS c",
        ).to_arrow()
        wanted = "SELECT a.k, a.x, b.x, c.x FROM a, b, c WHERE a.k = b.k AND b.k = c.k"
        assert _sorted(joined) == _expected(wanted)


@pytest.mark.parametrize("name", ["weir:lower(a.k)", "weir2:x", "weir!x"])
def test_names_of_computed_columns_are_refused(name: str) -> None:
    with pytest.raises(
        weir.QueryError, match="of stream 'b' has a name of columns that weir computes; rename it"
    ):
        weir.join(a=_rows("x"), b=_rows(name), on="a.k = b.k", within="1 minute")


@pytest.mark.parametrize("stream", ["weir", "weir_stream", "select", "slot0", "a`b", "x-y", "ünï", "1", "_"])
def test_a_stream_of_any_name(stream: str) -> None:
    s, rows = quote(stream), _rows("x")
    joined = weir.join(
        streams={stream: rows, "b": rows},
        on=f"{s}.k = b.k AND {s}.x <= b.x",
        within="1 minute",
        select=f"{s}.x AS p, b.x AS q",
    ).to_arrow()
    assert _sorted(joined) == _expected("SELECT a.x, b.x FROM a, b WHERE a.k = b.k AND a.x <= b.x")
