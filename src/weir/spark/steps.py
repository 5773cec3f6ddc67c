"""Steps after the join: stateless ones run inside each batch, stateful ones are refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from pyspark.sql import DataFrame

from weir.errors import QueryError

Step = Callable[[DataFrame], DataFrame]
Steps = tuple[Step, ...]

STATEFUL_METHODS = frozenset(
    [
        "agg", "crossJoin", "crosstab", "cube", "distinct", "dropDuplicates",
        "dropDuplicatesWithinWatermark", "drop_duplicates", "exceptAll", "groupBy", "groupby",
        "groupingSets", "intersect", "intersectAll", "join", "lateralJoin", "limit", "nearestByJoin",
        "offset", "orderBy", "rollup", "sort", "sortWithinPartitions", "subtract", "transpose", "union",
        "unionAll", "unionByName", "withWatermark", "zip", "zipWithIndex",
    ]
)  # fmt: skip
_STATEFUL_NODES = ("Aggregate", "Join", "Deduplicate", "Distinct", "Window", "GlobalLimit", "Sort", "Union")


def apply_steps(steps: Iterable[Step], results: DataFrame) -> DataFrame:
    """Apply steps one after the other."""
    for step in steps:
        results = step(results)
    return results


def check_stateless(frame: DataFrame) -> None:
    """Refuse a step whose plan keeps state or reorders rows."""
    plan: Any = frame._jdf.queryExecution().analyzed()
    for line in plan.toString().splitlines():
        node = re.match(r"[\s:+\-|]*(\w+)", line)
        if node is not None and node[1] in _STATEFUL_NODES:
            raise stateful_error(node[1].lower())


def stateful_error(step: str) -> QueryError:
    """Return the error for a step that would need state across batches."""
    return QueryError(
        f"'{step}' after a join would need state across batches; do it on the stream of its results, "
        "joined.readBack(path=..., checkpointLocation=...).frame, or per batch in writeStream.foreachBatch"
    )
