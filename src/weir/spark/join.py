"""The join over Spark DataFrames that `weir.join` returns, and how it is built from them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Concatenate, ParamSpec

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from weir.adapt.planner import PlannedJoin, explain_plan
from weir.errors import QueryError
from weir.expr.session import Session
from weir.kernel.decision import Decision
from weir.kernel.output import result_schema
from weir.kernel.physical_plan import compile_plan
from weir.options import JoinOptions
from weir.order.policies import INTERLEAVING_POLICIES
from weir.partition.placement import SHARED_SPREADS
from weir.plan.explain import render_mermaid
from weir.plan.tree import Join
from weir.query.build import build_query, make_scope, push_down_clauses, refuse_internal_names
from weir.query.deferred import defer_outputs
from weir.query.describe import describe
from weir.query.model import Query
from weir.query.options import PerStream, show_given
from weir.query.pushdown import Pushdown
from weir.query.sql import name_streams, read_clauses, refuse_failing_constants
from weir.spark.deferred import make_step
from weir.spark.event_time import find_event_times
from weir.spark.failure import is_debugging
from weir.spark.frame_methods import FrameMethods
from weir.spark.frames import read_frame, read_schema, refuse_mixture
from weir.spark.functions import refuse_calls_of_spark, register_functions
from weir.spark.preflight import use_own_python
from weir.spark.projection import Errors, describe_projection, project
from weir.spark.read_back import ReadBack, choose_watermark, read_back
from weir.spark.restart import explain_restart
from weir.spark.routing import Routing, RoutingKey, choose_routing, choose_shared_spread
from weir.spark.session_tables import add_session_tables
from weir.spark.steps import Steps, apply_steps, check_stateless
from weir.spark.task import StaticJoinTask
from weir.spark.union import Frames, assign_partitions, shuffle_by_partition, tagged_union
from weir.spark.writer import JoinWriter

P = ParamSpec("P")
_COMPUTED = re.compile(r"(?:`[^`]+`|\w+)\.`weir\d*:((?:[^`]|``)*)`")


@dataclass(frozen=True)
class JoinInputs:
    """What a join was built from: the options `asked`, its streams as `sources`, and with what Spark adds.

    `frames` are the sources with what was `pushed` down to Spark; the output columns `deferred` (their texts
    by name) it computes in `steps` after the join.
    """

    asked: JoinOptions
    sources: Frames
    frames: Frames
    pushed: Pushdown
    deferred: Mapping[str, str]
    steps: Steps

    @property
    def projection(self) -> tuple[str, ...]:
        """Lines that say what Spark computes before the join."""
        return tuple(describe_projection(self.pushed))

    def reorder(self, names: Sequence[str]) -> JoinInputs:
        """Return the same inputs with the streams in another order."""
        sources, frames = ({name: given[name] for name in names} for given in (self.sources, self.frames))
        return replace(self, sources=sources, frames=frames)


class SparkJoin(FrameMethods):
    """A defined join: `writeStream` runs it over streams, `toDF()` over static DataFrames."""

    def __init__(
        self,
        query: Query,
        planned: PlannedJoin,
        inputs: JoinInputs,
        options: JoinOptions,
        user_steps: Steps = (),
    ) -> None:
        if options.allowance is not None:
            options.allowance.check(planned.plan)
        self.query, self.planned, self.inputs = query, planned, inputs
        self.options, self.user_steps = options, user_steps
        self.driver_order = options.order_streams(query)
        self.routing = self.route(planned.plan, was_shared=False)

    @property
    def frames(self) -> Frames:
        """The streams, with the columns that Spark computes before the join."""
        return self.inputs.frames

    @property
    def steps(self) -> Steps:
        """What is done with the results of each batch."""
        return (*self.inputs.steps, *self.user_steps)

    def reorder(self, names: Sequence[str]) -> SparkJoin:
        """Return the same join with its streams in another order; its results have the same columns."""
        query, inputs = self.query.reorder(names), self.inputs.reorder(names)
        planned = _plan(query, inputs.frames, self.options)
        return SparkJoin(query, planned, inputs, self.options, self.user_steps)

    def redefine(self, frames: Frames, options: JoinOptions, time: PerStream[str]) -> SparkJoin:
        """Return the join of other streams by other options; `time` is what their time columns came from."""
        return join_streams(frames, options)._ask_for(time)

    def compute_in_kernel(self, expressions: Collection[tuple[str, str]]) -> SparkJoin:
        """Return the same join, of which the kernel computes some expressions (stream and text)."""
        streams, inputs = self.query.streams, self.inputs
        # The sources have the times that were asked for as expressions by now.
        times = {stream.name: stream.time for stream in streams}
        late = {stream.name: timedelta(microseconds=stream.late) for stream in streams}
        asked = replace(inputs.asked, time=times, late=late)
        join = join_streams(inputs.sources, asked, expressions).reorder(self.query.names)
        join = join._ask_for(inputs.asked.time)
        return SparkJoin(join.query, join.planned, join.inputs, join.options, self.user_steps)

    def _ask_for(self, time: PerStream[str] | None) -> SparkJoin:
        """Return the same join as one that was asked for with these times."""
        inputs = replace(self.inputs, asked=replace(self.inputs.asked, time=time))
        return SparkJoin(self.query, self.planned, inputs, self.options, self.user_steps)

    def route(
        self,
        plan: Join,
        was_shared: bool,
        partitions: int | None = None,
        known: RoutingKey | None = None,
    ) -> Routing:
        """Choose how rows and work are divided; once rows were shared, keys no longer say where they lie."""
        context, options = self.sparkSession.sparkContext, self.options
        shared = choose_shared_spread(context.master or "")
        spread = shared if was_shared and options.spread == "auto" else options.spread
        partitions, cores = partitions or options.partitions, context.defaultParallelism
        routing = choose_routing(self.query, plan, spread, partitions, cores, self.isStreaming, shared, known)
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
        if not self.steps:
            return self._result_schema()
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

    def toDF(self, *cols: str) -> DataFrame:  # noqa: N802 - Spark's name
        """Return the join of static DataFrames, evaluated when it is read; `cols` rename its columns."""
        if self.isStreaming:
            raise QueryError("a streaming join has no static result: start it with writeStream")
        if self.options.on_error == "quarantine":
            raise QueryError(
                "on_error='quarantine' writes into the checkpoint of a streaming query, which a static join "
                "does not have; pass on_error='fail' or 'null'"
            )
        union, slots = tagged_union(self.query, self.frames, self.routing)
        physical = compile_plan(self.query, self.planned.plan)
        decision = Decision(self.planned.plan, self.driver_order, allowance=self.options.allowance)
        task = StaticJoinTask(physical, decision, slots, self.options.on_null_time, is_debugging())
        placed = assign_partitions(union, self.routing.first_placement())
        rows = shuffle_by_partition(placed, self.routing.partitions)
        results = apply_steps(self.steps, rows.mapInArrow(task, self._result_schema()))
        return results.toDF(*cols) if cols else results

    def transform(
        self, func: Callable[Concatenate[DataFrame, P], DataFrame], *args: P.args, **kwargs: P.kwargs
    ) -> SparkJoin:
        """Apply a step to each batch's results, or to a static result; over streams it must be stateless."""

        def step(frame: DataFrame) -> DataFrame:
            return func(frame, *args, **kwargs)

        applied = step(apply_steps(self.steps, self._empty_frame()))
        if not isinstance(applied, DataFrame):
            raise QueryError(
                f"transform takes a function that returns a DataFrame; got {show_given(applied)}"
            )
        if self.isStreaming:
            check_stateless(applied)
        steps = (*self.user_steps, step)
        return SparkJoin(self.query, self.planned, self.inputs, self.options, steps)

    def readBack(  # noqa: N802 - as Spark writes names
        self,
        path: str,
        checkpointLocation: str,  # noqa: N803 - Spark's name
        time: str | None = None,
        late: str | timedelta | None = None,
        *,
        processingTime: str | None = None,  # noqa: N803 - Spark's name
        availableNow: bool = False,  # noqa: N803 - Spark's name
        once: bool = False,
        queryName: str | None = None,  # noqa: N803 - Spark's name
    ) -> ReadBack:
        """Start the join into parquet files at `path`; return a stream of its results, and the running query.

        Any step of Spark's or another join may follow on `.frame`; `.query` is the join. The watermark is on
        the column `time`, by default the first that is the event time of a stream, and `late` behind, by
        default as far as windows, time bounds and lateness of the join ask for. The trigger is as in Spark:
        processingTime, availableNow or once.
        """
        writer = self.writeStream.option("checkpointLocation", checkpointLocation)
        if processingTime or availableNow or once:
            writer.trigger(
                processingTime=processingTime, availableNow=availableNow or None, once=once or None
            )
        if queryName is not None:
            writer.queryName(queryName)
        watermark = choose_watermark(self, self._result_schema(), time, late)
        return read_back(self, writer, path, checkpointLocation, watermark)

    def explain(
        self, extended: bool | str | None = None, mode: str | None = None, checkpoint: str | None = None
    ) -> None:
        """Print the query and its plan; with "mermaid", the plan as a chart.

        With one of Spark's modes, print Spark's plan of the input too. With a `checkpoint`, print instead
        what a start from there would change, and whether it may.
        """
        if checkpoint is not None:
            print(explain_restart(self, checkpoint))
            return
        asked = extended if mode is None else mode
        if str(asked).lower() == "mermaid":
            print(render_mermaid(self.planned.plan, self.planned.cost))
            return
        print(self.explanation())
        if asked:
            union, _ = tagged_union(self.query, self.frames, self.routing)
            union.explain(asked)

    def explanation(self) -> str:
        """Return what `explain` prints without a mode."""
        plan = explain_plan(self.planned, self.options.allowance)
        inputs = self.inputs
        computed = [*inputs.projection, *(f"after the join: {name}" for name in inputs.deferred)]
        lines = "".join(f"\n  {line}" for line in computed)
        by_spark = f"\ncomputed by Spark{lines}" if lines else ""
        return f"{describe(self.query, inputs.deferred)}{by_spark}\n\nover {self.routing}\n\n{plan}"

    def __repr__(self) -> str:
        columns = ", ".join(f"{field.name}: {field.dataType.simpleString()}" for field in self.schema)
        return f"weir.join[{columns}]"

    def _result_schema(self) -> StructType:
        return from_arrow_schema(result_schema(self.query), prefer_timestamp_ntz=True)

    def _empty_frame(self) -> DataFrame:
        return self.sparkSession.createDataFrame([], self._result_schema())


