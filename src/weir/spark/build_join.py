"""Build a join over DataFrames: its query, its plan, and the lateness that `withWatermark` set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from pyspark.sql import DataFrame

from weir.adapt.planner import PlannedJoin
from weir.options import JoinOptions
from weir.partition.placement import SHARED_SPREADS
from weir.query.build import build_query
from weir.query.model import Query
from weir.query.options import PerStream
from weir.query.sql import name_streams
from weir.spark.frames import read_frame, read_lateness, read_schema
from weir.spark.join import SparkJoin


def build_join(given: Mapping[str, Any], options: JoinOptions) -> SparkJoin:
    """Build the join of Spark DataFrames."""
    checked = {name: read_frame(name, frame) for name, frame in given.items()}
    frames = name_streams(checked, options.statement)
    schemas = {name: read_schema(name, frame) for name, frame in frames.items()}
    options = replace(options, late=_complete_lateness(frames, options))
    query = options.plan_request.divided(build_query(schemas, options))
    return SparkJoin(query, _choose_plan(query, frames, options), frames, options)


def _choose_plan(query: Query, frames: Mapping[str, DataFrame], options: JoinOptions) -> PlannedJoin:
    request, frame = options.plan_request, next(iter(frames.values()))
    is_streaming = any(frame.isStreaming for frame in frames.values())
    if request.plan == "auto" and is_streaming and options.spread in SHARED_SPREADS:
        request = replace(request, plan="mjoin")
    cores = frame.sparkSession.sparkContext.defaultParallelism
    return request.planned(query, cores=min(options.partitions or cores, cores))


def _complete_lateness(frames: Mapping[str, DataFrame], options: JoinOptions) -> PerStream[str | timedelta]:
    """Take the lateness from `withWatermark` for streams whose lateness no option gives."""
    if options.late is not None and not isinstance(options.late, Mapping):
        return options.late
    lateness = dict(options.late or {})
    for name, frame in frames.items():
        column = options.time.get(name, "") if isinstance(options.time, Mapping) else options.time
        lateness.setdefault(name, read_lateness(frame, column))
    return lateness
