"""The SQL front end and the query it builds."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import weir
from weir.errors import QueryError
from weir.expr.to_sql import to_sql
from weir.query.build import build_query
from weir.query.describe import describe
from weir.query.model import Query
from weir.query.options import QueryOptions
from weir.query.sql import name_streams, parse_sql
from weir.query.window_clauses import split_window_clauses
from weir.query.windows import RowWindow, TimeWindow

from .schemas import STOCKS, WIDE

MINUTE = 60_000_000
TABLES = {"stocksNYC": STOCKS, "stocksTokyo": STOCKS, "t": WIDE, "u": WIDE, "w": WIDE}
NAMED = {"a": STOCKS, "b": STOCKS}
JAQPOT_Q1 = """SELECT B.symbol, B.price FROM stocksNYC A, stocksTokyo B
    WHERE A.symbol = "GOOG" and B.volume > A.volume
    WINDOW 10 mins"""


def asked(text: str, **options: Any) -> Query:
    return build_query(name_streams(TABLES, text), QueryOptions(statement=text, **options))


def test_the_papers_query_as_printed() -> None:
    found = asked(JAQPOT_Q1)
    assert name_streams({name: name for name in TABLES}, JAQPOT_Q1) == {"A": "stocksNYC", "B": "stocksTokyo"}
    assert found.names == ("A", "B")
    assert found.windows == (TimeWindow(10 * MINUTE),) * 2
    assert [output.name for output in found.select] == ["symbol", "price"]
    assert [part.stream for part in found.predicate.filters] == ["A"]
    assert [type(kind).__name__ for kind in found.predicate.conjuncts] == ["Comparison"]


def test_freshness_per_stream() -> None:
    found = asked(f"{JAQPOT_Q1} FRESHNESS A 12 MINUTES, B 15 MINUTES")
    assert found.fresh == (12 * MINUTE, 15 * MINUTE)


@pytest.mark.parametrize(
    ("clause", "clock"),
    [("", "event"), ("CLOCK WALL", "wall"), ("clock event", "event"), ("WINDOW 10 MINUTES", "event")],
)
def test_the_clock_of_freshness(clause: str, clock: str) -> None:
    text = JAQPOT_Q1.replace("WINDOW 10 mins", "") if clause.startswith("WINDOW") else JAQPOT_Q1
    assert asked(f"{text} FRESHNESS A 12 MINUTES, B '15 minutes' {clause}").clock == clock


def test_a_stream_may_be_called_clock() -> None:
    text = "SELECT clock.k FROM t clock, u b WHERE clock.k = b.k WINDOW 1 HOUR FRESHNESS"
    assert asked(f"{text} clock '2 hours'").fresh == (120 * MINUTE, None)
    assert asked(f"{text} b 3 HOURS, clock 2 HOURS CLOCK WALL").clock == "wall"


def test_sql_and_arguments_build_the_same_query() -> None:
    found = asked(
        "SELECT t.k AS key, u.i + 1 AS n FROM t, u WHERE t.k = u.k AND t.i > 3 "
        "WINDOW 1 HOUR FRESHNESS t 2 HOURS"
    )
    same = build_query(
        {"t": WIDE, "u": WIDE},
        QueryOptions(
            on="t.k = u.k AND t.i > 3",
            within="1 hour",
            fresh={"t": "2 hours"},
            select="t.k AS key, u.i + 1 AS n",
        ),
    )
    assert found == same


@pytest.mark.parametrize(
    ("tail", "windows"),
    [
        ("WINDOW 10 MINUTES", (TimeWindow(10 * MINUTE), TimeWindow(10 * MINUTE))),
        ("window 10 minutes;", (TimeWindow(10 * MINUTE), TimeWindow(10 * MINUTE))),
        ("WINDOW INTERVAL 10 MINUTES ; ", (TimeWindow(10 * MINUTE), TimeWindow(10 * MINUTE))),
        ("WINDOW 1 HOUR 30 MINUTES", (TimeWindow(90 * MINUTE), TimeWindow(90 * MINUTE))),
        ("WINDOW 5s", (TimeWindow(5_000_000), TimeWindow(5_000_000))),
        ("WINDOW 1000 ROWS", (RowWindow(1000), RowWindow(1000))),
        ("WINDOW a 10 MINUTES, b 1000 ROWS", (TimeWindow(10 * MINUTE), RowWindow(1000))),
        ("WINDOW B 1 ROW, A 10 MINUTES -- the end", (TimeWindow(10 * MINUTE), RowWindow(1))),
        ("WINDOW `a` 10 MINUTES, b 1 MINUTE", (TimeWindow(10 * MINUTE), TimeWindow(MINUTE))),
        ("FRESHNESS 1 DAY WINDOW 10 MINUTES", (TimeWindow(10 * MINUTE), TimeWindow(10 * MINUTE))),
    ],
)
def test_window_clauses(tail: str, windows: tuple[object, object]) -> None:
    assert asked(f"SELECT a.k FROM t a, u b WHERE a.k = b.k {tail}").windows == windows


def test_row_freshness() -> None:
    text = "SELECT a.k FROM t a, u b WHERE a.k = b.k WINDOW a 5 ROWS, b 1 HOUR FRESHNESS a 9 ROWS, b 2 HOURS"
    assert asked(text).fresh == (9, 120 * MINUTE)


def test_inner_joins() -> None:
    found = asked(
        "SELECT a.k FROM t a JOIN u b ON a.k = b.k INNER JOIN w AS c ON b.i = c.i "
        "WHERE a.i > 1 WINDOW 1 MINUTE"
    )
    assert found.names == ("a", "b", "c")
    assert [known.name for known in found.predicate.classes] == ["k", "i"]


def test_a_table_under_two_names_is_joined_with_itself() -> None:
    text = "SELECT x.k FROM t x, T y WHERE x.k = y.k AND x.i < y.i WINDOW 1 MINUTE"
    assert asked(text).names == ("x", "y")
    assert name_streams({"t": "t"}, text) == {"x": "t", "y": "t"}


def test_bounds_may_replace_the_window() -> None:
    found = asked(
        "SELECT a.k FROM t a JOIN u b ON a.k = b.k "
        "AND b.ts BETWEEN a.ts - INTERVAL 5 SECONDS AND a.ts + INTERVAL 1 MINUTE"
    )
    assert found.windows == (None, None)
    assert [found.bounds.retention(i) for i in range(2)] == [MINUTE + 1, 5_000_001]


@pytest.mark.parametrize(
    ("text", "head"),
    [
        (
            "SELECT 'x WINDOW 5 MINUTES' AS s FROM a, b WINDOW 1 DAY",
            "SELECT 'x WINDOW 5 MINUTES' AS s FROM a, b",
        ),
        ('SELECT "WINDOW 5 ROWS" FROM a, b', 'SELECT "WINDOW 5 ROWS" FROM a, b'),
        ("SELECT window FROM a WHERE window > 5 WINDOW 1 DAY", "SELECT window FROM a WHERE window > 5"),
        (
            "SELECT a.window FROM a WHERE a.x = a.window WINDOW 1 DAY",
            "SELECT a.window FROM a WHERE a.x = a.window",
        ),
        ("SELECT a.x AS window FROM t window, b WINDOW 1 DAY", "SELECT a.x AS window FROM t window, b"),
        ("SELECT `window` FROM a, b -- WINDOW 5 DAYS", "SELECT `window` FROM a, b"),
        ("SELECT 1 FROM a WHERE f(x, 1) WINDOW 1 DAY", "SELECT 1 FROM a WHERE f(x, 1)"),
    ],
)
def test_text_that_only_looks_like_a_clause(text: str, head: str) -> None:
    assert split_window_clauses(text)[0] == head


@pytest.mark.parametrize(
    ("select", "names"),
    [
        ("*", ["a_ts", "a_symbol", "a_price", "a_volume", "b_ts", "b_symbol", "b_price", "b_volume"]),
        ("a.*, b.price AS other", ["ts", "symbol", "price", "volume", "other"]),
        ("A.Price, b.volume `the volume`", ["price", "the volume"]),
        ("a.price + b.price", ["a.price + b.price"]),
        ("1 AS one", ["one"]),
    ],
)
def test_select_lists(select: str, names: list[str]) -> None:
    text = f"SELECT {select} FROM stocksNYC a, stocksTokyo b WHERE a.symbol = b.symbol WINDOW 1 MINUTE"
    found = asked(text)
    assert [output.name for output in found.select] == names
    same = build_query(NAMED, QueryOptions(on="a.symbol = b.symbol", within="1 minute", select=select))
    assert same.select == found.select


def test_without_a_list_every_column_is_named_after_its_stream() -> None:
    found = build_query(NAMED, QueryOptions(on="a.symbol = b.symbol", within="1 minute"))
    assert [output.name for output in found.select][:2] == ["a_ts", "a_symbol"]
    assert [to_sql(output.expr) for output in found.select][-1] == "b.volume"


def test_names_are_found_in_any_case() -> None:
    found = build_query(
        {"Nyc": STOCKS, "tokyo": STOCKS},
        QueryOptions(
            on="NYC.SYMBOL = Tokyo.symbol",
            time={"nyc": "TS", "TOKYO": "ts"},
            within={"NYC": "1 minute", "tokyo": "1 minute"},
            select="nyc.Price",
        ),
    )
    assert found.stream("NYC").time == "ts"
    assert to_sql(found.select[0].expr) == "Nyc.price"


def test_cross_joins_only_when_asked_for() -> None:
    text = "SELECT a.k FROM t a CROSS JOIN u b WINDOW 1 MINUTE"
    assert asked(text, cross=True).predicate.conjuncts == ()
    with pytest.raises(QueryError, match="cross=True"):
        asked(text)


def test_a_statement_keeps_its_parts() -> None:
    statement = parse_sql("SELECT a.k FROM db.t a JOIN u ON a.k = u.k WHERE a.i = 1 WINDOW a 1 DAY, u 2 ROWS")
    assert statement.tables == (("db.t", "a"), ("u", "u"))
    assert statement.window == {"a": "1 DAY", "u": "2 ROWS"}
    assert statement.freshness is None
    assert len(statement.conditions) == 2


def test_describe() -> None:
    text = describe(
        asked(
            "SELECT a.k, b.i + 1 AS n FROM t a, u b, w c WHERE a.k = b.k AND b.i > c.i AND a.flag "
            "AND c.ts >= b.ts WINDOW a 10 MINUTES, b 10 MINUTES, c 5 MINUTES FRESHNESS a 12 MINUTES",
            late={"a": "5 seconds"},
        )
    )
    assert text.splitlines()[:4] == [
        "streams",
        "  a: time ts, window 10 minutes, kept 10 minutes, late 5 seconds, fresh 12 minutes",
        "  b: time ts, window 10 minutes, kept 10 minutes",
        "  c: time ts, window 5 minutes, kept 5 minutes",
    ]
    for line in [
        "  filter: a.flag",
        "  equality: a.k = b.k",
        "  comparison: b.i > c.i",
        "  time bound: b - c <= 0 seconds",
        "  k: a.k = b.k as string",
        "  n: b.i + 1",
    ]:
        assert line in text.splitlines(), text


# --- USING


def test_using_is_an_equality_and_one_column() -> None:
    moments = pa.array([1, 2], pa.timestamp("s"))
    orders = pa.table({"ts": moments, "K": [1, 2], "x": ["p", "q"]})
    payments = pa.table({"ts": moments, "k": [2, 3], "y": ["r", "s"]})
    refunds = pa.table({"ts": moments, "k": [2, 2], "z": [5, 6]})
    tables = {"orders": orders, "payments": payments, "refunds": refunds}
    text = "SELECT {} FROM orders o JOIN payments p USING (k) JOIN refunds r USING (k) {} WINDOW 1 DAY"
    every = weir.sql(text.format("*", "WHERE k < r.z"), **tables)
    assert every.schema.names == ["K", "o_ts", "o_x", "p_ts", "p_y", "r_ts", "r_z"]
    assert sorted(row["r_z"] for row in every.to_arrow().to_pylist()) == [5, 6]
    some = weir.sql(text.format("k, k + 1 AS next, p.k AS other, x", ""), **tables).to_arrow()
    assert some.to_pylist() == [{"k": 2, "next": 3, "other": 2, "x": "q"}] * 2


def test_using_of_a_column_that_is_ambiguous_or_missing_is_refused() -> None:
    row = pa.schema({"ts": pa.timestamp("s"), "k": pa.int64()})
    other = pa.schema({"ts": pa.timestamp("s"), "k": pa.int64(), "j": pa.int64()})
    text = "SELECT * FROM a JOIN b ON a.k = b.k JOIN c USING ({}) WINDOW 1 DAY"
    with pytest.raises(QueryError, match=r"USING \(k\) is ambiguous: 'a' and 'b' have it; write ON"):
        weir.sql(text.format("k"), a=row, b=row, c=other)
    with pytest.raises(QueryError, match=r"unknown column 'j' left of JOIN ... USING \(j\); known"):
        weir.sql(text.format("j"), a=row, b=row, c=other)
    with pytest.raises(QueryError, match="NATURAL JOIN is not supported"):
        weir.sql("SELECT * FROM a NATURAL JOIN b WINDOW 1 DAY", a=row, b=row)
