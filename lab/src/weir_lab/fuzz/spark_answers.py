"""Compare expressions with Spark itself, values and errors, for any session: the oracle of `weir.expr`.

One Spark job answers many expressions over all rows: `TryEval(struct(expression))` is NULL where Spark fails,
and a struct around the value, NULL or not, where it does not. (The CASE makes the value nullable.)
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import QueryError
from weir.expr.evaluate import evaluate_rows
from weir.expr.scope import Scope
from weir.expr.session import Session
from weir.expr.types import TIMESTAMP
from weir.query.sql import bind_value, parse_condition
from weir_lab.fuzz.sessions import open_session

# The item of a row for which evaluation fails.
FAILS = "fails"
_CHUNK = 120
_TWO_DAYS = 2 * 86_400


@dataclass(frozen=True)
class Difference:
    """An expression for which Spark and weir differ, what each says of the first row, and how many differ."""

    expression: str
    row: int
    spark: Any
    weir: Any
    rows: int
    values: Mapping[str, Any]

    def __str__(self) -> str:
        got = f"Spark {self.spark!r}, weir {self.weir!r}"
        return f"{self.expression}: {got} in row {self.row} and {self.rows - 1} more, {self.values}"


@dataclass(frozen=True)
class Answer:
    """The type and the items of an expression over all rows; no type if the expression is refused."""

    type: pa.DataType | None
    items: Sequence[Any]


def find_differences(
    answers: Mapping[str, Answer], tables: Mapping[str, pa.Table], session: Session
) -> list[Difference]:
    """Compare Spark's answers with weir's in a session."""
    scope = Scope({name: table.schema for name, table in tables.items()}, session=session)
    pairs = ((text, theirs, _ask_weir(text, scope, tables)) for text, theirs in answers.items())
    return [each for text, theirs, ours in pairs for each in _compare(text, theirs, ours, tables)]


def _compare(text: str, theirs: Answer, ours: Answer, tables: Mapping[str, pa.Table]) -> list[Difference]:
    if theirs.type != ours.type:
        what = [(answer.type, *(answer.items if answer.type is None else ())) for answer in (theirs, ours)]
        return [Difference(text, 0, what[0], what[1], 1, {})]
    pairs = enumerate(zip(theirs.items, ours.items, strict=True))
    rows = [row for row, pair in pairs if not _are_same(*pair) and not _is_of_today(theirs.type, *pair)]
    if not rows or ours.type is None:
        return []
    named = {f"{s}.{n}": t[n][rows[0]] for s, t in tables.items() for n in t.column_names}
    values = {name: value for name, value in named.items() if name in text}
    return [Difference(text, rows[0], theirs.items[rows[0]], ours.items[rows[0]], len(rows), values)]


def _is_of_today(type: pa.DataType | None, theirs: Any, ours: Any) -> bool:
    """True where Spark adds today's date to a time of day: weir has no timestamp there, as another day would.

    docs/expressions.md says so.
    """
    is_missing = type == TIMESTAMP and isinstance(theirs, int) and ours in (None, FAILS)
    return is_missing and abs(theirs / 1e6 - time.time()) < _TWO_DAYS


def _are_same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_are_same, left, right))
    return type(left) is type(right) and bool(left == right)


def _ask_weir(text: str, scope: Scope, tables: Mapping[str, pa.Table]) -> Answer:
    rows = next(iter(tables.values())).num_rows
    try:
        expr = bind_value(parse_condition(text), scope)
    except QueryError as error:
        return Answer(None, [str(error)])
    except Exception as error:
        return Answer(None, [repr(error)])
    value, failed = evaluate_rows(expr, lambda c: tables[c.stream][c.name].combine_chunks(), rows)
    items = zip(to_items(value), failed.tolist(), strict=True)
    return Answer(expr.type, [FAILS if fails else item for item, fails in items])


def to_items(values: pa.Array) -> list[Any]:
    """Return Python values; times as numbers, as Python's calendar is shorter than Spark's; text as bytes."""
    if pa.types.is_string(values.type):
        return list(values.cast(pa.binary()).to_pylist())  # it may be no valid UTF-8
    if pa.types.is_temporal(values.type):
        values = (
            pc.cast(pc.cast(values, pa.int32()), pa.int64())
            if pa.types.is_date(values.type)
            else pc.cast(values, pa.int64())
        )
    return list(values.to_pylist())


def ask_spark(
    spark: Any, expressions: Sequence[str], tables: Mapping[str, pa.Table], session: Session
) -> dict[str, Answer]:
    """Evaluate expressions over the rows of tables of one length by Spark, in a session."""
    own = open_session(spark, session)
    fields = {f"{s}_{f.name}": (s, f) for s, t in tables.items() for f in t.schema}
    columns = [to_spark(column) for table in tables.values() for column in table.columns]
    numbers = pa.array(range(len(columns[0])))
    rows = own.createDataFrame(pa.table([*columns, numbers], names=[*fields, "row"]))
    parts: dict[str, list[str]] = {name: [] for name in tables}
    for name, (stream, field) in fields.items():
        is_naive = field.type == pa.timestamp("us")
        parts[stream].append(f"{f'cast({name} AS TIMESTAMP_NTZ)' if is_naive else name} AS {field.name}")
    pairs = rows.selectExpr("row", *(f"struct({', '.join(named)}) AS {s}" for s, named in parts.items()))
    # Else every expression is optimised together with the structs that it reads.
    pairs = pairs.localCheckpoint()
    answers: dict[str, Answer] = {}
    for start in range(0, len(expressions), _CHUNK):
        answers |= _evaluate(own, pairs, expressions[start : start + _CHUNK])
    return answers


def to_spark(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Give times without a zone as text: Spark would take them for local times of its session."""
    return pc.cast(column, pa.string()) if column.type == pa.timestamp("us") else column


