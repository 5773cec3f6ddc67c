"""Start a join; the writer follows Spark's DataStreamWriter."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from weir.errors import QueryError
from weir.kernel.decision import Decision
from weir.kernel.physical_plan import compile_plan
from weir.plan.tree import Join
from weir.spark.batches import SparkBatches
from weir.spark.filesystem import open_folder, qualify
from weir.spark.job import Job
from weir.spark.ledger import Ledger, job_of
from weir.spark.memory import check_memory
from weir.spark.preflight import check_workers
from weir.spark.query import SparkQuery
from weir.spark.routing import movable
from weir.spark.settings import Settings
from weir.spark.sinks import Sink
from weir.spark.targets import EPHEMERAL_FORMATS, Target, choose_sink
from weir.spark.trigger import read_interval
from weir.spark.union import tagged_union

if TYPE_CHECKING:
    from weir.spark.join import SparkJoin


class JoinWriter:
    """Builder of a running query: each setter returns the writer itself."""

    def __init__(self, join: SparkJoin) -> None:
        self._join = join
        self._format: str | None = None
        self._options: dict[str, str] = {}
        self._trigger: dict[str, Any] = {}
        self._name: str | None = None
        self._partition_by: tuple[str, ...] = ()
        self._call: Callable[[DataFrame, int], None] | None = None

    def format(self, source: str) -> JoinWriter:
        """Where the results go: parquet, orc, json, csv, memory, console, noop, count, or a batch source."""
        self._format = source.lower()
        return self

    def option(self, key: str, value: Any) -> JoinWriter:
        """One option; `checkpointLocation` and `path` among them."""
        self._options[key] = str(value).lower() if isinstance(value, bool) else str(value)
        return self

    def options(self, **options: Any) -> JoinWriter:
        """Several options."""
        for key, value in options.items():
            self.option(key, value)
        return self

    def outputMode(self, outputMode: str) -> JoinWriter:  # noqa: N802, N803 - Spark's names
        """Only `append`: a join never changes a result it has given."""
        if outputMode.lower() != "append":
            raise QueryError(f"a join only appends: outputMode must be 'append'; got '{outputMode}'")
        return self

    def queryName(self, queryName: str) -> JoinWriter:  # noqa: N802, N803 - Spark's names
        """The query's name, which the memory sink's table takes too."""
        self._name = queryName
        return self

    def trigger(self, **trigger: Any) -> JoinWriter:
        """When batches run: processingTime, availableNow or once, as in Spark."""
        if "continuous" in trigger or "realTime" in trigger:
            raise QueryError("a join runs in micro-batches: use processingTime, availableNow or once")
        self._trigger = trigger
        return self

    def partitionBy(self, *columns: str) -> JoinWriter:  # noqa: N802 - Spark's name
        """Folders by the values of these columns, for files."""
        self._partition_by = columns
        return self

    def foreachBatch(self, func: Callable[[DataFrame, int], None]) -> JoinWriter:  # noqa: N802 - Spark's name
        """Call `func(results, batch_id)` for each batch; it may read the results as often as it likes."""
        self._call = func
        return self

    def foreach(self, f: Any) -> JoinWriter:
        """Not for joins."""
        raise QueryError("foreach handles row by row; use foreachBatch, which gets each batch as a DataFrame")

    def toTable(self, tableName: str) -> SparkQuery:  # noqa: N802, N803 - Spark's names
        """Start the query, appending to a table, which is created if it does not exist."""
        return self._start(Target(self._format or "parquet", self._options.get("path"), tableName))

    def start(self, path: str | None = None, **options: Any) -> SparkQuery:
        """Start the query."""
        self.options(**options)
        if path is not None:
            self.option("path", path)
        return self._start(Target(self._format or "parquet", self._options.get("path"), None))

    def _start(self, target: Target) -> SparkQuery:
        join, spark = self._join, self._join.sparkSession
        check_memory(spark, join.query.budget)
        checkpoint, sink = self._checkpoint(target), self._sink(target)
        folder = open_folder(spark, f"{checkpoint}/weir")
        check_workers(spark, folder, join.routing.partitions)
        ledger = Ledger(folder)
        plan, first_plan = self._plans(ledger)
        routing = join.route(first_plan, was_shared=ledger.spread() is not None)
        ledger.check_job(job_of(join.query, first_plan, routing.partitions, routing.name))
        union, slots = tagged_union(join.query, join.frames, routing)
        has_adapted = join.settings.adapt is not None or str(plan) != str(first_plan)
        last = ledger.decision(ledger.last().batch) if has_adapted else None
        decision = None if last is None else last[0]
        scope = replace(join.planned.scope(join.query), interval=read_interval(spark, self._trigger))
        job = Job(
            physical=compile_plan(join.query, plan),
            slots=slots,
            driver_order=join.driver_order,
            routing=routing,
            checkpoint=checkpoint,
            settings=self._settings(plan, decision),
            interim_allowance=None if decision is None else decision.interim_allowance,
            scope=replace(scope, changeable=movable(scope.changeable, routing)),
        )
        batches = SparkBatches(spark, job, sink)
        started = self._stream_writer(union, checkpoint).foreachBatch(batches).start()
        batches.engine.triggers.query = started
        return SparkQuery(started, batches)

    def _settings(self, plan: Join, decision: Decision | None) -> Settings:
        """The settings with the allowance to start with: after a restart, that of the last decision."""
        join, settings = self._join, self._join.settings
        if decision is not None and str(decision.plan) == str(plan):
            return replace(settings, allowance=decision.allowance, reason=decision.reason)
        if settings.allowance is not None:
            settings.allowance.check(plan)  # it was given for the plan asked for, which need not be this one
            return settings
        allowance, reason = join.planned.start(join.query, settings.adapt, plan)
        return replace(settings, allowance=allowance, reason=reason)

    def _stream_writer(self, union: DataFrame, checkpoint: str) -> DataStreamWriter:
        writer = union.writeStream.option("checkpointLocation", checkpoint)
        writer = writer.queryName(self._name) if self._name else writer
        return writer.trigger(**self._trigger) if self._trigger else writer

    def _plans(self, ledger: Ledger) -> tuple[Join, Join]:
        """The plan to run, and the one with which the query was first started.

        A restart keeps an automatic plan, and a plan that the query has migrated to.
        """
        planned, first, current = self._join.planned, ledger.plan(), ledger.last().plan
        if planned.automatic:
            plan = current or first or planned.plan
            return plan, first or plan
        if first is None or current is None or str(planned.plan) not in (str(first), str(current)):
            return planned.plan, planned.plan
        return planned.plan if str(planned.plan) == str(current) else current, first

    def _sink(self, target: Target) -> Sink:
        return choose_sink(
            self._join.sparkSession,
            target,
            self._options,
            self._partition_by,
            self._join.steps,
            self._name,
            self._call,
        )

    def _checkpoint(self, target: Target) -> str:
        spark = self._join.sparkSession
        given = self._options.get("checkpointLocation")
        default = spark.conf.get("spark.sql.streaming.checkpointLocation", None)
        if given is None and default and self._name:
            given = f"{default}/{self._name}"
        if given is None and self._call is None and target.format in EPHEMERAL_FORMATS:
            given = tempfile.mkdtemp(prefix="weir-")
        if given is None:
            raise QueryError(
                "a checkpointLocation is needed, where the join keeps its state: "
                '.option("checkpointLocation", "some/folder")'
            )
        return qualify(spark, given)