def build_join(given: Mapping[str, Any], options: JoinOptions) -> SparkJoin:
    """Build the join of Spark DataFrames."""
    tables = add_session_tables(given, options.statement)
    checked = {name: read_frame(name, frame) for name, frame in tables.items()}
    named = name_streams(checked, options.statement)
    refuse_mixture(named)
    use_own_python(next(iter(named.values())).sparkSession)
    return join_streams(named, options)


def join_streams(named: Frames, asked: JoinOptions, in_kernel: Collection[tuple[str, str]] = ()) -> SparkJoin:
    """Build the join of DataFrames that are named as the streams of the query.

    Of what concerns one stream alone, the kernel computes the expressions `in_kernel` (stream and text), and
    Spark all others.
    """
    session = next(iter(named.values())).sparkSession
    sources, options = find_event_times(named, asked)
    options = replace(options, session=_read_session(session, options))
    options, functions = register_functions(options, session)
    schemas = _read_schemas(sources)
    refuse_internal_names(schemas)
    clauses = read_clauses(options).resolve_using(schemas)
    scope = make_scope(schemas, options)
    refuse_failing_constants(clauses.select, scope)
    pushed = push_down_clauses(schemas, options, clauses, in_kernel)
    errors: Errors = options.on_error if scope.session.ansi else "none"
    frames = project(sources, pushed, functions, errors)
    computed = _read_schemas(frames)
    refuse_calls_of_spark(pushed.clauses.conditions, functions, scope, session)
    remaining, deferred = defer_outputs(pushed.clauses, clauses, scope, make_scope(computed, options))
    with _show_written_text():
        query = build_query(computed, options, remaining, pushed.filters)
        query = options.plan_request.divide_windows(query)
    steps = (make_step(deferred, functions, errors),) if deferred else ()
    texts = {output.name: output.text for output in deferred}
    inputs = JoinInputs(asked, sources, frames, pushed, texts, steps)
    join = SparkJoin(query, _plan(query, frames, options), inputs, options)
    if steps:  # refuse now what Spark does not know either
        check_stateless(apply_steps(steps, join._empty_frame()))
    return join


