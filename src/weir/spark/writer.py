"""Start a join; the writer follows Spark's DataStreamWriter."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from weir.errors import QueryError
from weir.query.options import show_given
from weir.runtime.decide import DecidedPlan, Policy
from weir.runtime.manifest_adaptation import adapt_manifest
from weir.runtime.wall_clock import read_wall_clock
from weir.spark.checkpoint import Checkpoint
from weir.spark.checkpoint_lock import CheckpointLock
from weir.spark.checkpoint_log import CheckpointLog
from weir.spark.disk_space import name_full_disk
from weir.spark.durability import Durability, PowerDurability, ProcessDurability
from weir.spark.engine import SparkEngine
from weir.spark.epoch import Epoch, take_epoch
from weir.spark.failure import find_own_error, is_debugging
from weir.spark.filesystem import Folder, open_folder, qualify
from weir.spark.java_errors import JAVA_ERRORS
from weir.spark.job_description import FileTarget
from weir.spark.output_owner import Owner
from weir.spark.power_cut import mend_checkpoint
from weir.spark.preflight import WorkerCheck, check_memory
from weir.spark.query import SparkBatches, SparkQuery
from weir.spark.restart import Restart, StartPlan, plan_repeat, plan_start, read_restart
from weir.spark.result_names import make_id
from weir.spark.routing import Routing, limit_changes
from weir.spark.sinks import EPHEMERAL_FORMATS, CallSink, Sink, check_target, choose_sink
from weir.spark.spark_logs import SparkLogs
from weir.spark.sweep import sweep_failed_attempts
from weir.spark.target import Target, record_target, restore_target
from weir.spark.trigger import name_unknown_keywords, read_trigger, trigger_seconds
from weir.spark.union import tagged_union
from weir.spark.vacuum import Vacuum
from weir.spark.writer_options import WriterOptions, check_spelling, show_option
from weir.units import parse_interval

if TYPE_CHECKING:
    from weir.spark.join import SparkJoin

_LOG = logging.getLogger("weir")
_BATCHES_TO_RETAIN = "spark.sql.streaming.minBatchesToRetain"


@dataclass(frozen=True)
class _Run:
    """A start from a checkpoint: what it found there after it had taken its epoch, and how it goes on."""

    owner: Owner
    epoch: Epoch
    restart: Restart
    start: StartPlan


class JoinWriter:
    """Builder of a running query, as Spark's: each setter returns the writer itself."""

    def __init__(self, join: SparkJoin) -> None:
        self._join = join
        self._format = join.sparkSession.conf.get("spark.sql.sources.default", "parquet") or "parquet"
        self._options = WriterOptions()
        self._trigger: dict[str, Any] = {}
        self._partition_by: tuple[str, ...] = ()
        self._call: Callable[[DataFrame, int], None] | None = None
        self._is_temporary = False  # the checkpoint

    def format(self, source: str) -> JoinWriter:
        """Set the format: parquet, orc, json, csv, text, memory, console, noop, count, or a batch source."""
        self._format = _check_name("format", source, "'parquet'")
        return self

    def option(self, key: str, value: Any) -> JoinWriter:
        """Set an option, such as `checkpointLocation` or `path`; names are case-insensitive, None unsets."""
        name, shown = show_option(key, value)
        if shown is None:
            self._options.pop(name, None)
        else:
            self._options[name] = shown
        return self

    def options(self, **options: Any) -> JoinWriter:
        """Set several options."""
        for key, value in options.items():
            self.option(key, value)
        return self

    def outputMode(self, outputMode: str) -> JoinWriter:  # noqa: N802, N803 - Spark's names
        """Accept only `append`: a join never changes a result that it has emitted."""
        if str(outputMode).lower() != "append":
            raise QueryError(f"a join only appends: outputMode must be 'append'; got '{outputMode}'")
        return self

    def queryName(self, queryName: str) -> JoinWriter:  # noqa: N802, N803 - Spark's names
        """Set the query's name, which is also that of the memory sink's table."""
        return self.option("queryName", _check_name("queryName", queryName, "'orders_paid'"))

    @name_unknown_keywords
    def trigger(
        self,
        *,
        processingTime: str | None = None,  # noqa: N803 - Spark's names, here and below
        once: bool | None = None,
        continuous: str | None = None,
        availableNow: bool | None = None,  # noqa: N803
        realTime: str | None = None,  # noqa: N803
    ) -> JoinWriter:
        """Set when batches run, by one of processingTime, availableNow and once."""
        given = {
            "processingTime": processingTime,
            "once": once,
            "continuous": continuous,
            "availableNow": availableNow,
            "realTime": realTime,
        }
        self._trigger = read_trigger(self._join.sparkSession, given)
        return self

    def partitionBy(self, *cols: str) -> JoinWriter:  # noqa: N802 - Spark's name
        """Write files into folders by the values of these columns; a list of names is fine too."""
        self._partition_by = _check_columns("partitionBy", cols)
        return self

    def clusterBy(self, *cols: str) -> JoinWriter:  # noqa: N802 - Spark's name
        """Refuse, and name partitionBy instead."""
        raise QueryError(
            "clusterBy is not supported: use partitionBy, or cluster the table once it is written"
        )

    def foreachBatch(self, func: Callable[[DataFrame, int], None]) -> JoinWriter:  # noqa: N802 - Spark's name
        """Call `func(results, batch_id)` for each batch; it may read the results as often as it likes."""
        if not callable(func):
            raise QueryError(f"foreachBatch takes a function of results and batch id; got {show_given(func)}")
        self._call = func
        return self

    def foreach(self, f: Any) -> JoinWriter:
        """Refuse, and name foreachBatch instead."""
        raise QueryError("foreach handles row by row; use foreachBatch, which gets each batch as a DataFrame")

    def toTable(  # noqa: N802 - Spark's name
        self,
        tableName: str,  # noqa: N803 - Spark's names, here and below
        format: str | None = None,
        outputMode: str | None = None,  # noqa: N803
        partitionBy: str | list[str] | None = None,  # noqa: N803
        queryName: str | None = None,  # noqa: N803
        **options: Any,
    ) -> SparkQuery:
        """Start the query; append to a table, and create it if it does not exist."""
        self._set(format, outputMode, partitionBy, queryName, options)
        return self._start(_check_name("toTable", tableName, "'db.orders_paid'"))

    def start(
        self,
        path: str | None = None,
        format: str | None = None,
        outputMode: str | None = None,  # noqa: N803 - Spark's names, here and below
        partitionBy: str | list[str] | None = None,  # noqa: N803
        queryName: str | None = None,  # noqa: N803
        **options: Any,
    ) -> SparkQuery:
        """Start the query."""
        self._set(format, outputMode, partitionBy, queryName, options)
        if path is not None:
            other = self._options.get("path")
            if other not in (None, str(path)):
                raise QueryError(f"two paths are given, option 'path' is '{other}' and start has '{path}'")
            self.option("path", path)
        return self._start(None)

    def _set(
        self,
        format: str | None,
        output_mode: str | None,
        partition_by: str | list[str] | None,
        query_name: str | None,
        options: Mapping[str, Any],
    ) -> None:
        """Apply the arguments that `start` and `toTable` share."""
        self.options(**options)
        if output_mode is not None:
            self.outputMode(output_mode)
        if partition_by is not None:
            self.partitionBy(partition_by)  # type: ignore[arg-type] # a list is fine
        if format is not None:
            self.format(format)
        if query_name is not None:
            self.queryName(query_name)

    @property
    def checkpoint(self) -> str | None:
        """Where the join keeps its state, as options and the session say; None if they do not."""
        location = self._options.get("checkpointLocation")
        default = self._join.sparkSession.conf.get("spark.sql.streaming.checkpointLocation", None)
        if location is None and default and self._name:
            return f"{default}/{self._name}"
        return location

    @property
    def needs_checkpoint(self) -> bool:
        """True if `start()` refuses a query without one."""
        return self.checkpoint is None and (
            self._call is not None or self._format.lower() not in EPHEMERAL_FORMATS
        )

    def check(self) -> None:
        """Refuse what `start()` would refuse of the options and the sink, and change nothing."""
        spark = self._join.sparkSession
        self._check_settings()
        owner = Owner(make_id(), "")
        if self.checkpoint is not None:
            location = qualify(spark, self.checkpoint)
            owner = Owner(read_restart(spark, location).id, location)
        target = self._make_target(None, self._join, owner)
        if target is not None:
            check_target(spark, target)

    @property
    def _name(self) -> str | None:
        return self._options.get("queryName")

    def _check_settings(self) -> None:
        check_memory(self._join.sparkSession, self._join.query.budget)
        check_spelling(self._options)

    def _start(self, table: str | None) -> SparkQuery:
        join, spark = self._join, self._join.sparkSession
        self._check_settings()
        location = self._locate_checkpoint()
        is_synced = join.options.durability == "power"
        folder = open_folder(spark, f"{location}/weir", is_synced)
        with CheckpointLock(spark, folder.uri) as lock:
            is_alone = lock.is_alone
            if is_alone and is_synced:
                mend_checkpoint(open_folder(spark, location), Checkpoint(folder), partial(open_folder, spark))
            restart = read_restart(spark, location)
            owner = Owner(restart.id, location)
            if is_alone:
                sweep_failed_attempts(spark, folder, restart, owner)
            sink = self._choose_sink(table, join, owner)
            target = record_target(spark, self._make_target(table, join, owner))
            plan_start(join, restart, target).check(restart)  # a start that is refused takes nothing over
            # The workers start and are checked while the query is prepared; its first batch waits for them.
            workers = WorkerCheck(spark, folder)
            run = self._take_over(owner, folder, target)
            if self._finish_begun_batch(run, sink, workers):
                run = self._take_over(owner, folder, target)
            # The sink may have looked at what a repeated batch has changed since, and steps may be new.
            sink = self._choose_sink(table, run.start.join, owner)
            batches, writer = self._prepare(run, sink, workers)
            started = _start_on_spark(lock, writer, batches, run)
        batches.engine.watch(started)
        try:
            workers.wait()
        except Exception:
            started.stop()
            raise
        return SparkQuery(spark, started, batches)

    def _take_over(self, owner: Owner, folder: Folder, target: FileTarget | None) -> _Run:
        """Take an epoch, then read the checkpoint again: an older driver begins no batch from here on."""
        epoch = take_epoch(folder, owner.id)
        restart = read_restart(self._join.sparkSession, owner.checkpoint)
        start = plan_start(self._join, restart, target).check(restart)
        return _Run(owner, epoch, restart, start)

    def _finish_begun_batch(self, run: _Run, sink: Sink, workers: WorkerCheck) -> bool:
        """Repeat a batch that an earlier query had begun with that query; False if there is none."""
        spark, restart, owner = self._join.sparkSession, run.restart, run.owner
        repeat = plan_repeat(run.start, restart, run.epoch.number)
        if repeat is None:
            return False
        join, earlier_target = repeat
        _LOG.info("batch %s had begun and is repeated with the earlier query", restart.begun)
        if earlier_target is not None:
            given = self._options.of_sink()
            earlier = restore_target(earlier_target, given, join.schema, owner, restart.begun)
            sink = choose_sink(spark, earlier, has_steps=bool(join.steps))
        writer = JoinWriter(join).trigger(once=True)
        with CheckpointLock(spark, restart.uri) as lock:
            run = replace(run, start=plan_start(join, restart, earlier_target).check(restart))
            batches, stream_writer = writer._prepare(run, sink, workers)
            query = _start_on_spark(lock, stream_writer, batches, run)
        try:
            SparkQuery(spark, query, batches).awaitTermination()
        finally:
            batches.decider.close()
        return True

    def _prepare(self, run: _Run, sink: Sink, workers: WorkerCheck) -> tuple[SparkBatches, DataStreamWriter]:
        start, epoch, location, durability = run.start, run.epoch, run.owner.checkpoint, self._sync(run)
        join, routing, job = start.join, start.routing, start.job
        spark, checkpoint = join.sparkSession, Checkpoint(epoch.folder)
        union, slots = tagged_union(join.query, join.frames, routing)
        policy = self._make_policy(join, routing)
        # A repeated batch needs the manifest before it, whatever the session says.
        retained = max(2, int(spark.conf.get(_BATCHES_TO_RETAIN, "100") or 100))
        vacuum = Vacuum(checkpoint, epoch, retained)
        logs = SparkLogs(open_folder(spark, location))
        log = CheckpointLog(
            epoch, job, lambda manifest: adapt_manifest(manifest, join.query), logs, durability, vacuum
        )
        if not run.restart.has_state:
            log.record_job()
        durability.sync_start()
        engine = SparkEngine(spark, policy, routing, slots, epoch, durability, sink, join.steps, job.filled)
        if join.options.partitions is not None:
            engine.start_with(routing.partitions)
        decided = _decide_start(start, checkpoint)
        on_null_time, pushed = join.options.on_null_time, join.inputs.pushed
        batches = SparkBatches(engine, log, policy, decided, on_null_time, workers, pushed, epoch)
        writer = union.writeStream.option("checkpointLocation", location).foreachBatch(batches)
        writer = writer.queryName(self._name) if self._name else writer
        return batches, writer.trigger(**self._trigger) if self._trigger else writer

    def _sync(self, run: _Run) -> Durability:
        """Return what syncs the batches; nothing outlives a temporary checkpoint anyway."""
        if run.start.join.options.durability == "process" or self._is_temporary:
            return ProcessDurability()
        return PowerDurability(run.epoch.folder)

    def _make_policy(self, join: SparkJoin, routing: Routing) -> Policy:
        options, scope = join.options, join.planned.scope(join.query)
        interval = trigger_seconds(join.sparkSession, self._trigger)
        scope = replace(scope, interval=interval, changeable=limit_changes(scope.changeable, routing))
        idle, ahead = (
            None if length is None else parse_interval(length) for length in (options.idle, options.ahead)
        )
        return Policy(
            query=join.query,
            driver_order=join.driver_order,
            idle=idle,
            ahead=ahead,
            wall_clock=read_wall_clock,
            adapt=options.adaptation,
            scope=scope,
            keeps_dropped=options.on_error == "quarantine",
        )

    def _choose_sink(self, table: str | None, join: SparkJoin, owner: Owner) -> Sink:
        target = self._make_target(table, join, owner)
        if target is None:
            assert self._call is not None, "what has no target has a function"
            return CallSink(self._call)
        return choose_sink(join.sparkSession, target, has_steps=bool(join.steps))

    def _make_target(self, table: str | None, join: SparkJoin, owner: Owner) -> Target | None:
        """Collect where results go; None if a function takes them."""
        if self._call is not None and table is not None:
            raise QueryError("foreachBatch and toTable are two sinks; use one of them")
        if self._call is not None:
            return None
        options, path, columns = self._options.of_sink(), self._options.get("path"), self._partition_by
        return Target(self._format, path, table, options, columns, self._name, join.schema, owner)

    def _locate_checkpoint(self) -> str:
        if self.needs_checkpoint:
            raise QueryError(
                "a checkpointLocation is needed, where the join keeps its state: "
                '.option("checkpointLocation", "some/folder")'
            )
        location = self.checkpoint
        if location is None:
            location, self._is_temporary = tempfile.mkdtemp(prefix="weir-"), True
        return qualify(self._join.sparkSession, location)


