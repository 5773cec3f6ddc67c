"""Project each stream with Catalyst: filter its rows, and compute what reads no other stream.

    scan ─▶ filter a.x > 3 ─▶ select *, lower(a.k) AS `weir:lower(a.k)` ─▶ union with the other streams

In ANSI mode an error may only concern rows that join, unless Spark would evaluate the expression for every
row too. What can fail is therefore tried: a flag says for which rows it failed, and the kernel raises the
error where it uses the value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.types import BooleanType, NullType

from weir.errors import QueryError
from weir.expr.nodes import name_flag
from weir.query.pushdown import Computed, Pushdown, PushedFilter
from weir.spark.catalyst import Analysed, Expression, analyse
from weir.spark.frames import is_carried
from weir.spark.functions import SparkFunctions

_TRIED = "weir_tried"


def project(frames: Mapping[str, DataFrame], pushed: Pushdown, functions: SparkFunctions) -> dict[str, DataFrame]:
    """Return the streams with what is pushed down to them; the others stay as they are."""
    projected = {}
    for name, frame in frames.items():
        filters = [part for part in pushed.filters if part.stream == name]
        computed = [part for part in pushed.computed if part.stream == name]
        is_changed = bool(filters or computed)
        projected[name] = _project_one(frame.alias(name), filters, computed, functions) if is_changed else frame
    return projected


def describe_projection(pushed: Pushdown) -> Iterator[str]:
    """Yield a line for each stream that says what Spark computes for it."""
    filters = ((part.stream, f"filter {part.text}") for part in pushed.filters)
    columns = ((part.stream, part.text) for part in pushed.computed)
    parts = sorted((*columns, *filters), key=lambda part: part[0])
    for stream, texts in groupby(parts, key=lambda part: part[0]):
        yield f"{stream}: {'; '.join(' '.join(text.split()) for _, text in texts)}"
