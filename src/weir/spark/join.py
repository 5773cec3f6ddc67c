"""A join over Spark DataFrames, as `weir.join` returns it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from weir.adapt.explain_plan import chart_plan, explain_plan
from weir.adapt.planned_join import PlannedJoin
from weir.errors import QueryError
from weir.kernel.decision import Decision
from weir.kernel.output import result_schema
from weir.kernel.physical_plan import compile_plan
from weir.options import JoinOptions
from weir.plan.tree import Join
from weir.query.describe import describe
from weir.query.model import Query
from weir.spark.routing import Routing, routing, shared_on
from weir.spark.settings import read_settings
from weir.spark.sinks import Step
from weir.spark.steps import check_stateless, refuse_stateful
from weir.spark.task import WholeTask
from weir.spark.union import routed, tagged_union
from weir.spark.writer import JoinWriter


class SparkJoin:
    """A join that is defined: `writeStream` runs it over streams, `toDF()` over static DataFrames."""

    def __init__(
        self,
        query: Query,
        planned: PlannedJoin,
        frames: Mapping[str, DataFrame],
        options: JoinOptions,
        steps: tuple[Step, ...] = (),
    ) -> None:
        if options.allowance is not None:
            options.allowance.check(planned.plan)
        self.query = query
        self.planned = planned
        self.frames = frames
        self.options = options
        self.steps = steps
        self.driver_order = options.order_streams(query)
        self.settings = read_settings(options, self.sparkSession)
        self.routing = self.route(planned.plan, was_shared=False)

    def route(self, plan: Join, was_shared: bool) -> Routing:
        """How rows and work are divided; rows that were shared once do not lie where their keys say."""
        context, options = self.sparkSession.sparkContext, self.options
        shared = shared_on(context.master or "")
        spread = shared if was_shared and options.spread == "auto" else options.spread
        cores = context.defaultParallelism
        chosen = routing(self.query, plan, spread, options.partitions, cores, self.isStreaming, shared)
        if self.driver_order not in ("timestamp", "round-robin"):
            return chosen
        if chosen.is_shared:
            raise QueryError(
                f"driver_order='{self.driver_order}' interleaves the rows of one partition, but "
                f"spread='{chosen.name}' probes across partitions; choose another order"
            )
        return replace(chosen, instead=None)

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
        return self._apply_steps(self._empty_frame()).schema

    @property
    def columns(self) -> list[str]:
        """The names of the result's columns."""
        return self.schema.names

    @property
    def writeStream(self) -> JoinWriter:  # noqa: N802 - Spark's name
        """How to start the join; follows Spark's DataStreamWriter."""
        if not self.isStreaming:
            raise QueryError("these DataFrames are static: use toDF() and write the result as usual")
        return JoinWriter(self)

    def toDF(self) -> DataFrame:  # noqa: N802 - Spark's name
        """The join of static DataFrames; evaluated when it is read, as every DataFrame is."""
        if self.isStreaming:
            raise QueryError("a streaming join has no static result: start it with writeStream")
        union, slots = tagged_union(self.query, self.frames, self.routing)
        physical = compile_plan(self.query, self.planned.plan)
        decision = Decision(self.planned.plan, self.driver_order, allowance=self.options.allowance)
        task = WholeTask(physical, decision, slots, self.options.on_null_time)
        rows = routed(union, self.routing.partitions)
        return self._apply_steps(rows.mapInArrow(task, self._result_schema()))

    def filter(self, condition: str | Column) -> SparkJoin:
        """Keep the results that fulfil a condition."""
        return self.transform(lambda frame: frame.filter(condition))

    where = filter

    def select(self, *columns: str | Column) -> SparkJoin:
        """Choose or compute columns of the result."""
        return self.transform(lambda frame: frame.select(*columns))

    def drop(self, *columns: str) -> SparkJoin:
        """Leave columns of the result out."""
        return self.transform(lambda frame: frame.drop(*columns))

    def transform(self, step: Callable[[DataFrame], DataFrame]) -> SparkJoin:
        """Apply a stateless step to each batch's results."""
        check_stateless(step(self._apply_steps(self._empty_frame())))
        return SparkJoin(self.query, self.planned, self.frames, self.options, (*self.steps, step))

    def explain(self, mode: str | bool | None = None) -> None:
        """Print the query and its plan, or with "mermaid" the plan as a chart.

        With a mode of Spark's, Spark's plan of the input follows.
        """
        if str(mode).lower() == "mermaid":
            print(chart_plan(self.planned))
            return
        print(self.explanation())
        if mode:
            union, _ = tagged_union(self.query, self.frames, self.routing)
            union.explain(mode if isinstance(mode, bool) else None, None if isinstance(mode, bool) else mode)

    def explanation(self) -> str:
        """What `explain` prints without a mode."""
        plan = explain_plan(self.planned, self.options.allowance)
        return f"{describe(self.query)}\n\nover {self.routing}\n\n{plan}"

    def __getattr__(self, name: str) -> Any:
        refuse_stateful(name)
        raise AttributeError(f"a join has no '{name}'")

    def __repr__(self) -> str:
        kinds = ", ".join(f"{field.name}: {field.dataType.simpleString()}" for field in self.schema)
        return f"weir.join[{kinds}]"

    def _result_schema(self) -> StructType:
        return from_arrow_schema(_without_fixed_sizes(result_schema(self.query)), prefer_timestamp_ntz=True)

    def _empty_frame(self) -> DataFrame:
        return self.sparkSession.createDataFrame([], self._result_schema())

    def _apply_steps(self, frame: DataFrame) -> DataFrame:
        for step in self.steps:
            frame = step(frame)
        return frame


def _without_fixed_sizes(schema: pa.Schema) -> pa.Schema:
    """Lists of fixed size as other lists: Spark has one type of array."""
    return pa.schema(
        [
            pa.field(field.name, pa.list_(field.type.value_type))
            if pa.types.is_fixed_size_list(field.type)
            else field
            for field in schema
        ]
    )
