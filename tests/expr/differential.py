"""Compare expressions with Spark itself, values and errors, for any session: the oracle of `weir.expr`.

One Spark job answers many expressions over all rows: `TryEval(struct(expression))` is NULL where Spark fails,
and a struct around the value, NULL or not, where it does not. (The CASE makes the value nullable.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import QueryError
from weir.expr.evaluate import evaluate_rows
from weir.expr.scope import Scope
from weir.expr.session import Session
from weir.query.sql import bind_expression, parse_condition

# What a row gives if evaluation fails, and what an expression gives that is refused.
FAILS, REFUSED = "fails", "refused"
_CHUNK = 120


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


def find_differences(
    spark: Any, expressions: Sequence[str], tables: Mapping[str, pa.Table], session: Session
) -> list[Difference]:
    """Evaluate expressions over the rows of tables of one length, by Spark and by weir, in one session."""
    theirs = _ask_spark(spark, expressions, tables, session)
    scope = Scope({name: table.schema for name, table in tables.items()}, session=session)
    differences = []
    for text in expressions:
        ours = _ask_weir(text, scope, tables)
        differences += _compare(text, theirs[text], ours, tables)
    return differences


def _compare(text: str, theirs: Any, ours: Any, tables: Mapping[str, pa.Table]) -> list[Difference]:
    if REFUSED in (theirs[0], ours[0]):
        return (
            []
            if theirs[0] == ours[0]
            else [Difference(text, 0, theirs[0], ours[0], 1, {"why": ours[1:] or theirs[1:]})]
        )
    rows = [i for i, pair in enumerate(zip(theirs, ours, strict=True)) if not _are_same(*pair)]
    if not rows:
        return []
    values = {
        f"{s}.{n}": t[n][rows[0]] for s, t in tables.items() for n in t.column_names if f"{s}.{n}" in text
    }
    return [Difference(text, rows[0], theirs[rows[0]], ours[rows[0]], len(rows), values)]


def _are_same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    return type(left) is type(right) and bool(left == right)


def _ask_weir(text: str, scope: Scope, tables: Mapping[str, pa.Table]) -> list[Any]:
    rows = next(iter(tables.values())).num_rows
    try:
        expr = bind_expression(parse_condition(text), scope)
    except QueryError as error:
        return [REFUSED, str(error)]
    value, failed = evaluate_rows(expr, lambda c: tables[c.stream][c.name].combine_chunks(), rows)
    return [FAILS if fails else item for item, fails in zip(_to_list(value), failed.tolist(), strict=True)]


def _to_list(values: pa.Array) -> list[Any]:
    """Return Python values; times as numbers, since Python's calendar is shorter than Spark's."""
    if pa.types.is_temporal(values.type):
        values = (
            pc.cast(pc.cast(values, pa.int32()), pa.int64())
            if pa.types.is_date(values.type)
            else pc.cast(values, pa.int64())
        )
    return list(values.to_pylist())


def _ask_spark(
    spark: Any, expressions: Sequence[str], tables: Mapping[str, pa.Table], session: Session
) -> dict[str, list[Any]]:
    own = spark.newSession()
    own.conf.set("spark.sql.session.timeZone", session.time_zone)
    own.conf.set("spark.sql.ansi.enabled", str(session.ansi).lower())
    # A common part of two expressions would be evaluated outside of TryEval.
    own.conf.set("spark.sql.subexpressionElimination.enabled", "false")
    # Compiling hundreds of expressions takes longer than interpreting them on few rows.
    own.conf.set("spark.sql.codegen.wholeStage", "false")
    own.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    names = [f"{stream}_{name}" for stream, table in tables.items() for name in table.column_names]
    columns = [column for table in tables.values() for column in table.columns]
    numbers = pa.array(range(len(columns[0])))
    rows = own.createDataFrame(pa.table([*columns, numbers], names=[*names, "row"]))
    structs = [
        f"struct({', '.join(f'{s}_{name} AS {name}' for name in t.column_names)}) AS {s}"
        for s, t in tables.items()
    ]
    pairs = rows.selectExpr("row", *structs)
    answers: dict[str, list[Any]] = {}
    for start in range(0, len(expressions), _CHUNK):
        answers |= _evaluate(own, pairs, expressions[start : start + _CHUNK])
    return answers


def _evaluate(session: Any, pairs: Any, expressions: Sequence[str]) -> dict[str, list[Any]]:
    from pyspark.errors import PySparkException
    from pyspark.sql import Column
    from pyspark.sql import functions as F  # noqa: N812 - as everywhere

    jvm = session._jvm
    utils = jvm.org.apache.spark.sql.classic.ExpressionUtils
    columns = []
    for i, text in enumerate(expressions):
        tried = jvm.org.apache.spark.sql.catalyst.expressions.TryEval(
            utils.expression(F.expr(f"struct(CASE WHEN row >= 0 THEN {text} END AS v)")._jc)
        )
        columns.append(Column(utils.column(tried)).alias(f"c{i}"))
    try:
        table = pairs.select("row", *columns).toArrow().sort_by("row")
    except PySparkException as error:
        if len(expressions) == 1:
            return {expressions[0]: [REFUSED, str(error).splitlines()[0]]}
        half = len(expressions) // 2
        return _evaluate(session, pairs, expressions[:half]) | _evaluate(session, pairs, expressions[half:])
    return {text: _read_answers(table[f"c{i}"].combine_chunks()) for i, text in enumerate(expressions)}


def _read_answers(structs: Any) -> list[Any]:
    if isinstance(structs, pa.ChunkedArray):
        structs = structs.combine_chunks()
    values = _to_list(pc.struct_field(structs, 0))
    return [
        value if is_valid else FAILS
        for value, is_valid in zip(values, structs.is_valid().to_pylist(), strict=True)
    ]
