"""The join over Spark DataFrames that `weir.join` returns, and how it is built from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from weir.adapt.planner import PlannedJoin, explain_plan
from weir.errors import QueryError
from weir.kernel.decision import Decision
from weir.kernel.output import result_schema
from weir.kernel.physical_plan import compile_plan
from weir.options import JoinOptions
from weir.order.policies import INTERLEAVING_POLICIES
from weir.partition.placement import SHARED_SPREADS
from weir.plan.explain import render_mermaid
from weir.plan.tree import Join
from weir.query.build import build_query
from weir.query.describe import describe
from weir.query.model import Query
from weir.query.options import PerStream
from weir.query.sql import name_streams
from weir.spark.frames import read_frame, read_lateness, read_schema
from weir.spark.routing import Routing, choose_routing, choose_shared_spread
from weir.spark.steps import STATEFUL_METHODS, Steps, apply_steps, check_stateless, stateful_error
from weir.spark.task import StaticJoinTask
from weir.spark.union import Frames, assign_partitions, shuffle_by_partition, tagged_union
from weir.spark.writer import JoinWriter


class SparkJoin:
    """A defined join: `writeStream` runs it over streams, `toDF()` over static DataFrames."""

    def __init__(
        self, query: Query, planned: PlannedJoin, frames: Frames, options: JoinOptions, steps: Steps = ()
    ) -> None:
        if options.allowance is not None:
            options.allowance.check(planned.plan)
        self.query, self.planned, self.frames = query, planned, frames
        self.options, self.steps = options, steps
        self.driver_order = options.order_streams(query)
        self.routing = self.route(planned.plan, was_shared=False)

    def route(self, plan: Join, was_shared: bool, partitions: int | None = None) -> Routing:
        """Choose how rows and work are divided; once rows were shared, keys no longer say where they lie."""
        context, options = self.sparkSession.sparkContext, self.options
        shared = choose_shared_spread(context.master or "")
        spread = shared if was_shared and options.spread == "auto" else options.spread
        partitions, cores = partitions or options.partitions, context.defaultParallelism
        routing = choose_routing(self.query, plan, spread, partitions, cores, self.isStreaming, shared)
        if self.driver_order not in INTERLEAVING_POLICIES:
            return routing
        if routing.is_shared:
            raise QueryError(
                f"driver_order='{self.driver_order}' interleaves the rows of one partition, but "
                f"spread='{routing.name}' probes across partitions; choose another order"
            )
        return replace(routing, fallback=None)

    @property
    def sparkSession(self) -> SparkSession:  # noqa: N802 - Spark's name
        """The session of the streams."""
        return next(iter(self.frames.values())).sparkSession

    @property
    def isStreaming(self) -> bool:  # noqa: N802 - Spark's name
        """True if some stream is a streaming DataFrame."""
        return any(frame.isStreaming for frame in self.frames.values())

    @property
    def schema(self) -> StructType:
        """The columns of the result, after all steps."""
        return apply_steps(self.steps, self._empty_frame()).schema

    @property
    def columns(self) -> list[str]:
        """The names of the result's columns."""
        return self.schema.names

    @property
    def writeStream(self) -> JoinWriter:  # noqa: N802 - Spark's name
        """A writer that starts the join; follows Spark's DataStreamWriter."""
        if not self.isStreaming:
            raise QueryError("these DataFrames are static: use toDF() and write the result as usual")
        return JoinWriter(self)

    def toDF(self) -> DataFrame:  # noqa: N802 - Spark's name
        """Return the join of static DataFrames; like every DataFrame, it is evaluated when it is read."""
        if self.isStreaming:
            raise QueryError("a streaming join has no static result: start it with writeStream")
        union, slots = tagged_union(self.query, self.frames, self.routing)
        physical = compile_plan(self.query, self.planned.plan)
        decision = Decision(self.planned.plan, self.driver_order, allowance=self.options.allowance)
        task = StaticJoinTask(physical, decision, slots, self.options.on_null_time)
        placed = assign_partitions(union, self.routing.first_placement())
        rows = shuffle_by_partition(placed, self.routing.partitions)
        return apply_steps(self.steps, rows.mapInArrow(task, self._result_schema()))

    def filter(self, condition: str | Column) -> SparkJoin:
        """Keep the results that satisfy a condition."""
        return self.transform(lambda frame: frame.filter(condition))

    where = filter

    def select(self, *columns: str | Column) -> SparkJoin:
        """Choose or compute columns of the result."""
        return self.transform(lambda frame: frame.select(*columns))

    def drop(self, *columns: str) -> SparkJoin:
        """Drop columns of the result."""
        return self.transform(lambda frame: frame.drop(*columns))

    def transform(self, step: Callable[[DataFrame], DataFrame]) -> SparkJoin:
        """Apply a stateless step to each batch's results."""
        check_stateless(step(apply_steps(self.steps, self._empty_frame())))
        return SparkJoin(self.query, self.planned, self.frames, self.options, (*self.steps, step))

    def explain(self, mode: str | bool | None = None) -> None:
        """Print the query and its plan; with "mermaid", the plan as a chart.

        With one of Spark's modes, print Spark's plan of the input too.
        """
        if str(mode).lower() == "mermaid":
            print(render_mermaid(self.planned.plan, self.planned.cost))
            return
        print(self.explanation())
        if mode:
            union, _ = tagged_union(self.query, self.frames, self.routing)
            union.explain(mode if isinstance(mode, bool) else None, None if isinstance(mode, bool) else mode)

    def explanation(self) -> str:
        """Return what `explain` prints without a mode."""
        plan = explain_plan(self.planned, self.options.allowance)
        return f"{describe(self.query)}\n\nover {self.routing}\n\n{plan}"

    def __getattr__(self, name: str) -> Any:
        if name in STATEFUL_METHODS:
            raise stateful_error(name)
        raise AttributeError(f"a join has no '{name}'")

    def __repr__(self) -> str:
        columns = ", ".join(f"{field.name}: {field.dataType.simpleString()}" for field in self.schema)
        return f"weir.join[{columns}]"

    def _result_schema(self) -> StructType:
        return from_arrow_schema(_without_fixed_sizes(result_schema(self.query)), prefer_timestamp_ntz=True)

    def _empty_frame(self) -> DataFrame:
        return self.sparkSession.createDataFrame([], self._result_schema())


