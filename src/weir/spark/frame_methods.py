"""What a join has of Spark's DataFrame: stateless methods are steps, all others need a static result."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.classic.dataframe import DataFrameNaFunctions

from weir.errors import QueryError, find_nearest, match_name
from weir.spark.frames import quote
from weir.spark.steps import STATEFUL_METHODS, stateful_error

if TYPE_CHECKING:
    from weir.spark.join import SparkJoin

# Each row of the result is seen alone, or rows only move between tasks.
STEP_METHODS = (
    "alias", "coalesce", "drop", "dropna", "fillna", "filter", "hint", "mapInArrow", "mapInPandas", "melt",
    "repartition", "repartitionById", "repartitionByRange", "replace", "sample", "sampleBy", "select",
    "selectExpr", "to", "unpivot", "where", "withColumn", "withColumnRenamed", "withColumns",
    "withColumnsRenamed", "withMetadata",
)  # fmt: skip


class FrameMethods:
    """Methods of a DataFrame on a join: a step returns the join with one more step."""

    @property
    def na(self) -> DataFrameNaFunctions:
        """Steps that drop, fill or replace missing values."""
        return DataFrameNaFunctions(self._join)  # type: ignore[arg-type] # it calls dropna, fillna, replace

    @property
    def dtypes(self) -> list[tuple[str, str]]:
        """The names and types of the result's columns."""
        return [(field.name, field.dataType.simpleString()) for field in self._join.schema]

    def printSchema(self, level: int | None = None) -> None:  # noqa: N802 - Spark's name
        """Print the columns of the result as a tree."""
        print(self._join.schema.treeString(level) if level else self._join.schema.treeString())

    def __getitem__(self, item: int | str | Column | list[Any] | tuple[Any, ...]) -> Any:
        """Name a column of the result, filter by a condition, or select columns, as Spark does."""
        if isinstance(item, int):
            return F.col(quote(self._join.columns[item]))
        if isinstance(item, str):
            known = match_name("column", item.partition(".")[0].strip("`"), self._join.columns)
            return F.col(item if "." in item or "`" in item else f"`{known}`")
        return self._join.filter(item) if isinstance(item, Column) else self._join.select(*item)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"a join has no '{name}'")
        join = self._join
        if hasattr(DataFrame, name):
            if not join.isStreaming:
                return getattr(join.toDF(), name)
            raise stateful_error(name) if name in STATEFUL_METHODS else _static_error(name)
        if name in join.columns:
            return self[name]
        near = find_nearest(name, [each for each in dir(join) if not each.startswith("_")], cutoff=0.7)
        hint = "" if near is None else f"; did you mean '{near}'?"
        raise AttributeError(f"a join has no '{name}'{hint}")

    @property
    def _join(self) -> SparkJoin:
        return self  # type: ignore[return-value] # the one class that has these methods


def _static_error(name: str) -> QueryError:
    return QueryError(
        f"'{name}' needs a result that ends, and a streaming join has none: start it with writeStream, "
        "like writeStream.format('console').start(), or do it per batch in writeStream.foreachBatch"
    )


def _as_step(name: str) -> Callable[..., Any]:
    @wraps(getattr(DataFrame, name))
    def add_step(self: SparkJoin, *args: Any, **kwargs: Any) -> Any:
        return self.transform(lambda frame: getattr(frame, name)(*args, **kwargs))

    return add_step


for _name in STEP_METHODS:
    if hasattr(DataFrame, _name):  # later versions of Spark have more
        setattr(FrameMethods, _name, _as_step(_name))
