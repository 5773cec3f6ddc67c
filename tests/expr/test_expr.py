"""Binding, errors, NULL and NaN, text and normalisation, without Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from weir.errors import EvaluationError, QueryError
from weir.expr.build import callable_names
from weir.expr.evaluate import FUNCTIONS, evaluate, evaluate_predicate, evaluate_rows
from weir.expr.nodes import Call, Column, Expr, Literal, OnError, columns_of, split_conjuncts, streams_of
from weir.expr.scope import Scope, udf
from weir.expr.session import Session
from weir.expr.to_sql import to_sql
from weir.expr.types import normalise
from weir.query.sql import bind_expression, parse_condition

NAN = float("nan")
UTC = pa.timestamp("us", "UTC")
PLACE = pa.struct([("Lat", pa.float64()), ("lon", pa.float64())])
SCOPE = Scope(
    {
        "a": pa.schema(
            {
                "Id": pa.int32(),
                "x": pa.float64(),
                "s": pa.string(),
                "ok": pa.bool_(),
                "ts": UTC,
                "m": pa.decimal128(10, 2),
                "v": pa.list_(pa.float32()),
                "w": pa.list_(pa.float32(), 2),
                "place": PLACE,
            }
        ),
        "b": pa.schema(
            {
                "id": pa.int64(),
                "x": pa.float64(),
                "y": pa.int32(),
                "t": pa.string(),
                "ts": UTC,
                "day": pa.date32(),
                "v": pa.list_(pa.float64()),
                "w": pa.list_(pa.float32(), 3),
                "u": pa.timestamp("us"),
            }
        ),
    },
    {
        "near": udf(lambda x, y: pc.less(pc.abs(pc.subtract(x, y)), 1.0)),
        "halve": udf(lambda x: x.to_numpy() / 2, "double"),
    },
)


def parse(text: str, scope: Scope) -> Expr:
    return bind_expression(parse_condition(text), scope)


def over(text: str, ansi: bool = True, on_error: OnError = "fail", **values: Any) -> list[Any]:
    """The values of an expression, its columns given by name."""
    expr = parse(text, replace(SCOPE, session=Session(ansi=ansi), on_error=on_error))
    rows = max(map(len, values.values()))
    answer = evaluate(expr, lambda column: pa.array(values[column.name], column.type), rows)
    assert isinstance(answer, pa.Array)
    assert answer.type == expr.type
    return answer.to_pylist()


@pytest.mark.parametrize(("text", "message"), [
    ("a.z = 1", "unknown column 'z' in stream 'a'"),
    ("a.idd = 1", "did you mean 'Id'"),
    ("c.x = 1", "unknown stream 'c'; known: 'a', 'b'"),
    ("aa.x = 1", "did you mean 'a'"),
    ("x = 1", "'x' is ambiguous: write 'a.x' or 'b.x'"),
    ("nowhere = 1", "unknown column 'nowhere'"),
    ("sqroot(a.x) > 1", "unknown function 'sqroot'; did you mean 'sqrt'"),
    ("zzzzzz(a.x) > 1", "unknown function 'zzzzzz'; a function of your own can be passed"),
    ("sum(a.x) > 1", "aggregates and window functions are not part of a join: 'SUM(a.x)'"),
    ("rand() > 0.5", "unknown function 'rand'"),
    ("a.ok = 1", "wrong types compared: boolean and int"),
    ("a.ok < a.x", "wrong types compared: boolean and double"),
    ("a.ts > 5", "wrong types compared: timestamp and int"),
    ("a.v = b.v", "wrong types compared: array<float> and array<double>"),
    ("a.s IN ('x', 2)", "wrong types compared"),
    ("a.ok BETWEEN 'p' AND 'q'", "wrong types compared: boolean and string in a.ok >= 'p'"),
    ("a.x AND a.ok", "'and' takes boolean, not (double, boolean), in a.x AND a.ok"),
    ("NOT a.x", "'not' takes boolean"),
    ("a.s + 1", "'+' takes numbers, not (string, int)"),
    ("upper(a.x)", "'upper' takes string, not (double)"),
    ("sqrt(a.x, 2)", "'sqrt' takes 1 argument, not 2"),
    ("coalesce(a.s, a.x)", "takes values of one type"),
    ("IF(a.x, 1, 2)", "boolean conditions"),
    ("cast(a.x AS STRING)", "cannot cast a.x from double to string"),
    ("cast(a.x AS MAP<INT, INT>)", "type"),
    ("a.place = a.place", "compares single values, not struct<Lat: double, lon: double>; compare its parts"),
    ("(a.x, a.s) = (b.x)", "rows of as many values"),
    ("(a.x, a.s) < (b.x, b.t)", "a row of values can only be compared by = or <=>"),
    ("struct(a.x) = struct(b.x)", "struct(...) is made of columns of one stream only"),
    ("a.x <", "cannot read 'a.x <'"),
    ("a.x = = 1", "cannot read"),
    ("", "'' is not one condition"),
    ("a.x = 'open", "cannot read"),
    ("SELECT 1", "'SELECT 1' is not one condition"),
    ("a.x IN (SELECT 1)", "subqueries are not supported"),
    ("a.*", "many columns"),
    ("a.ts + INTERVAL 3 MONTHS > b.ts", "no fixed length"),
    ("a.ts > DATE '2020-13-01'", "is not a DATE"),
    ("a.s RLIKE '(?=x)'", "regular expression"),
    ("a.s RLIKE b.t", "constant regular expression"),
    ("date_trunc('fortnight', a.ts) = a.ts", "unknown unit 'fortnight'"),
    ("cosine(a.w, b.w) > 0.9", "vectors of one length, not of 2 and 3"),
    ("cosine(a.x, b.v) > 0.9", "two arrays of float or double"),
    ("a.place.height > 1", "needs exactly one field 'height'"),
    ("a.x.y > 1", "a struct to take field 'y' of"),
    ("round(a.x, b.y)", "constant number of digits"),
    ("near()", "at least one argument"),
    ("near(a.x)", "function 'near' cannot be called with 1 argument: it is defined as near(x, y)"),
    ("near(a.x, b.x, 1)", "cannot be called with 3 arguments"),
    ("cast(a.s AS DECIMAL(x))", "did you mean 'decimal(p,s)'?"),
    ("cast(a.s AS DECIMAL(50))", "decimal(50,0) is not a type"),
])  # fmt: skip
def test_a_mistake_is_named(text: str, message: str) -> None:
    with pytest.raises(QueryError) as error:
        parse(text, SCOPE)
    assert message in str(error.value)


def test_names_ignore_case_and_keep_the_spelling_of_the_schema() -> None:
    assert parse("A.ID", SCOPE) == Column("a", "Id", pa.int32())
    assert parse("y", SCOPE) == Column("b", "y", pa.int32())
    assert parse("`a`.`x`", SCOPE) == Column("a", "x", pa.float64())


@pytest.mark.parametrize(("text", "bound"), [
    ("a.Id = b.id", "=(cast(a.Id), b.id)"),
    ("a.x != b.x", "<>(a.x, b.x)"),
    ("a.x IS NOT DISTINCT FROM b.x", "<=>(a.x, b.x)"),
    ("NOT a.x <=> b.x", "not(<=>(a.x, b.x))"),
    ("a.x BETWEEN 1 AND b.x", "and(>=(a.x, 1.0), <=(a.x, b.x))"),
    ("abs(a.x - b.x) <= 1", "<=(abs(-(a.x, b.x)), 1.0)"),
    ("b.ts - a.ts <= INTERVAL 5 SECONDS", "<=(-(b.ts, a.ts), 5000000)"),
    ("b.ts < a.ts + INTERVAL 1 HOUR 30 MINUTES", "<(b.ts, +(a.ts, 5400000000))"),
    ("b.ts < a.ts + INTERVAL '-2' MINUTES", "<(b.ts, +(a.ts, -120000000))"),
    ('a.s = "GOOG"', "=(a.s, 'GOOG')"),
    ("cosine(a.v, b.v) >= 0.9", ">=(cosine(a.v, b.v), 0.9)"),
    ("a.x > 2 * 3 + 1", ">(a.x, 7.0)"),
    ("a.place.LAT > 1", ">(.(a.place, 'LAT'), 1.0)"),
    ("b.u = a.ts", "=(cast(b.u), a.ts)"),
    ("(a.x, a.s) = (b.x, b.t)", "and(<=>(a.x, b.x), <=>(a.s, b.t))"),
    ("(a.x, a.s) <=> (b.x, b.t)", "and(<=>(a.x, b.x), <=>(a.s, b.t))"),
])  # fmt: skip
def test_binding_makes_casts_and_operators_plain(text: str, bound: str) -> None:
    assert str(parse(text, SCOPE)) == bound


@pytest.mark.parametrize(
    "text",
    [
        "a.x + 1.0 < b.x",
        "a.x - (b.x - 2.0) > 0.0",
        "(a.x + 1.0) * b.x = -a.x",
        "a.ok OR a.x > 1.0 AND NOT a.ok",
        "(a.ok OR a.x > 1.0) AND a.s IS NOT NULL",
        "a.s IN ('x', 'it\\'s')",
        "b.ts >= a.ts - INTERVAL 5 seconds",
        "a.v[0] > 1.0",
        "a.place.Lat > 1.0",
        "near(a.x, b.x)",
        "CASE WHEN a.ok THEN 1 ELSE b.y END = 1",
        "NOT (a.ok OR a.ok)",
        "a.s LIKE 'x%' ESCAPE '!'",
        "b.day = DATE '2020-02-29'",
        "a.ts < TIMESTAMP '2020-01-01 10:00:00Z'",
        "a.s IS NULL",
        "cast(a.s AS int) = 3",
        "(a.x > 1.0) = a.ok",
        "upper(a.s) RLIKE 'x'",
        "b.y % 2 = b.y DIV 3",
        "b.y & 3 = ~b.y",
    ],
)
def test_what_is_shown_reads_back_as_the_same_expression(text: str) -> None:
    expr = parse(text, SCOPE)
    assert to_sql(expr) == text
    assert parse(to_sql(expr), SCOPE) == expr


def test_nan_is_equal_to_itself_and_larger_than_every_number() -> None:
    values = {"Id": [0] * 5, "x": [NAN, 1.0, None, -0.0, float("inf")]}
    assert over("a.x = double('NaN')", **values) == [True, False, None, False, False]
    assert over("a.x > 5", **values) == [True, False, None, False, True]
    assert over("a.x < double('NaN')", **values) == [False, True, None, True, True]
    assert over("a.x >= double('Infinity')", **values) == [True, False, None, False, True]
    assert over("a.x = 0", **values) == [False, False, None, True, False]
    assert over("a.x IN (0, double('NaN'))", **values) == [True, False, None, True, False]
    assert over("a.x <=> NULL", **values) == [False, False, True, False, False]


def test_three_values_of_logic() -> None:
    values = {"ok": [True, False, None]}
    assert over("a.ok OR NULL", **values) == [True, None, None]
    assert over("a.ok AND NULL", **values) == [None, False, None]
    assert over("NOT a.ok", **values) == [False, True, None]
    assert over("a.s NOT IN ('x', NULL)", s=["x", "y", None]) == [False, None, None]


def test_without_ansi_mode_data_errors_are_null_and_whole_numbers_wrap() -> None:
    assert over("b.y / 0", ansi=False, y=[1]) == [None]
    assert over("b.y % 0", ansi=False, y=[1]) == [None]
    assert over("b.y + 2147483647", ansi=False, y=[1]) == [-(2**31)]
    assert over("cast(a.s AS INT)", ansi=False, s=["7", "seven"]) == [7, None]
    assert over("a.v[5]", ansi=False, v=[[1.0]]) == [None]


@pytest.mark.parametrize(("text", "values", "message"), [
    ("b.y / (b.y - 1)", {"y": [3, 1]}, "b.y / (b.y - 1) fails for the row with b.y = 1: division by zero"),
    ("b.y % 0 > 1", {"y": [1]}, "b.y % 0 of b.y % 0 > 1 fails for the row with b.y = 1: division by zero"),
    ("b.y + 2147483647", {"y": [0, 1]}, "the result does not fit int; use try_add"),
    ("cast(a.s AS INT)", {"s": ["7", "seven"]}, "a.s = seven: 'seven' is not a valid int; use try_cast"),
    ("cast(a.x AS TINYINT)", {"x": [1e3]}, "1000.0 does not fit tinyint"),
    ("a.v[5]", {"v": [[1.0]]}, "the array has no item 5; use get(array, index)"),
    ("element_at(a.v, b.y)", {"v": [[1.0]], "y": [-2]}, "the array has no item -2; use try_element_at"),
    ("cast('x' AS INT) > b.y", {"y": [1]}, "'x' is not a valid int"),
    ("a.ok OR 1 / b.y > 0", {"ok": [True, False], "y": [0, 0]}, "a.ok = False, b.y = 0"),
])  # fmt: skip
def test_in_ansi_mode_the_row_and_the_expression_that_fail_are_named(
    text: str, values: dict[str, list[Any]], message: str
) -> None:
    with pytest.raises(EvaluationError) as error:
        over(text, **values)
    assert message in str(error.value)
    assert "or pass on_error='null'" in str(error.value)
    assert over(text, on_error="null", **values)[-1] is None


@pytest.mark.parametrize(("text", "values", "expected"), [
    ("b.y <> 0 AND 1 / b.y > 0", {"y": [0, 2, None]}, [False, True, None]),
    ("b.y = 0 OR 1 / b.y > 0", {"y": [0, 2, None]}, [True, True, None]),
    ("CASE WHEN b.y = 0 THEN 9 ELSE 6 / b.y END", {"y": [0, 2]}, [9.0, 3.0]),
    ("IF(b.y > 0, 6 / b.y, -1)", {"y": [0, 2, None]}, [-1.0, 3.0, -1.0]),
    ("coalesce(b.y, 1 / 0)", {"y": [1, 2]}, [1.0, 2.0]),
    ("nvl2(b.y, 1, cast('x' AS INT))", {"y": [1, 2]}, [1, 1]),
    ("2 IN (b.y, 1 / (b.y - 2))", {"y": [2]}, [True]),
    ("a.x + 1 / b.y", {"x": [None], "y": [0]}, [None]),
    ("try_divide(6, b.y)", {"y": [0, 2]}, [None, 3.0]),
    ("try_add(b.y, 2147483647)", {"y": [0, 1]}, [2147483647, None]),
    ("try_cast(a.s AS INT)", {"s": ["x", "7"]}, [None, 7]),
    ("get(a.v, b.y)", {"v": [[1.0]], "y": [3]}, [None]),
    ("element_at(a.v, 2)", {"v": [[1.0, None]]}, [None]),
])  # fmt: skip
def test_what_is_not_evaluated_for_a_row_does_not_fail(
    text: str, values: dict[str, list[Any]], expected: list[Any]
) -> None:
    assert over(text, **values) == expected


def test_text_that_is_invalid_or_too_long_fails_for_its_row_alone() -> None:
    broken = pa.array([b"ok", b"\xff\xfe", b"fine"]).view(pa.string())
    values, failed = evaluate_rows(parse("upper(a.s)", SCOPE), lambda _: broken, 3)
    assert values.to_pylist() == ["OK", None, "FINE"] and failed.tolist() == [False, True, False]
    counts = {"s": pa.array(["x", "y"]), "y": pa.array([2, 2_000_000_000], pa.int32())}
    values, failed = evaluate_rows(parse("repeat(a.s, b.y)", SCOPE), lambda c: counts[c.name], 2)
    assert values.to_pylist() == ["xx", None] and failed.tolist() == [False, True]


def test_failures_of_rows_that_do_not_count_are_ignored() -> None:
    expr, among = parse("1 / b.y > 0", SCOPE), np.array([True, False])
    assert evaluate_predicate(expr, lambda _: pa.array([2, 0], pa.int32()), 2, among).tolist() == [
        True,
        False,
    ]
    with pytest.raises(EvaluationError):
        evaluate_predicate(expr, lambda _: pa.array([2, 0], pa.int32()), 2, ~among)


def test_a_function_that_returns_another_number_of_values_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = replace(FUNCTIONS["upper"], run=lambda out, text: text[:1])
    monkeypatch.setitem(FUNCTIONS, "upper", broken)
    with pytest.raises(RuntimeError, match="'upper' returned 1 values for 2 rows"):
        over("upper(a.s)", s=["x", "y"])


def test_local_times_follow_the_session() -> None:
    scope = replace(SCOPE, session=Session("America/New_York"))

    def over_times(text: str, *times: str) -> list[Any]:
        column = pa.array(times).cast(pa.timestamp("us")).cast(UTC)
        answer = evaluate(parse(text, scope), lambda _: column, len(times))
        return answer.to_pylist()

    # 2024-03-10 has no hour from 2 to 3, 2024-11-03 has two from 1 to 2.
    assert over_times("hour(a.ts)", "2024-03-10 06:30:00", "2024-03-10 07:30:00") == [1, 3]
    assert over_times("cast(a.ts AS STRING)", "2024-11-03 05:30:00", "2024-11-03 06:30:00") == [
        "2024-11-03 01:30:00",
        "2024-11-03 01:30:00",
    ]
    assert over_times("a.ts = TIMESTAMP '2024-03-10 02:30:00'", "2024-03-10 07:30:00") == [True]
    assert over_times("a.ts = '2024-11-03 01:30:00'", "2024-11-03 05:30:00") == [True]
    assert over_times("a.ts + INTERVAL 1 DAY = TIMESTAMP '2024-03-10 12:00:00'", "2024-03-09 17:00:00") == [
        True
    ]
    assert over_times("hour(a.ts)", "2050-07-01 12:00:00") == [8]


def test_holds_is_true_only_where_the_answer_is_true() -> None:
    expr = parse("a.x > 1", SCOPE)
    answer = evaluate_predicate(expr, lambda _: pa.array([0.0, 2.0, None, NAN] * 5)[1:], 19)
    assert answer.dtype == np.bool_
    assert answer.tolist() == ([False, True, False, True] * 5)[1:]
    assert evaluate_predicate(parse("1 > 2", SCOPE), lambda _: pa.array([]), 3).tolist() == [False] * 3
    assert evaluate_predicate(parse("a.x > NULL", SCOPE), lambda _: pa.array([1.0, 2.0]), 2).tolist() == [
        False,
        False,
    ]
    assert evaluate_predicate(expr, lambda _: pa.array([], pa.float64()), 0).tolist() == []


@pytest.mark.parametrize(
    "text",
    [
        "a.s LIKE 'x%'",
        "upper(a.s) = b.t",
        "levenshtein(a.s, b.t) < 2",
        "substring(a.s, b.y, 1) = 'x'",
        "instr(a.s, b.t) = 1",
        "a.x % b.x > 1",
        "a.x / b.x > 1",
        "cosine(a.v, b.v) > 0.5",
        "a.v[b.y] > 1",
        "array_contains(b.v, a.x)",
        "a.m / a.m > 1",
        "cast(a.s AS TIMESTAMP) = a.ts",
        "cast(a.s AS DECIMAL(5,2)) = a.m",
        "round(a.x, 1) = 1",
        "date_trunc('day', a.ts) = b.u",
        "near(a.x, b.x)",
        "a.Id IN (1, 2)",
        "cast(a.m AS DOUBLE) > 1",
        "greatest(a.x, b.x) > 1",
        "lpad(a.s, 3, '.') = b.t",
    ],
)
@pytest.mark.parametrize("rows", [0, 3])
def test_no_rows_and_only_nulls_are_fine(text: str, rows: int) -> None:
    assert not evaluate_predicate(parse(text, SCOPE), lambda column: pa.nulls(rows, column.type), rows).any()


def test_a_slice_of_a_column_is_read_from_its_own_place() -> None:
    whole = {
        "x": pa.array([9.0, 1.0, None, 4.0]),
        "v": pa.array([[9.0], [1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32())),
    }
    columns = {name: values[1:] for name, values in whole.items()}
    for text, expected in {
        "a.x % 3": [1.0, None, 1.0],
        "a.v[1]": [2.0, None, 4.0],
        "size(a.v)": [2, None, 2],
        "cosine(a.v, a.v) > 0.99": [True, None, True],
        "array_contains(a.v, float(1))": [True, None, False],
    }.items():
        assert evaluate(parse(text, SCOPE), lambda column: columns[column.name], 3).to_pylist() == expected


def test_each_column_is_fetched_once() -> None:
    fetched: list[Column] = []

    def fetch(column: Column) -> pa.Array:
        fetched.append(column)
        return pa.array([1.0])

    evaluate(parse("a.x * a.x + a.x > b.x", SCOPE), fetch, 1)
    assert [str(column) for column in fetched] == ["a.x", "b.x"]


def test_cosine_of_unequal_vectors_is_null() -> None:
    left = [[1.0, 0.0], [1.0], None, [0.0, 0.0], [1.0, None], [], [float("inf")], [3.0, 4.0, 0.0]]
    right = [[1.0, 1.0], [1.0, 2.0], [1.0], [1.0, 1.0], [1.0, 2.0], [], [0.0], [3.0, 4.0, 0.0]]
    scope = Scope({name: pa.schema({"v": pa.list_(pa.float64())}) for name in "ab"})
    columns = {"a": pa.array(left), "b": pa.array(right)}
    answer = evaluate(parse("cosine(a.v, b.v)", scope), lambda column: columns[column.stream], 8).to_pylist()
    assert answer[0] == pytest.approx(0.5**0.5)
    assert answer[1:7] == [None] * 6
    assert answer[7] == pytest.approx(1.0)


def test_a_function_of_the_user_gets_and_returns_whole_arrays() -> None:
    assert over("near(a.x, 1.0D)", x=[0.5, 3.0, None]) == [True, False, None]
    assert over("HALVE(a.x) + 1", x=[2.0, 4.0]) == [2.0, 3.0]
    assert streams_of(parse("near(a.x, b.x)", SCOPE)) == {"a", "b"}


def test_a_function_of_the_user_must_return_as_many_values() -> None:
    scope = Scope(SCOPE.schemas, {"short": udf(lambda x: x[:1])})
    with pytest.raises(QueryError, match="function 'short' returned 1 values for 2 rows"):
        evaluate_predicate(parse("short(a.ok)", scope), lambda _: pa.array([True, False]), 2)
    with pytest.raises(QueryError, match="a function over Arrow arrays"):
        udf(1)  # type: ignore[call-overload]
    with pytest.raises(QueryError, match="unknown type 'no type'"):
        udf("no type")
    assert udf(returns="double")(len).returns == udf("double")(len).returns == pa.float64()
    with pytest.raises(QueryError, match="unknown type 'bolean'; did you mean 'boolean'"):
        udf(len, "bolean")
    with pytest.raises(QueryError, match=r"returns= is a type like 'double'.*got <class 'int'>"):
        udf(len, int)  # type: ignore[arg-type]


def _fails(ok: pa.Array) -> pa.Array:
    raise KeyError("lost")


@pytest.mark.parametrize(("fn", "message"), [
    (lambda ok: True, "returned bool, not an array"),
    (lambda ok: pa.scalar(True), "returned BooleanScalar, not an array"),
    (lambda ok: np.bool_(True), "not an array"),
    (lambda ok: "ab", "returned str, not an array"),
    (lambda ok: None, "returned NoneType, not an array"),
    (lambda ok: {"a": 1, "b": 2}, "returned dict, not an array"),
    (lambda ok: np.ones((2, 2)), "returned ndarray, not an array"),
    (lambda ok: pa.array(["true", "no"]), "returned string"),
    (lambda ok: np.array(["x", "y"]), "returned string"),
    (lambda ok: pa.array([[1], [2]]), "returned array<bigint>"),
    (lambda ok: [True] * 3, "returned 3 values for 2 rows"),
    (_fails, "raised KeyError: 'lost'"),
])  # fmt: skip
def test_a_function_of_the_user_that_breaks_its_promise_is_named(fn: Any, message: str) -> None:
    scope = Scope(SCOPE.schemas, {"mine": udf(fn)})
    with pytest.raises(QueryError) as error:
        evaluate_predicate(parse("mine(a.ok)", scope), lambda _: pa.array([True, False]), 2)
    assert "function 'mine'" in str(error.value)
    assert message in str(error.value)
    assert "must return an Arrow or NumPy array of as many values, of type boolean" in str(error.value)
    assert isinstance(error.value.__cause__, KeyError) == (fn is _fails)


def test_a_function_without_a_signature_can_be_called() -> None:
    scope = Scope(SCOPE.schemas, {"larger": udf(np.maximum, "double")})
    expr = parse("larger(a.x, b.x)", scope)
    columns = {"a": pa.array([1.0, 5.0]), "b": pa.array([3.0, 2.0])}
    assert evaluate(expr, lambda column: columns[column.stream], 2).to_pylist() == [3.0, 5.0]


def test_conjuncts_and_columns_of_a_bound_predicate() -> None:
    expr = parse("a.Id = b.id AND a.x > 1 AND (a.ok OR b.y = 1)", SCOPE)
    assert [to_sql(part) for part in split_conjuncts(expr)] == ["a.Id = b.id", "a.x > 1.0", "a.ok OR b.y = 1"]
    assert [str(column) for column in columns_of(expr)] == ["a.Id", "b.id", "a.x", "a.ok", "b.y"]


def test_normalise_gives_sparks_types_at_every_depth() -> None:
    types = {
        pa.large_string(): pa.string(),
        pa.string_view(): pa.string(),
        pa.dictionary(pa.int8(), pa.large_string()): pa.string(),
        pa.large_binary(): pa.binary(),
        pa.binary(4): pa.binary(),
        pa.uint8(): pa.int16(),
        pa.uint16(): pa.int32(),
        pa.uint32(): pa.int64(),
        pa.uint64(): pa.decimal128(20, 0),
        pa.timestamp("ns"): pa.timestamp("us"),
        pa.timestamp("s", "Asia/Tokyo"): UTC,
        pa.date64(): pa.date32(),
        pa.float16(): pa.float32(),
        pa.duration("ns"): pa.duration("us"),
        pa.decimal256(20, 3): pa.decimal128(20, 3),
        pa.decimal32(5, 2): pa.decimal128(5, 2),
        pa.large_list(pa.uint8()): pa.list_(pa.int16()),
        pa.list_(pa.float16(), 3): pa.list_(pa.float32(), 3),
        pa.struct([("x", pa.date64())]): pa.struct([("x", pa.date32())]),
        pa.int32(): pa.int32(),
    }
    for given, wanted in types.items():
        assert normalise(given) == wanted
    schema = pa.schema([pa.field("x", pa.uint8(), nullable=False)])
    assert normalise(schema) == pa.schema([pa.field("x", pa.int16(), nullable=False)])


def test_normalise_converts_a_table_and_leaves_a_good_one_alone() -> None:
    table = pa.table(
        {"t": pa.array([1_500, None], pa.timestamp("ns")), "s": pa.array(["x", None]).dictionary_encode()}
    )
    made = normalise(table)
    assert made.schema == pa.schema({"t": pa.timestamp("us"), "s": pa.string()})
    assert made["t"].cast(pa.int64()).to_pylist() == [1, None]
    assert made["s"].to_pylist() == ["x", None]
    assert normalise(made) is made


def test_normalise_decodes_dictionaries_of_views_at_every_depth() -> None:
    coded = pa.DictionaryArray.from_arrays(
        pa.array([1, 0, None, 1], pa.uint8()), pa.array(["x", "y"], pa.string_view())
    )
    lists = pa.LargeListArray.from_arrays(pa.array([0, 1, 1, 4]), coded)
    pairs = pa.FixedSizeListArray.from_arrays(coded, 2)
    structs = pa.StructArray.from_arrays([coded], ["c"], mask=pa.array([False, True, False, False]))
    for array, wanted in (
        (coded, ["y", "x", None, "y"]),
        (lists, [["y"], [], ["x", None, "y"]]),
        (pairs, [["y", "x"], [None, "y"]]),
        (structs, [{"c": "y"}, None, {"c": None}, {"c": "y"}]),
    ):
        whole = normalise(pa.table({"c": array}))
        assert whole["c"].to_pylist() == wanted
        assert normalise(pa.table({"c": array.slice(1)}))["c"].to_pylist() == wanted[1:]
        assert normalise(pa.table({"c": array.slice(0, 0)})).schema == whole.schema


def test_expressions_are_values() -> None:
    left, right = parse("a.x > 1", SCOPE), parse("A.X > 1", SCOPE)
    assert left == right
    assert hash(left) == hash(right)
    assert isinstance(left, Call)
    assert left.args[1] == Literal(1.0, pa.float64())


def test_the_table_names_what_can_be_called() -> None:
    names = list(callable_names())
    assert len(names) > 120
    assert {"sqrt", "levenshtein", "cosine", "nvl"} <= set(names)