def _without_fixed_sizes(schema: pa.Schema) -> pa.Schema:
    """Turn lists of fixed size into plain lists: Spark has one type of array."""
    fixed = pa.types.is_fixed_size_list
    return pa.schema([pa.field(f.name, pa.list_(f.type.value_type)) if fixed(f.type) else f for f in schema])


def build_join(given: Mapping[str, Any], options: JoinOptions) -> SparkJoin:
    """Build the join of Spark DataFrames."""
    checked = {name: read_frame(name, frame) for name, frame in given.items()}
    frames = name_streams(checked, options.statement)
    schemas = {name: read_schema(name, frame) for name, frame in frames.items()}
    options = replace(options, late=_complete_lateness(frames, options))
    request = options.plan_request
    query = request.divide_windows(build_query(schemas, options))
    is_streaming = any(frame.isStreaming for frame in frames.values())
    if request.plan == "auto" and is_streaming and options.spread in SHARED_SPREADS:
        request = replace(request, plan="mjoin")
    cores = next(iter(frames.values())).sparkSession.sparkContext.defaultParallelism
    planned = request.plan_join(query, cores=min(options.partitions or cores, cores))
    return SparkJoin(query, planned, frames, options)


def _complete_lateness(frames: Frames, options: JoinOptions) -> PerStream[str | timedelta]:
    """Take the lateness from `withWatermark` for streams whose lateness no option gives."""
    if options.late is not None and not isinstance(options.late, Mapping):
        return options.late
    lateness = dict(options.late or {})
    for name, frame in frames.items():
        column = options.time.get(name, "") if isinstance(options.time, Mapping) else options.time
        lateness.setdefault(name, read_lateness(frame, column))
    return lateness
