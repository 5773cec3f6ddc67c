"""From DataFrames to a join over them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from weir.adapt import Wish
from weir.errors import QueryError
from weir.order import DriverOrder
from weir.query import Query, RowWindow, SqlQuery, query, sql_query
from weir.shed import Allowance
from weir.spark.frames import frame_schema, lateness, read_frame
from weir.spark.join import SparkJoin
from weir.spark.settings import Settings
from weir.spark.union import covering_class
from weir.units import interval

_LOG = logging.getLogger("weir")
_RETAIN = "spark.sql.streaming.minBatchesToRetain"

Orderer = Callable[[Query], DriverOrder]


@dataclass(frozen=True, slots=True)
class Way:
    """How a join is to run: its plan and driver order, partitions, what counts as idle, what hops may do."""

    wish: Wish
    orderer: Orderer
    partitions: int | None
    idle: str | None
    on_null_time: str
    allowance: Allowance | None = None


def ask(frames: Mapping[str, Any], way: Way, **asked: Any) -> SparkJoin:
    """The join that `weir.join` was asked for, over Spark DataFrames."""
    known, schemas = _read(frames)
    asked["late"] = _late(known, asked["time"], asked["late"])
    return _joined(query(schemas, **asked), known, way)


def ask_sql(text: str, frames: Mapping[str, Any], way: Way, **asked: Any) -> SparkJoin:
    """The join that `weir.sql` was asked for, over Spark DataFrames."""
    known, schemas = _read(frames)
    found: SqlQuery = sql_query(text, schemas, **asked)
    read = {alias: known[table] for alias, table in found.tables.items()}
    if asked["late"] is None:
        found = sql_query(text, schemas, **{**asked, "late": _late(read, asked["time"], None)})
    return _joined(found.query, read, way)


def _read(frames: Mapping[str, Any]) -> tuple[dict[str, DataFrame], dict[str, pa.Schema]]:
    known = {name: read_frame(name, frame) for name, frame in frames.items()}
    return known, {name: frame_schema(name, frame) for name, frame in known.items()}


def _joined(asked: Query, frames: Mapping[str, DataFrame], way: Way) -> SparkJoin:
    spark = next(iter(frames.values())).sparkSession
    settings = Settings(
        allowance=way.allowance,
        idle=None if way.idle is None else interval(way.idle),
        on_null_time=way.on_null_time,  # type: ignore[arg-type] # Settings checks it
        batches_to_retain=max(2, int(spark.conf.get(_RETAIN, "100") or 100)),
    )
    count = _partitions(asked, way.partitions, spark.sparkContext.defaultParallelism)
    asked = way.wish.divided(asked)
    planned = way.wish.planned(asked, cores=min(count, spark.sparkContext.defaultParallelism))
    if way.allowance is not None:
        way.allowance.check(planned.plan)
    return SparkJoin(asked, planned, frames, way.orderer(asked), count, settings)


def _partitions(asked: Query, wanted: int | None, cores: int) -> int:
    if wanted is not None and (isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1):
        raise QueryError(f"partitions must be a whole number of at least 1; got {wanted!r}")
    rows = [n for n, w in zip(asked.names, asked.windows, strict=True) if isinstance(w, RowWindow)]
    alone = (
        f"the row window of stream '{rows[0]}' counts all its rows"
        if rows
        else "no one key is shared by all streams"
        if covering_class(asked) is None
        else None
    )
    if alone is None:
        return wanted or cores
    if wanted is not None and wanted > 1 and rows:
        raise QueryError(f"{alone}, so it needs partitions=1; got {wanted}")
    if (wanted or cores) > 1:
        _LOG.warning("the join runs in one partition, because %s", alone)
    return 1


def _late(frames: Mapping[str, DataFrame], time: Any, late: Any) -> Any:
    """What the user says, else what `withWatermark` said of each stream."""
    if late is not None and not isinstance(late, Mapping):
        return late
    given = dict(late or {})
    for name, frame in frames.items():
        column = time.get(name, "") if isinstance(time, Mapping) else time
        if isinstance(column, str):
            given.setdefault(name, lateness(frame, column))
    return given
