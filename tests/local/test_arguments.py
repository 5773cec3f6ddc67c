"""Every argument of the wrong kind is refused in words, and a wrong name finds the right one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pyarrow.compute as pc
import pytest

import weir
from weir.errors import QueryError
from weir.plan.tree import Leaf

from .tables import GOOD, STATEMENT, A, B, joined, refused


@pytest.mark.parametrize(("changes", "fragments"), [
    ({"on": 5}, ["on= is text", "got 5"]),
    ({"on": ["a.k = b.k"]}, ["on= is text", "got list"]),
    ({"select": 5}, ["select= is text", "got 5"]),
    ({"select": ["a.k"]}, ["select= is text", "got list"]),
    ({"time": 5}, ["time= is text", "got 5"]),
    ({"time": 7}, ["time= is text, like 'ts'", "got 7"]),
    ({"time": {"a": "ts", "b": 7}}, ["time= is text", "got 7"]),
    ({"streams": [A]}, ["streams= maps names to tables", "got list"]),
    ({"streams": {1: A}}, ["streams= maps names", "1 is not a name"]),
    ({"streams": {"a": A}}, ["stream 'a' is given twice"]),
    ({"driver_order": 5}, ["names each stream once: 'a', 'b'", "got 5"]),
    ({"driver_order": "ab"}, ["driver_order is a list", "got 'ab'"]),
    ({"driver_order": ["a", 5]}, ["names each stream once"]),
    ({"driver_order": ["a", "a"]}, ["names each stream once"]),
    ({"plan": None}, ["plan is 'auto', 'mjoin', 'bjtree' or a join tree", "got None"]),
    ({"plan": 5}, ["plan is 'auto', 'mjoin'", "got 5"]),
    ({"plan": "best"}, ["plan is 'auto', 'mjoin'", "got 'best'"]),
    ({"plan": "mjion"}, ["got 'mjion'; did you mean 'mjoin'?"]),
    ({"plan": "((a b)"}, ["the plan '((a b)' is not a join tree, like '((a b) c)'"]),
    ({"plan": "(a c)"}, ["the plan (a c) must hold each stream of the query once"]),
    ({"driver_order": "timstamp"}, ["got 'timstamp'; did you mean 'timestamp'?"]),
    ({"shed": "radnom-drop"}, ["unknown strategy 'radnom-drop' in shed=; did you mean 'random-drop'?"]),
    ({"plan": Leaf("a")}, ["at least two streams"]),
    ({"functions": [1]}, ["functions= maps names to functions", "got list"]),
    ({"functions": {"f": 1}}, ["function 'f' must be weir.udf(...) or a function", "got 1"]),
    ({"functions": {1: len}}, ["1 is not a name"]),
    ({"on_null_time": "ignore"}, ["on_null_time is 'drop' or 'fail'", "got 'ignore'"]),
    ({"within": 10}, ["within=10 has no unit", "'10 seconds'", "'10 rows'"]),
    ({"within": {"a": "5 s", "b": 10}}, ["within=10 has no unit"]),
    ({"within": True}, ["within= is a length of time", "got True"]),
    ({"late": 10}, ["late=10 has no unit; write '10 seconds'"]),
    ({"late": {"a": False}}, ["late= is a length of time", "got False"]),
    ({"durability": "disk"}, ["durability is 'power' or 'process'", "got 'disk'"]),
    ({"idle": 60}, ["idle=60 has no unit; write '60 seconds'"]),
    ({"idle": "-1 minute"}, ["idle= must be longer than zero; got '-1 minute'"]),
    ({"idle": timedelta()}, ["idle= must be longer than zero"]),
    ({"fresh": 60}, ["fresh=60 has no unit", "'60 seconds'"]),
    ({"clock": "wal"}, ["clock is 'event' or 'wall'; got 'wal'"]),
    ({"clock": "wall"}, ["clock='wall' judges freshness in time, and no stream has one"]),
    ({"clock": "wall", "within": "5 rows", "fresh": "9 rows"}, ["and no stream has one; ask for it"]),
    ({"withn": "10 s"}, ["weir.join has no argument 'withn'; did you mean 'within'?"]),
    ({"how": "left"}, ["weir.join has no argument 'how'; joins are inner joins"]),
    ({"watermark": "5 seconds"}, ["weir.join has no argument 'watermark'; say late="]),
    ({"on": "a.k = b.k AND a.k IN (SELECT k FROM b)"}, ["subqueries are not supported: '(SELECT k FROM b)'"]),
    ({"fresh_": {"a": "1 hour"}}, ["no argument 'fresh_'; did you mean 'fresh'?"]),
    ({"Plan": "bjtree"}, ["no argument 'Plan'; did you mean 'plan'?"]),
    ({"adapt": "yes"}, ["adapt= is True, False or weir.Adapt(", "got 'yes'"]),
    ({"adapt": 0.05}, ["adapt= is True, False or weir.Adapt(", "got 0.05"]),
    ({"adapt": {"chang": 0.1}}, ["unknown key 'chang' in adapt=; did you mean 'change'?"]),
    ({"adapted": True}, ["no argument 'adapted'; did you mean 'adapt'?"]),
    ({"budget": weir.Budget(memory="9999t")}, ["memory of 9999t is more than this machine has"]),
    ({"budget": {"memroy": 5}}, ["unknown key 'memroy' in a budget; did you mean 'memory'?"]),
    ({"zebra": 5}, ["stream 'zebra' must be an Arrow, Polars or pandas table", "got int"]),
])  # fmt: skip
def test_arguments_of_the_wrong_kind(changes: dict[str, Any], fragments: list[str]) -> None:
    message = refused(**changes)
    for fragment in fragments:
        assert fragment in message


@pytest.mark.parametrize(("text", "changes", "fragments"), [
    (5, {}, ["a statement is text", "got 5"]),
    (None, {}, ["a statement is text", "got None"]),
    (STATEMENT, {"within": "10 s"}, ["weir.sql has no argument 'within'; write 'WINDOW 10 MINUTES'"]),
    (STATEMENT, {"fresh": "10 s"}, ["write 'FRESHNESS 1 HOUR' in the statement"]),
    (STATEMENT, {"on": "a.k = b.k"}, ["the condition after WHERE"]),
    (STATEMENT, {"lat": "10 s"}, ["did you mean 'late'?"]),
    (STATEMENT, {"late": 10}, ["late=10 has no unit"]),
    (STATEMENT, {"time": 5}, ["time= is text"]),
    (STATEMENT, {"streams": [A]}, ["streams= maps names"]),
    (STATEMENT, {"functions": [1]}, ["functions= maps names"]),
    (STATEMENT, {"on_null_time": None}, ["got None"]),
])  # fmt: skip
def test_arguments_of_a_statement(text: Any, changes: dict[str, Any], fragments: list[str]) -> None:
    with pytest.raises(QueryError) as error:
        weir.sql(text, a=A, b=B, **changes)
    for fragment in fragments:
        assert fragment in str(error.value)


@pytest.mark.parametrize(("call", "says"), [
    (lambda: weir.join(A, B, on="a.k = b.k"), "weir.join takes everything by name, like weir.join(orders="),
    (lambda: weir.join(A, B), "got Table and Table without a name"),
    (lambda: weir.join({"a": A, "b": B}, on="a.k = b.k"), "got dict without a name; pass it as streams="),
    (lambda: weir.join("a.k = b.k", a=A, b=B), "got 'a.k = b.k' without a name"),
    (lambda: weir.sql(STATEMENT, A, B), "weir.sql takes tables by the names that FROM gives them, like"),
    (lambda: weir.sql(STATEMENT, {"a": A, "b": B}), "got dict without a name; pass it as streams="),
    (lambda: weir.sql(A, B, STATEMENT), "a statement is text, like 'SELECT a.x FROM t a, u b WHERE"),
    (lambda: weir.sql(a=A, b=B), "a statement is text"),
])  # fmt: skip
def test_streams_have_names(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(QueryError) as error:
        call()
    assert says in str(error.value)


def test_a_stream_may_have_a_name_like_an_argument() -> None:
    made = weir.join(times=A, b=B, on="times.k = b.k", within=timedelta(seconds=10), select="b.k")
    assert made.to_arrow()["k"].to_pylist() == [1]


def test_a_plain_function_is_a_predicate() -> None:
    assert joined(on="same(a.k, b.k)", functions={"same": lambda x, y: pc.equal(x, y)}) == [1]


@pytest.mark.parametrize("mode", [None, True, "simple", "extended", "Formatted", "cost", "codegen"])
def test_explain_takes_the_modes_of_spark(mode: Any, capsys: pytest.CaptureFixture[str]) -> None:
    made = weir.join(a=A, b=B, **GOOD)
    made.explain(mode)
    assert capsys.readouterr().out == made.explanation() + "\n"


@pytest.mark.parametrize(("mode", "message"), [("extnded", "did you mean 'extended'"), (5, "got 5")])
def test_explain_refuses_other_modes(mode: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        weir.join(a=A, b=B, **GOOD).explain(mode)


@pytest.mark.parametrize(("settings", "fragments"), [
    ({"change": 0}, ["change= of weir.Adapt is a share above zero", "got 0"]),
    ({"change": -0.1}, ["change=", "got -0.1"]),
    ({"change": float("nan")}, ["change=", "got nan"]),
    ({"change": "5%"}, ["change=", "got '5%'"]),
    ({"gain": -0.1}, ["gain= of weir.Adapt is a share of zero or more", "got -0.1"]),
    ({"gain": True}, ["gain=", "got True"]),
    ({"calibrate": 0}, ["calibrate= of weir.Adapt is a whole number of batches, 1 or more", "got 0"]),
    ({"calibrate": 2.5}, ["calibrate=", "got 2.5"]),
    ({"chang": 0.1}, ["unknown key 'chang' in weir.Adapt; did you mean 'change'?"]),
])  # fmt: skip
def test_settings_of_adaptation_out_of_range(settings: dict[str, Any], fragments: list[str]) -> None:
    with pytest.raises(QueryError) as caught:
        weir.Adapt(**settings)
    for fragment in fragments:
        assert fragment in str(caught.value)
