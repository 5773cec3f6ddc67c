"""Start a join; the writer follows Spark's DataStreamWriter."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from weir.errors import QueryError
from weir.partition.resize import Resize
from weir.plan.tree import Join
from weir.runtime.decide import DecidedPlan, Policy
from weir.spark.checkpoint import Checkpoint, CheckpointLog
from weir.spark.checkpoint_lock import CheckpointLock
from weir.spark.engine import SparkEngine
from weir.spark.filesystem import Folder, open_folder, qualify
from weir.spark.job_description import describe_job
from weir.spark.preflight import WorkerCheck, check_memory
from weir.spark.query import SparkBatches, SparkQuery
from weir.spark.routing import Routing, limit_changes
from weir.spark.sinks import EPHEMERAL_FORMATS, CallSink, Sink, Target, choose_sink
from weir.spark.union import tagged_union
from weir.units import parse_interval

if TYPE_CHECKING:
    from weir.spark.join import SparkJoin

_LOG = logging.getLogger("weir")
_OPTIONS_OF_QUERY = ("path", "checkpointLocation")
_BATCHES_TO_RETAIN = "spark.sql.streaming.minBatchesToRetain"


class JoinWriter:
    """Builder of a running query: each setter returns the writer itself."""

    def __init__(self, join: SparkJoin) -> None:
        self._join = join
        self._format = "parquet"
        self._options: dict[str, str] = {}
        self._trigger: dict[str, Any] = {}
        self._name: str | None = None
        self._partition_by: tuple[str, ...] = ()
        self._call: Callable[[DataFrame, int], None] | None = None

    def format(self, source: str) -> JoinWriter:
        """Set the format: parquet, orc, json, csv, text, memory, console, noop, count, or a batch source."""
        self._format = source.lower()
        return self

    def option(self, key: str, value: Any) -> JoinWriter:
        """Set an option, such as `checkpointLocation` or `path`."""
        self._options[key] = str(value).lower() if isinstance(value, bool) else str(value)
        return self

    def options(self, **options: Any) -> JoinWriter:
        """Set several options."""
        for key, value in options.items():
            self.option(key, value)
        return self

    def outputMode(self, outputMode: str) -> JoinWriter:  # noqa: N802, N803 - Spark's names
        """Accept only `append`: a join never changes a result that it has emitted."""
        if outputMode.lower() != "append":
            raise QueryError(f"a join only appends: outputMode must be 'append'; got '{outputMode}'")
        return self

    def queryName(self, queryName: str) -> JoinWriter:  # noqa: N802, N803 - Spark's names
        """Set the query's name, which is also that of the memory sink's table."""
        self._name = queryName
        return self

    def trigger(self, **trigger: Any) -> JoinWriter:
        """Set when batches run: processingTime, availableNow or once, as in Spark."""
        if "continuous" in trigger or "realTime" in trigger:
            raise QueryError("a join runs in micro-batches: use processingTime, availableNow or once")
        self._trigger = trigger
        return self

    def partitionBy(self, *columns: str) -> JoinWriter:  # noqa: N802 - Spark's name
        """Write files into folders by the values of these columns."""
        self._partition_by = columns
        return self

    def foreachBatch(self, func: Callable[[DataFrame, int], None]) -> JoinWriter:  # noqa: N802 - Spark's name
        """Call `func(results, batch_id)` for each batch; it may read the results as often as it likes."""
        self._call = func
        return self

    def foreach(self, f: Any) -> JoinWriter:
        """Refuse, and name foreachBatch instead."""
        raise QueryError("foreach handles row by row; use foreachBatch, which gets each batch as a DataFrame")

    def toTable(self, tableName: str) -> SparkQuery:  # noqa: N802, N803 - Spark's names
        """Start the query; append to a table, and create it if it does not exist."""
        return self._start(tableName)

    def start(self, path: str | None = None, **options: Any) -> SparkQuery:
        """Start the query."""
        self.options(**options)
        if path is not None:
            self.option("path", path)
        return self._start(None)

    def _start(self, table: str | None) -> SparkQuery:
        join, spark = self._join, self._join.sparkSession
        check_memory(spark, join.query.budget)
        location, sink = self._locate_checkpoint(), self._choose_sink(table)
        folder = open_folder(spark, f"{location}/weir")
        with CheckpointLock(spark, folder.uri) as lock:
            # The workers start and are checked while the query is prepared; its first batch waits for them.
            workers = WorkerCheck(spark, folder)
            batches, writer = self._prepare(location, folder, sink, workers)
            started = lock.start(writer)
        batches.engine.watch(started)
        try:
            workers.wait()
        except Exception:
            started.stop()
            raise
        return SparkQuery(spark, started, batches)

    def _prepare(
        self, location: str, folder: Folder, sink: Sink, workers: WorkerCheck
    ) -> tuple[SparkBatches, DataStreamWriter]:
        join, spark = self._join, self._join.sparkSession
        checkpoint = Checkpoint(folder)
        plan, first_plan = self._choose_plans(checkpoint)
        routing = self._route(first_plan, checkpoint)
        checkpoint.record_or_check_job(describe_job(join.query, first_plan, routing.partitions, routing.name))
        union, slots = tagged_union(join.query, join.frames, routing)
        policy = self._make_policy(routing)
        # A repeated batch needs the manifest before it, whatever the session says.
        log = CheckpointLog(folder, max(2, int(spark.conf.get(_BATCHES_TO_RETAIN, "100") or 100)))
        is_asked = join.options.partitions is not None
        resize = Resize(routing.partitions, "passive") if is_asked else None
        engine = SparkEngine(spark, policy, routing, slots, folder, sink, join.steps, resize)
        start = self._decide_start(plan, str(plan) != str(first_plan), checkpoint)
        batches = SparkBatches(engine, log, policy, start, join.options.on_null_time, workers)
        writer = union.writeStream.option("checkpointLocation", location).foreachBatch(batches)
        writer = writer.queryName(self._name) if self._name else writer
        return batches, writer.trigger(**self._trigger) if self._trigger else writer

    def _route(self, first_plan: Join, checkpoint: Checkpoint) -> Routing:
        """Route rows; without `partitions=`, a restart keeps the number of the checkpoint."""
        stored, join = checkpoint.read_job(), self._join
        was_shared = stored is not None and stored.is_shared
        routing = join.route(first_plan, was_shared)
        kept, default = checkpoint.read_partitions(), routing.partitions
        if kept is None or kept == default or join.options.partitions is not None:
            return routing
        _LOG.info("the join keeps the %d partitions of its checkpoint; here the default is %d", kept, default)
        return join.route(first_plan, was_shared, kept)

    def _make_policy(self, routing: Routing) -> Policy:
        join, idle = self._join, self._join.options.idle
        scope = join.planned.scope(join.query)
        interval = _trigger_seconds(join.sparkSession, self._trigger)
        scope = replace(scope, interval=interval, changeable=limit_changes(scope.changeable, routing))
        idle_micros = None if idle is None else parse_interval(idle)
        return Policy(join.query, join.driver_order, idle_micros, join.options.adaptation, scope)

    def _decide_start(self, plan: Join, has_migrated: bool, checkpoint: Checkpoint) -> DecidedPlan:
        """Resume the last decision of a query that adapts or has migrated; else start as asked."""
        join, options = self._join, self._join.options
        resumes = options.adaptation is not None or has_migrated
        last = checkpoint.decision(checkpoint.read_manifest().batch) if resumes else None
        decision = None if last is None else last[0]
        interim = None if decision is None else decision.interim_allowance
        if decision is not None and str(decision.plan) == str(plan):
            return DecidedPlan(plan, decision.allowance, decision.reason, interim)
        if options.allowance is not None:
            options.allowance.check(plan)  # it was given for the plan asked for, which may be another one
            return DecidedPlan(plan, options.allowance, interim_allowance=interim)
        allowance, reason = join.planned.start(join.query, options.adaptation, plan)
        return DecidedPlan(plan, allowance, reason, interim)

    def _choose_plans(self, checkpoint: Checkpoint) -> tuple[Join, Join]:
        """Return the plan to run, and the one with which the query was first started.

        A restart keeps an automatic plan, and a plan to which the query has migrated.
        """
        planned, stored, current = self._join.planned, checkpoint.read_job(), checkpoint.read_manifest().plan
        first = None if stored is None else stored.plan
        if planned.automatic:
            plan = current or first or planned.plan
            return plan, first or plan
        if first is None or current is None or str(planned.plan) not in (str(first), str(current)):
            return planned.plan, planned.plan
        return planned.plan if str(planned.plan) == str(current) else current, first

    def _choose_sink(self, table: str | None) -> Sink:
        if self._call is not None:
            return CallSink(self._call)
        options = {key: value for key, value in self._options.items() if key not in _OPTIONS_OF_QUERY}
        path = self._options.get("path")
        target = Target(self._format, path, table, options, self._partition_by, self._name)
        return choose_sink(self._join.sparkSession, target, has_steps=bool(self._join.steps))

    def _locate_checkpoint(self) -> str:
        spark = self._join.sparkSession
        location = self._options.get("checkpointLocation")
        default = spark.conf.get("spark.sql.streaming.checkpointLocation", None)
        if location is None and default and self._name:
            location = f"{default}/{self._name}"
        if location is None and self._call is None and self._format in EPHEMERAL_FORMATS:
            location = tempfile.mkdtemp(prefix="weir-")
        if location is None:
            raise QueryError(
                "a checkpointLocation is needed, where the join keeps its state: "
                '.option("checkpointLocation", "some/folder")'
            )
        return qualify(spark, location)


def _trigger_seconds(spark: SparkSession, trigger: Mapping[str, Any]) -> float | None:
    """The seconds between two triggers; None if each batch starts when the last one ends."""
    if "processingTime" not in trigger:
        return None
    jvm: Any = spark._jvm
    processing_time = jvm.org.apache.spark.sql.streaming.Trigger.ProcessingTime(trigger["processingTime"])
    return float(processing_time.intervalMs()) / 1000 or None