def _start_on_spark(
    lock: CheckpointLock, writer: DataStreamWriter, batches: SparkBatches, run: _Run
) -> StreamingQuery:
    """Start Spark's query, unless another driver has taken over: one without a batch to run would not say."""
    run.epoch.check()
    try:
        with name_full_disk(run.owner.checkpoint):
            return lock.start(writer)
    except JAVA_ERRORS as error:
        own = find_own_error(batches.explain(error))
        if own is None:
            raise
        raise own from (error if is_debugging() else None)


def _check_name(argument: str, given: Any, example: str) -> str:
    if not isinstance(given, str) or not given.strip():
        raise QueryError(f"{argument} is a name, like {example}; got {show_given(given)}")
    return given


def _check_columns(argument: str, given: tuple[Any, ...]) -> tuple[str, ...]:
    """The names of columns, given one by one or in a list."""
    columns = tuple(given[0]) if len(given) == 1 and isinstance(given[0], list | tuple) else given
    for column in columns:
        _check_name(argument, column, f"{argument}('country', 'day')")
    return columns


def _decide_start(start: StartPlan, checkpoint: Checkpoint) -> DecidedPlan:
    """Resume the last decision of a query that adapts or has migrated; else start as asked."""
    join, plan, options = start.join, start.plan, start.join.options
    last_batch = checkpoint.read_manifest().batch
    resumes = options.adaptation is not None or str(plan) != str(start.first_plan)
    # What an earlier query skipped says nothing of this one.
    is_changed = start.job.drops_joins and last_batch < start.job.since
    last = checkpoint.decision(last_batch) if resumes and not is_changed else None
    decision = None if last is None else last[0]
    interim = None if decision is None else decision.interim_allowance
    if decision is not None and str(decision.plan) == str(plan):
        return DecidedPlan(plan, decision.allowance, decision.reason, interim)
    if options.allowance is not None:
        options.allowance.check(plan)  # it was given for the plan asked for, which may be another one
        return DecidedPlan(plan, options.allowance, interim_allowance=interim)
    allowance, reason = join.planned.start(join.query, options.adaptation, plan)
    return DecidedPlan(plan, allowance, reason, interim)
