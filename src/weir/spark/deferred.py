"""Compute deferred output columns from the results of a join, with Catalyst."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from weir.errors import QueryError
from weir.expr.nodes import Column, is_internal
from weir.query.deferred import DeferredOutput
from weir.spark.catalyst import Expression, analyse
from weir.spark.frames import name_apart, quote
from weir.spark.functions import SparkFunctions
from weir.spark.projection import Errors, guard
from weir.spark.steps import Step

_OUTPUT = "weir_output"


def make_step(deferred: Sequence[DeferredOutput], functions: SparkFunctions, errors: Errors) -> Step:
    """Return the step after a join that replaces the first column each output reads by the output."""
    texts = {output.name: Expression(functions.rename(output.text), output.text) for output in deferred}
    read = {
        name for output in deferred for _, column in output.columns for name in (column.stream, column.name)
    }

    def compute(results: DataFrame) -> DataFrame:
        shown = [name for name in results.columns if not is_internal(name)]
        hidden = [name_apart(f"{_OUTPUT}{number}", read) for number in range(len(shown))]
        outputs = [F.col(quote(name)).alias(place) for name, place in zip(shown, hidden, strict=True)]
        rows = results.select(*outputs, *_restore_streams(deferred)).alias("weir")
        found = dict(zip(texts, analyse(rows, list(texts.values()), has_clock=False), strict=True))
        for name, each in found.items():
            if errors == "quarantine" and each.can_fail(rows.sparkSession):
                raise _cannot_quarantine(texts[name].shown)
        columns = [
            guard(rows, texts[name], found[name], errors) if name in texts else F.col(place)
            for name, place in zip(shown, hidden, strict=True)
        ]
        return rows.select(*(column.alias(name) for name, column in zip(shown, columns, strict=True)))

    return compute


def _cannot_quarantine(shown: str) -> QueryError:
    return QueryError(
        f"'{shown}' is computed by Spark from the results, where on_error='quarantine' leaves no row out; "
        "add it after the join, like .withColumn('name', ...), or pass on_error='null'"
    )


def _restore_streams(deferred: Sequence[DeferredOutput]) -> list[SparkColumn]:
    """Each stream as a struct of its columns, and each column that only one stream has by its own name."""
    sources = {column: name for output in deferred for name, column in output.columns}
    streams = dict.fromkeys(column.stream for column in sources)
    columns = [
        F.struct(*(_read(name, column) for column, name in sources.items() if column.stream == stream)).alias(
            stream
        )
        for stream in streams
    ]
    names = [column.name.lower() for column in sources]
    taken = {*map(str.lower, streams)}
    return columns + [
        _read(name, column)
        for column, name in sources.items()
        if names.count(column.name.lower()) == 1 and column.name.lower() not in taken
    ]


def _read(name: str, column: Column) -> SparkColumn:
    return F.col(quote(name)).alias(column.name)
