"""From DataFrames to a join over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from weir.adapt.planner import PlanRequest
from weir.adapt.settings import Adapt
from weir.errors import QueryError
from weir.order.policies import DriverOrder
from weir.partition.placement import SHARED
from weir.plan.tree import Join
from weir.query.build import query
from weir.query.model import Query
from weir.query.sql import SqlQuery, sql_query
from weir.shed.allowance import Allowance
from weir.spark.frames import frame_schema, lateness, read_frame
from weir.spark.join import SparkJoin
from weir.spark.routing import Routing, check_count, routing, shared_on
from weir.spark.settings import Settings
from weir.units import interval

_RETAIN = "spark.sql.streaming.minBatchesToRetain"

Orderer = Callable[[Query], DriverOrder]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a join is to run: its plan and driver order, partitions, what counts as idle, what hops may do."""

    wish: PlanRequest
    orderer: Orderer
    partitions: int | None
    idle: str | None
    on_null_time: str
    allowance: Allowance | None = None
    spread: str = "auto"
    adapt: Adapt | None = None


def build_join(frames: Mapping[str, Any], way: RunOptions, **asked: Any) -> SparkJoin:
    """The join that `weir.join` was asked for, over Spark DataFrames."""
    known, schemas = _read(frames)
    asked["late"] = _late(known, asked["time"], asked["late"])
    return _joined(query(schemas, **asked), known, way)


def build_sql_join(text: str, frames: Mapping[str, Any], way: RunOptions, **asked: Any) -> SparkJoin:
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


def _joined(asked: Query, frames: Mapping[str, DataFrame], way: RunOptions) -> SparkJoin:
    spark = next(iter(frames.values())).sparkSession
    settings = Settings(
        allowance=way.allowance,
        adapt=way.adapt,
        idle=None if way.idle is None else interval(way.idle),
        on_null_time=way.on_null_time,  # type: ignore[arg-type] # Settings checks it
        batches_to_retain=max(2, int(spark.conf.get(_RETAIN, "100") or 100)),
    )
    if way.partitions is not None:
        check_count(way.partitions)
    asked = way.wish.divided(asked)
    cores = spark.sparkContext.defaultParallelism
    streaming = any(frame.isStreaming for frame in frames.values())
    wish = way.wish
    if wish.plan == "auto" and streaming and way.spread in SHARED:
        wish = replace(wish, plan="mjoin")
    planned = wish.planned(asked, cores=min(way.partitions or cores, cores))
    shared = shared_on(spark.sparkContext.master or "")

    def router(plan: Join, is_shared: bool) -> Routing:
        spread = shared if is_shared and way.spread == "auto" else way.spread
        route = routing(asked, plan, spread, way.partitions, cores, streaming, shared)
        return _ordered(route, way.orderer(asked))

    if way.allowance is not None:
        way.allowance.check(planned.plan)
    return SparkJoin(asked, planned, frames, way.orderer(asked), router, settings)


def _ordered(route: Routing, order: DriverOrder) -> Routing:
    """The routing, if it can have a driver order; one that interleaves rows stays with their key."""
    if order not in ("timestamp", "round-robin"):
        return route
    if route.is_shared:
        raise QueryError(
            f"driver_order='{order}' interleaves the rows of one partition, but spread='{route.name}' probes "
            "across partitions; choose another order"
        )
    return replace(route, instead=None)


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
