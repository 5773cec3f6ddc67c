"""Find the event time of each stream: a column, an expression that Spark computes, or `withWatermark`'s."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from weir.errors import QueryError
from weir.expr.nodes import OnError
from weir.options import JoinOptions
from weir.query.build import by_stream, match_column
from weir.query.options import DEFAULT_TIME
from weir.spark.frames import name_apart
from weir.spark.java_errors import JAVA_ERRORS, reason_of
from weir.spark.projection import try_column
from weir.spark.union import Frames

_COMPUTED = "event_time"
_DELAY = "spark.watermarkDelayMs"
_NAME = re.compile(r"`([^`]|``)+`|[\w ]+")
# Deterministic to Spark within a query, but a repeated batch would have another.
_CLOCKS = re.compile(r"\b(now|current_timestamp|localtimestamp|current_date|curdate|current_time)\b", re.I)


def find_event_times(frames: Frames, options: JoinOptions) -> tuple[dict[str, DataFrame], JoinOptions]:
    """Return the frames with the times that are computed, and options that name time and lateness of each."""
    given = by_stream(options.time, frames, "time")
    late = by_stream(options.late, frames, "late")
    timed, columns = dict(frames), dict[str, str]()
    for name, frame in frames.items():
        delays = _read_delays(frame)
        if name in given:
            timed[name], columns[name] = _compute(name, frame, given[name], options.on_error)
        elif options.time is None or delays:
            columns[name] = _choose_column(name, list(delays))
        late.setdefault(name, _find_delay(delays, columns.get(name, ""), timed[name] is not frame))
    return timed, replace(options, time=columns, late=late)


def _read_delays(frame: DataFrame) -> dict[str, timedelta]:
    """The delay of each column that has a watermark."""
    return {
        field.name: timedelta(milliseconds=int(field.metadata[_DELAY]))
        for field in frame.schema
        if _DELAY in field.metadata
    }


def _choose_column(name: str, watermarked: list[str]) -> str:
    if len(watermarked) > 1:
        listed = " and ".join(f"'{column}'" for column in watermarked)
        raise QueryError(
            f"stream '{name}' has watermarks on {listed}; say which is its event time, "
            f"like time={{'{name}': '{watermarked[0]}'}}"
        )
    return watermarked[0] if watermarked else DEFAULT_TIME


def _find_delay(delays: Mapping[str, timedelta], column: str, is_computed: bool) -> timedelta:
    """The delay of the time column; a computed one takes that of the stream, if it has one."""
    if is_computed and len(delays) == 1:
        return next(iter(delays.values()))
    return next((delay for name, delay in delays.items() if name.lower() == column.lower()), timedelta())


def _compute(name: str, frame: DataFrame, given: str, on_error: OnError) -> tuple[DataFrame, str]:
    """Return the frame with the column that an expression gives, and its name; a column stays as it is.

    Unless errors fail the query, a row for which the expression fails has no time.
    """
    named = match_column(given, frame.columns)
    if named in frame.columns or _NAME.fullmatch(given.strip()):
        return frame, named
    if clock := _CLOCKS.search(given):
        raise QueryError(
            f"time= of stream '{name}' cannot be {clock[0]}: a repeated batch would have another"
        )
    column = name_apart(_COMPUTED, frame.columns)
    try:
        time = F.expr(given)
        time = time if on_error == "fail" else try_column(frame, time)["value"]
        timed = frame.alias(name).withColumn(column, time)
        plan: Any = timed._jdf.queryExecution().analyzed()
    except JAVA_ERRORS as error:
        raise QueryError(f"time='{given}' of stream '{name}' is not valid: {reason_of(error)}") from None
    kind = timed.schema[column].dataType.typeName()
    if kind not in ("timestamp", "timestamp_ntz"):
        raise QueryError(
            f"time='{given}' of stream '{name}' is {kind}, not a timestamp; "
            "convert it, like timestamp_millis(ms) or to_timestamp(text)"
        )
    if not plan.deterministic():
        raise QueryError(f"time='{given}' of stream '{name}' is not the same each time it is computed")
    return timed, column
