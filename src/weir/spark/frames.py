"""Read from DataFrames what a query needs: their schemas in Arrow's types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import DataType

from weir.errors import QueryError
from weir.expr.types import normalise

# Spark 4.1 asks for the zone in which Arrow shows an instant; any will do, since the instant is the same.
_ZONE: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_type).parameters else {}
_DAY_TIME = re.compile(r"interval (day|hour|minute|second)( to (hour|minute|second))?")


def read_frame(name: str, frame: Any) -> DataFrame:
    """Return the DataFrame of a stream, or refuse what is none."""
    if "connect" in type(frame).__module__:
        raise QueryError(
            f"stream '{name}' belongs to Spark Connect, where the driver's process is out of reach; "
            "run the query in a classic session (without SPARK_REMOTE or .remote(...))"
        )
    if not isinstance(frame, DataFrame):
        kind = type(frame).__name__
        raise QueryError(f"stream '{name}' must be a Spark DataFrame like the others; got {kind}")
    return frame


def read_schema(name: str, frame: DataFrame) -> pa.Schema:
    """Return the schema of a DataFrame in Arrow's types, or refuse a column that Arrow cannot carry."""
    fields = []
    for field in frame.schema:
        kind = _to_arrow(field.dataType)
        if kind is None:
            raise QueryError(
                f"column '{field.name}' of stream '{name}' is {field.dataType.simpleString()}, which Arrow "
                "cannot carry; drop it or cast it before the join"
            )
        fields.append(pa.field(field.name, kind, field.nullable))
    return pa.schema(fields)


def is_carried(kind: DataType) -> bool:
    """True if Arrow can carry the values of a type."""
    return _to_arrow(kind) is not None


def _to_arrow(kind: DataType) -> pa.DataType | None:
    try:
        arrow = normalise(to_arrow_type(kind, **_ZONE))
        back = from_arrow_type(arrow, prefer_timestamp_ntz=True)
    except PySparkException:
        return None
    return arrow if _show_type(back) == _show_type(kind) else None


def _show_type(kind: DataType) -> str:
    """Name a type; Arrow has one interval type for all of days to seconds."""
    return _DAY_TIME.sub("interval day to second", kind.simpleString())


def refuse_mixture(frames: Mapping[str, DataFrame]) -> None:
    """Refuse streaming DataFrames together with static ones."""
    static = [name for name, frame in frames.items() if not frame.isStreaming]
    streaming = [name for name in frames if name not in static]
    if static and streaming:
        raise QueryError(
            f"{_list(streaming, 'streaming')} and {_list(static, 'static')}; read all with spark.readStream, "
            "or join what is static by Spark, before (frame.join(...)) or after (foreachBatch)"
        )


def _list(names: Sequence[str], kind: str) -> str:
    quoted = ", ".join(f"'{name}'" for name in names)
    return f"stream{'s' * (len(names) > 1)} {quoted} {'are' if len(names) > 1 else 'is'} {kind}"


def quote(column: str) -> str:
    """Return the name of a column as Spark reads it."""
    return "`" + column.replace("`", "``") + "`"


def name_apart(name: str, others: Iterable[str]) -> str:
    """Return a name that none of the others has, ignoring case.

    >>> name_apart("event_time", ["id", "Event_Time"])
    'event_time_'
    """
    taken = set(map(str.lower, others))
    while name.lower() in taken:
        name += "_"
    return name
