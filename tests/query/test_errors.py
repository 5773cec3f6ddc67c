"""Bad input: every error names the text, what was expected, and the nearest valid name."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from weir.errors import QueryError
from weir.query.build import build_query
from weir.query.model import Budget, Query, Stream
from weir.query.options import QueryOptions
from weir.query.sql import name_streams
from weir.query.windows import RowWindow, TimeWindow, rows

from .schemas import STOCKS, WIDE

TS = pa.timestamp("us")
OTHER = pa.schema({"ts": TS, "w": pa.list_(pa.float32(), 3), "k": pa.int64()})
GOOD_SCHEMAS = {"orders": WIDE, "clicks": WIDE}
GOOD = {"on": "orders.k = clicks.k", "within": "10 minutes"}
JOIN = "SELECT a.k FROM t a, u b WHERE a.k = b.k"


def make(schemas: Any = None, **changes: Any) -> Query:
    return build_query(GOOD_SCHEMAS if schemas is None else schemas, QueryOptions(**{**GOOD, **changes}))


def refused(**changes: Any) -> str:
    with pytest.raises(QueryError) as error:
        make(**changes)
    return str(error.value)


def check(message: str, fragments: list[str]) -> None:
    missing = [fragment for fragment in fragments if fragment not in message]
    assert not missing, f"{missing} not in: {message}"


def test_the_good_query_is_good() -> None:
    assert make().names == ("orders", "clicks")


@pytest.mark.parametrize(
    ("on", "fragments"),
    [
        ("ordrs.k = clicks.k", ["'ordrs'", "did you mean 'orders'?", "'clicks'"]),
        ("orders.kk = clicks.k", ["'kk'", "'k'"]),
        ("orders.zone = clicks.k", ["'zone'", "did you mean 'zoned'?"]),
        ("k = clicks.k", ["ambiguous", "'k'", "orders", "clicks"]),
        ("orders.k = clicks.k AND", ["orders.k = clicks.k AND"]),
        ("orders.k = = clicks.k", ["orders.k = = clicks.k"]),
        ("orders.flag = clicks.k", ["wrong types", "orders.flag", "clicks.k"]),
        ("orders.flag > clicks.i", ["wrong types", "orders.flag"]),
        ("frobnicate(orders.k) = clicks.k", ["frobnicate"]),
        ("orders.i + clicks.i", ["true or false", "orders.i + clicks.i", "is int"]),
        ("orders.k", ["true or false", "orders.k", "is string"]),
        ("count(orders.i) = clicks.i", ["COUNT(orders.i)", "aggregate"]),
        ("orders.i > 1", ["no condition connects", "'clicks'", "'orders'", "cross=True"]),
        ("orders.i > 1 AND clicks.i > 2", ["no condition connects"]),
        ("orders.ts > clicks.ts + INTERVAL 1 MONTH", ["MONTH"]),
        ("orders.ts > clicks.ts AND clicks.ts > orders.ts", ["'orders', 'clicks' contradict"]),
        (
            "orders.k = clicks.k AND orders.ts > clicks.ts + INTERVAL 10 MINUTES",
            ["'orders', 'clicks' contradict", "orders - clicks < 10 minutes"],
        ),
    ],
)
def test_conditions(on: str, fragments: list[str]) -> None:
    message = refused(on=on)
    check(message.lower(), [fragment.lower() for fragment in fragments])


@pytest.mark.parametrize(
    ("changes", "fragments"),
    [
        ({"on": None}, ["no condition connects stream 'clicks' to stream 'orders'", "cross=True"]),
        (
            {"schemas": dict.fromkeys("abcd", WIDE), "on": "a.k = b.k AND c.k = d.k"},
            ["no condition connects streams 'c', 'd' to streams 'a', 'b'"],
        ),
        ({"schemas": {}, "on": None}, ["no stream to join", "at least two"]),
        ({"schemas": {"orders": WIDE}, "on": None}, ["at least two streams", "only 'orders'"]),
        (
            {"schemas": {f"s{i}": WIDE for i in range(21)}, "on": None},
            ["at most 20 streams", "there are 21"],
        ),
        ({"schemas": {"a": WIDE, "A": WIDE}, "on": "a.k = A.k"}, ["each stream", "'a' and 'A'", "case"]),
        (
            {"schemas": {"orders": WIDE, "clicks": WIDE.append(pa.field("K", TS))}},
            ["column of stream 'clicks'", "'k' and 'K'"],
        ),
        ({"schemas": {"orders": WIDE, "": WIDE}}, ["needs a name"]),
    ],
)
def test_streams(changes: dict[str, Any], fragments: list[str]) -> None:
    check(refused(**changes), fragments)


@pytest.mark.parametrize(
    ("changes", "fragments"),
    [
        ({"time": "tss"}, ["column 'tss'", "time of stream 'orders'", "did you mean 'ts'?"]),
        ({"time": "day"}, ["must be a timestamp", "'day' is date"]),
        ({"time": {"orders": "k", "clicks": "ts"}}, ["stream 'orders' must be a timestamp", "'k' is string"]),
        ({"time": {"orders": "ts"}}, ["no time column", "'clicks'", "time="]),
        ({"time": {"orders": "ts", "click": "ts"}}, ["stream 'click'", "in time=", "did you mean 'clicks'?"]),
        ({"late": "-1 second"}, ["lateness cannot be negative", "'orders' has -1 second"]),
        ({"late": {"clicks": timedelta(seconds=-2)}}, ["lateness", "'clicks' has -2 seconds"]),
        ({"late": {"clicksy": "1 second"}}, ["stream 'clicksy'", "in late=", "did you mean 'clicks'?"]),
        ({"late": "soon"}, ["lateness of stream 'orders'", "'soon' is not an interval"]),
        ({"within": "0 seconds"}, ["window of stream 'orders'", "longer than zero", "0 seconds"]),
        (
            {"within": {"orders": "5 s", "clicks": "-5 s"}},
            ["stream 'clicks'", "longer than zero", "-5 seconds"],
        ),
        ({"within": "0 rows"}, ["at least one row", "0 rows"]),
        ({"within": "1 month"}, ["window of stream 'orders'", "no fixed length"]),
        ({"within": {"order": "1 hour"}}, ["stream 'order'", "in within=", "did you mean 'orders'?"]),
        ({"within": None}, ["stream 'orders' is unbounded", "within="]),
        ({"within": {"orders": "1 hour"}}, ["stream 'clicks' is unbounded", "'orders'"]),
        ({"within": 1.5}, ["window of stream 'orders'", "got 1.5"]),
        ({"fresh": "5 minutes"}, ["freshness of stream 'orders' is 5 minutes", "window of 10 minutes"]),
        ({"fresh": {"clicks": "9 minutes"}}, ["freshness of stream 'clicks'", "below its window"]),
        ({"fresh": {"clikcs": "1 hour"}}, ["stream 'clikcs'", "in fresh=", "did you mean 'clicks'?"]),
        ({"fresh": rows(5)}, ["freshness of stream 'orders' must be in time", "got 5 rows"]),
        ({"within": rows(5), "fresh": "1 hour"}, ["must be in rows", "got 1 hour"]),
        ({"within": rows(5), "fresh": rows(4)}, ["freshness of stream 'orders' is 4", "window of 5 rows"]),
        (
            {
                "within": None,
                "on": "orders.ts = clicks.ts + INTERVAL 5 SECONDS",
                "fresh": {"clicks": "1 second"},
            },
            ["freshness of stream 'clicks'", "window of 5 seconds"],
        ),
        ({"budget": 0.5}, ["weir.Budget(", "got 0.5"]),
        (
            {"budget": {"cpu": 0.5, "mem": "1g"}},
            ["'mem' in a budget; did you mean 'memory'?"],
        ),
        ({"budget": {"cpu": 0.5}}, ["weir.Budget(", "got {'cpu': 0.5}"]),
    ],
)
def test_settings(changes: dict[str, Any], fragments: list[str]) -> None:
    check(refused(**changes), fragments)


@pytest.mark.parametrize(
    ("select", "fragments"),
    [
        ("orders.k, clicks.k", ["each output column", "'k' and 'k'", "rename one with AS"]),
        ("orders.k, clicks.i AS K", ["'k' and 'K'"]),
        ("orders.kk", ["'kk'"]),
        ("order.*", ["stream 'order'", "did you mean 'orders'?"]),
        ("orders.*, clicks.*", ["each output column", "rename"]),
        ("sum(orders.i)", ["aggregates", "SUM(orders.i)", "join first"]),
        ("row_number() OVER (ORDER BY orders.i)", ["window functions", "ROW_NUMBER()"]),
        ("orders.k FROM x", ["select list 'orders.k FROM x'", "columns and expressions only"]),
        ("orders.k clicks.i", ["cannot read", "orders.k clicks.i", "near '.'", "expected a list"]),
        ("", ["select list ''"]),
        ("orders.i + ", ["orders.i +"]),
    ],
)
def test_select_lists(select: str, fragments: list[str]) -> None:
    check(refused(select=select), fragments)


def test_columns_that_collide_without_a_list() -> None:
    message = refused(
        schemas={"a": pa.schema({"ts": TS, "b_x": TS}), "a_b": pa.schema({"ts": TS, "x": TS})},
        on="a.b_x = a_b.x",
    )
    check(message, ["'a_b_x' and 'a_b_x'", "AS"])


def test_vectors_of_different_lengths() -> None:
    message = refused(schemas={"a": WIDE, "b": OTHER}, on="cosine(a.v, b.w) > 0.5")
    check(message, ["4", "3", "cosine"])


@pytest.mark.parametrize(
    ("budget", "fragments"),
    [
        ({"cpu": 0}, ["cpu is a share", "got 0"]),
        ({"cpu": -0.5}, ["cpu", "got -0.5"]),
        ({"cpu": 80}, ["above 0 and at most 1, like 0.8", "got 80"]),
        ({"cpu": 10**400}, ["at most 1", "got 1000"]),
        ({"cpu": float("nan")}, ["cpu", "got nan"]),
        ({"cpu": float("inf")}, ["at most 1", "got inf"]),
        ({"cpu": "0.8"}, ["a number", "got '0.8'"]),
        ({"cpu": "x"}, ["cpu is a share", "got 'x'"]),
        ({"cpu": True}, ["cpu is a share", "got True"]),
        ({"cpu": 1.5}, ["at most 1", "got 1.5"]),
        ({"memory": 0}, ["memory is a size above zero", "got 0"]),
        ({"memory": -5}, ["memory", "got -5"]),
        ({"memory": "0g"}, ["memory is a size above zero", "got '0g'"]),
        ({"memory": "lots"}, ["a budget's memory: 'lots' is not a size", "'2g'"]),
        ({"memory": True}, ["a budget's memory: True is not a size"]),
        ({"memory": 1e9}, ["a budget's memory: 1000000000.0 is not a size", "a whole number"]),
        ({"mem": "1g"}, ["unknown key 'mem' in weir.Budget; did you mean 'memory'?"]),
        ({"cpu": 0.5, "Memory": 1}, ["unknown key 'Memory' in weir.Budget; did you mean 'memory'?"]),
    ],
)
def test_budgets(budget: dict[str, Any], fragments: list[str]) -> None:
    with pytest.raises(QueryError) as error:
        Budget(**budget)
    check(str(error.value), fragments)


def test_a_budget_takes_numbers_of_any_kind_but_no_third() -> None:
    assert Budget(np.float32(0.5), np.int64(1024)) == Budget(0.5, "1k")
    with pytest.raises(QueryError, match=r"weir\.Budget takes 2 values, cpu, memory; got 3"):
        Budget(0.5, "1g", 3)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ("SELECT a.k", ["no FROM list"]),
        ("SELECT a.k FROM t a WINDOW 1 DAY", ["at least two streams", "only 'a'"]),
        ("SELECT a.k FROM t a, u A WINDOW 1 DAY", ["each stream", "'a' and 'A'"]),
        (
            "SELECT a.k FROM t a, uu b WHERE a.k = b.k WINDOW 1 DAY",
            ["table 'uu'", "in FROM", "did you mean 'u'?"],
        ),
        ("...k WINDOW 1 DAY", ["'kk'"]),
        ("...", ["'a' is unbounded"]),
        ("... WINDOW", ["WINDOW needs a length", "10 MINUTES"]),
        ("... WINDOW -5 MINUTES", ["longer than zero", "-5 minutes"]),
        ("... WINDOW 10", ["'10' is not an interval"]),
        ("... WINDOW 10 MINUTS", ["'MINUTS'", "did you mean 'minutes'?"]),
        ("... WINDOW 10 MINUTES, 5 MINUTES", ["'10 MINUTES'", "name a stream"]),
        ("... WINDOW a 1 DAY, a 2 DAYS", ["names stream 'a' twice"]),
        ("... WINDOW 1 DAY WINDOW 1 DAY", ["WINDOW is given twice"]),
        ("... WINDOW x 1 DAY", ["stream 'x'", "'a', 'b'"]),
        ("... WINDOW 1 DAY FRESHNESS a 1 HOUR", ["freshness of stream 'a'"]),
        ("... WINDOW 1 DAY FRESHNESS z 1 HOUR", ["stream 'z'"]),
        ("... WINDOW 1 DAY FRESHNESS 2 DAYS CLOCK SUN", ["CLOCK after FRESHNESS is EVENT or WALL; got SUN"]),
        ("... WINDOW 1 DAY FRESHNESS CLOCK WALL", ["FRESHNESS needs a length"]),
        ("... GROUP BY a.k WINDOW 1 DAY", ["GROUP BY", "join first"]),
        ("... ORDER BY a.k WINDOW 1 DAY", ["ORDER BY", "sort the stored"]),
        ("... LIMIT 5 WINDOW 1 DAY", ["LIMIT", "no end"]),
        ("... WINDOW 1 DAY LIMIT 5", ["LIMIT is not supported", "take the rows from the stored result"]),
        ("... WINDOW a 1 DAY, b 2 ROWS ORDER BY a.k", ["ORDER BY is not supported", "sort the stored"]),
        ("... WINDOW 1 DAY FRESHNESS 2 DAYS WHERE a.k > 1", ["WHERE stands after FRESHNESS", "at the end"]),
        ("... HAVING a.k > 1 WINDOW 1 DAY", ["HAVING"]),
        ("SELECT DISTINCT a.k FROM t a, u b WHERE a.k = b.k WINDOW 1 DAY", ["DISTINCT", "drop duplicates"]),
        (
            "SELECT count(*) FROM t a, u b WHERE a.k = b.k WINDOW 1 DAY",
            ["aggregates", "COUNT(*)", "join first"],
        ),
        ("SELECT a.k FROM t a LEFT JOIN u b ON a.k = b.k WINDOW 1 DAY", ["LEFT JOIN", "only inner joins"]),
        (
            "SELECT a.k FROM t a FULL OUTER JOIN u b ON a.k = b.k WINDOW 1 DAY",
            ["FULL OUTER JOIN", "only inner"],
        ),
        (
            "SELECT a.k FROM t a LEFT SEMI JOIN u b ON a.k = b.k WINDOW 1 DAY",
            ["LEFT SEMI JOIN", "only inner"],
        ),
        ("SELECT a.k FROM t a NATURAL JOIN u b WINDOW 1 DAY", ["NATURAL JOIN", "only inner"]),
        ("SELECT a.k FROM t a JOIN u b USING (nope) WINDOW 1 DAY", ["column 'nope' of 'b' in USING (nope)"]),
        (
            "SELECT a.k FROM t a, (SELECT * FROM u) b WHERE a.k = b.k WINDOW 1 DAY",
            ["subqueries", "SELECT * FROM u"],
        ),
        (
            "SELECT a.k FROM t a, u b WHERE a.k IN (SELECT k FROM u) WINDOW 1 DAY",
            ["subqueries", "SELECT k FROM u"],
        ),
        ("WITH x AS (SELECT 1) SELECT a.k FROM t a, x b WINDOW 1 DAY", ["WITH"]),
        ("SELECT a.k FROM t a, u b UNION SELECT 1", ["not one SELECT"]),
        ("SELECT a.k FROM t a, u b; SELECT 2", ["not one SELECT"]),
        ("INSERT INTO t SELECT 1", ["not one SELECT"]),
        ("SELECT a.k FROM t TABLESAMPLE (5 ROWS) a, u b WINDOW 1 DAY", ["not"]),
        ("SELECT a.k FROM t a, range(5) b WINDOW 1 DAY", ["not the name of a stream"]),
        ("SELECT a.k FRM t a", ["cannot read", "expected a statement like"]),
        ("", ["not one SELECT"]),
        ("SELECT a.k FROM t a, u b WHERE a.k + WINDOW 1 DAY", ["cannot read"]),
        ("SELECT a.k FROM t a, u b WHERE a.k = 'open WINDOW 1 DAY", ["cannot read"]),
    ],
)
def test_statements(text: str, fragments: list[str]) -> None:
    with pytest.raises(QueryError) as error:
        statement = text.replace("...", JOIN)
        build_query(name_streams({"t": WIDE, "u": WIDE}, statement), QueryOptions(statement=statement))
    check(str(error.value), fragments)


def test_an_unknown_stream_of_a_query() -> None:
    with pytest.raises(QueryError, match=r"unknown stream 'ordrs'; did you mean 'orders'\?"):
        make().stream("ordrs")


def test_the_model_cannot_be_built_wrong() -> None:
    with pytest.raises(QueryError, match="longer than zero"):
        TimeWindow(0)
    with pytest.raises(QueryError, match="at least one row"):
        RowWindow(-1)
    with pytest.raises(QueryError, match="whole number"):
        rows(1.5)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="time of stream 'a'"):
        Stream("a", STOCKS, "when")


@pytest.mark.parametrize(("name", "character"), [("a@line", "@"), ("(a b)", "("), ("a b", " "), ("s.a", ".")])
def test_names_that_states_are_called_by_are_refused(name: str, character: str) -> None:
    with pytest.raises(QueryError) as error:
        Stream(name, WIDE, "ts")
    check(str(error.value), [repr(name), f"must not contain {character!r}", "white space"])


def test_other_names_are_free() -> None:
    assert make({"1-é": WIDE, "_b": WIDE}, on="`1-é`.k = _b.k").names == ("1-é", "_b")


@pytest.mark.parametrize(
    ("changes", "fragments"),
    [
        ({"within": "300000000 weeks"}, ["the window of stream 'orders'", "too long"]),
        ({"within": timedelta.max}, ["the window of stream 'orders'", "too long"]),
        ({"within": "3000000000000000000 rows"}, ["fewer than", "rows"]),
        ({"late": "300000000 weeks"}, ["the lateness of stream 'orders'", "too long"]),
        ({"fresh": "300000000 weeks"}, ["the freshness of stream 'orders'", "too long"]),
        (
            {"on": "orders.k = clicks.k AND orders.ts <= clicks.ts + INTERVAL 27000000 DAYS"},
            ["orders - clicks <= 27000000 days", "too long"],
        ),
    ],
)
def test_lengths_beyond_what_times_can_hold(changes: dict[str, Any], fragments: list[str]) -> None:
    check(refused(**changes), fragments)