def _plan(query: Query, frames: Frames, options: JoinOptions) -> PlannedJoin:
    request = options.plan_request
    is_streaming = any(frame.isStreaming for frame in frames.values())
    if request.plan == "auto" and is_streaming and options.spread in SHARED_SPREADS:
        request = replace(request, plan="mjoin")
    cores = next(iter(frames.values())).sparkSession.sparkContext.defaultParallelism
    return request.plan_join(query, cores=min(options.partitions or cores, cores))


@contextmanager
def _show_written_text() -> Iterator[None]:
    """Show the expressions that computed columns hold in errors, in place of the columns."""
    try:
        yield
    except QueryError as error:
        raise QueryError(_COMPUTED.sub(lambda found: found[1].replace("``", "`"), str(error))) from None


def _read_schemas(frames: Frames) -> dict[str, pa.Schema]:
    return {name: read_schema(name, frame) for name, frame in frames.items()}


def _read_session(spark: SparkSession, options: JoinOptions) -> Session:
    """Read the time zone and the mode of the DataFrames' session."""
    if options.session is not None:
        raise QueryError(
            "session= applies to tables of this process; Spark DataFrames follow their session, so set "
            "spark.sql.session.timeZone and spark.sql.ansi.enabled there"
        )
    time_zone, ansi = (spark.conf.get(f"spark.sql.{name}") for name in ("session.timeZone", "ansi.enabled"))
    return Session(str(time_zone), str(ansi).lower() == "true")