def _evaluate(session: Any, pairs: Any, expressions: Sequence[str]) -> dict[str, Answer]:
    from pyspark.errors import PySparkException
    from pyspark.sql import Column

    parse = session._jsparkSession.sessionState().sqlParser().parseExpression
    to_column = session._jvm.org.apache.spark.sql.classic.ExpressionUtils.column
    try_eval = session._jvm.org.apache.spark.sql.catalyst.expressions.TryEval
    texts = [f"struct(CASE WHEN row >= 0 THEN {text} END AS v)" for text in expressions]
    try:
        columns = [Column(to_column(try_eval(parse(text)))).alias(f"c{i}") for i, text in enumerate(texts)]
        table = collect(pairs.select("row", *columns)).sort_by("row")
    except PySparkException as error:
        if len(expressions) == 1:
            return {expressions[0]: Answer(None, [str(error).splitlines()[0]])}
        refused = _find_refused(pairs, expressions)
        others = [text for text in expressions if text not in refused]
        parts = [others] if refused else [others[: len(others) // 2], others[len(others) // 2 :]]
        return reduce(or_, (_evaluate(session, pairs, part) for part in parts if part), refused)
    return {text: _read_answers(table[f"c{i}"].combine_chunks()) for i, text in enumerate(expressions)}


def _find_refused(pairs: Any, expressions: Sequence[str]) -> dict[str, Answer]:
    from pyspark.errors import PySparkException

    refused = {}
    for text in expressions:
        try:
            pairs.selectExpr(text)
        except PySparkException as error:
            refused[text] = Answer(None, [str(error).splitlines()[0]])
    return refused


def collect(frame: Any) -> pa.Table:
    """Return the rows of a DataFrame."""
    # Not toArrow, which casts all columns and fails for some types in structs.
    return pa.Table.from_batches(frame._collect_as_arrow(empty_list_if_zero_records=False))


def _read_answers(structs: Any) -> Answer:
    if isinstance(structs, pa.ChunkedArray):
        structs = structs.combine_chunks()
    values = pc.struct_field(structs, 0)
    items = zip(to_items(values), structs.is_valid().to_pylist(), strict=True)
    type = pa.timestamp("us", "UTC") if pa.types.is_timestamp(values.type) and values.type.tz else values.type
    return Answer(type, [value if is_valid else FAILS for value, is_valid in items])
