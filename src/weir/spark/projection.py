"""Project each stream with Catalyst: filter its rows, and compute what reads no other stream.

    scan ─▶ filter a.x > 3 ─▶ select *, lower(a.k) AS `weir:lower(a.k)` ─▶ union with the other streams

An error, which few expressions have without ANSI mode, may only concern rows that join, unless Spark would
evaluate the expression for every row too. What can fail is therefore tried: a flag says for which rows it
failed, and the kernel raises the error where it uses the value. Where failures are quarantined, filters and
what Spark would evaluate for every row are tried too, and a text beside the flag shows what the expression
read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import groupby
from operator import and_
from typing import Any, Literal, TypeAlias

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.types import BooleanType, NullType

from weir.errors import QueryError
from weir.expr.nodes import name_flag, name_inputs
from weir.kernel.quarantine import MAX_CHARACTERS
from weir.query.pushdown import Computed, Pushdown, PushedFilter
from weir.spark.catalyst import Analysed, Expression, analyse
from weir.spark.frames import is_carried, name_apart, quote
from weir.spark.functions import SparkFunctions

_TRIED = "weir_tried"
# What happens to data errors: without ANSI mode there are hardly any, with it they fail the query or give
# NULL, or the kernel leaves their rows out and reports them.
Errors: TypeAlias = Literal["none", "fail", "null", "quarantine"]


def project(
    frames: Mapping[str, DataFrame], pushed: Pushdown, functions: SparkFunctions, errors: Errors
) -> dict[str, DataFrame]:
    """Return the streams with what is pushed down to them; the others stay as they are."""
    projected = {}
    for name, frame in frames.items():
        filters = [part for part in pushed.filters if part.stream == name]
        computed = [part for part in pushed.computed if part.stream == name]
        if filters or computed:
            frame = _project_one(frame.alias(name), filters, computed, functions, errors)
        projected[name] = frame
    return projected


def describe_projection(pushed: Pushdown) -> Iterator[str]:
    """Yield a line for each stream that says what Spark computes for it."""
    filters = ((part.stream, f"filter {part.text}") for part in pushed.filters)
    columns = ((part.stream, part.text) for part in pushed.computed)
    parts = sorted((*columns, *filters), key=lambda part: part[0])
    for stream, texts in groupby(parts, key=lambda part: part[0]):
        yield f"{stream}: {'; '.join(' '.join(text.split()) for _, text in texts)}"


def _project_one(
    frame: DataFrame,
    filters: Sequence[PushedFilter],
    computed: Sequence[Computed],
    functions: SparkFunctions,
    errors: Errors,
) -> DataFrame:
    texts = [*(part.text for part in filters), *(part.text for part in computed)]
    expressions = [Expression(functions.rename(text), text) for text in texts]
    analysed = list(zip(expressions, analyse(frame, expressions), strict=True))
    conditions, columns = analysed[: len(filters)], analysed[len(filters) :]
    for expression, found in conditions:
        _check_condition(expression, found)
    added = [(part, *column) for part, column in zip(computed, columns, strict=True)]
    if conditions:
        # One condition in the order of the query, in which Spark evaluates it.
        frame = frame.filter(reduce(and_, (_pass(frame, *each, errors) for each in conditions)))
    if errors == "quarantine":
        shown = [Computed(part.stream, part.text, part.name, strict=True) for part in filters]
        tried = [(part, *condition) for part, condition in zip(shown, conditions, strict=True)]
        added += [each for each in tried if each[-1].can_fail(frame.sparkSession)]
    return _add_columns(frame, added, errors)


def guard(frame: DataFrame, expression: Expression, found: Analysed, errors: Errors) -> SparkColumn:
    """Return the column of an expression; where errors are NULL, one that does not fail."""
    session, column = frame.sparkSession, F.expr(expression.text)
    is_tried = errors == "null" and found.can_fail(session)
    return try_column(frame, column)["value"] if is_tried else column


def _pass(frame: DataFrame, expression: Expression, found: Analysed, errors: Errors) -> SparkColumn:
    """Return the condition on which rows go on; those for which it fails do so as well, to be reported."""
    if errors != "quarantine" or not found.can_fail(frame.sparkSession):
        return guard(frame, expression, found, errors)
    tried = try_column(frame, F.expr(expression.text))
    return F.coalesce(tried["value"], tried.isNull())


def _add_columns(
    frame: DataFrame, computed: Sequence[tuple[Computed, Expression, Analysed]], errors: Errors
) -> DataFrame:
    session, kept = frame.sparkSession, list(frame.columns)
    columns, results = list[SparkColumn](), list[SparkColumn]()
    for number, (part, expression, found) in enumerate(computed):
        _check_type(part, found)
        column = F.expr(expression.text)
        can_fail = found.always_can_fail if errors == "none" else found.can_fail(session)
        if not can_fail or (errors in ("none", "fail") and part.strict):
            columns.append(column.alias(part.name))
            kept.append(part.name)
            continue
        attempt = name_apart(f"{_TRIED}{number}", frame.columns)
        columns.append(try_column(frame, column).alias(attempt))
        results.append(F.col(f"{attempt}.value").alias(part.name))
        if errors != "null":
            results.append(F.col(attempt).isNull().alias(name_flag(part.name)))
        if errors == "quarantine":
            inputs = F.when(F.col(attempt).isNull(), _show_inputs(frame, found))
            results.append(inputs.alias(name_inputs(part.name)))
    projected = frame.select("*", *columns)
    return projected.select(*map(quote, kept), *results) if results else projected


def _show_inputs(frame: DataFrame, found: Analysed) -> SparkColumn:
    """The columns that an expression reads, as JSON."""
    columns = F.struct(*(F.col(quote(name)) for name in found.columns))
    text = F.substring(F.to_json(columns, {"ignoreNullFields": "false"}), 1, MAX_CHARACTERS)
    return try_column(frame, text)["value"]


def try_column(frame: DataFrame, column: SparkColumn) -> SparkColumn:
    """Return a struct with the value of a column over a frame, NULL where computing that fails."""
    jvm: Any = frame.sparkSession._jvm
    convert = jvm.org.apache.spark.sql.classic.ExpressionUtils
    struct: Any = F.struct(column.alias("value"))
    tried = jvm.org.apache.spark.sql.catalyst.expressions.TryEval(convert.expression(struct._jc))
    return F.when(_always(frame), SparkColumn(convert.column(tried)))


def _always(frame: DataFrame) -> SparkColumn:
    """Return what is true for every row, though Spark does not see it.

    Spark computes what several columns have in common once, before any of them: also what may fail, and then
    no attempt catches it. It does not look for that in a branch that may not be taken.
    """
    nullable = next((field.name for field in frame.schema if field.nullable), frame.columns[0])
    return F.hash(F.col(quote(nullable)).isNull()) >= -(2**31)


def _check_condition(condition: Expression, found: Analysed) -> None:
    if not isinstance(found.type, BooleanType | NullType):
        kind = found.type.simpleString()
        raise QueryError(f"a condition must be true or false; '{condition.shown}' is {kind}")


def _check_type(part: Computed, found: Analysed) -> None:
    if not is_carried(found.type):
        raise QueryError(
            f"'{part.text}' is {found.type.simpleString()}, which Arrow cannot carry; cast it to another type"
        )
