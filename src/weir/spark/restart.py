"""Start where a checkpoint ended: compare the join with the job there, and finish what that job had begun.

commits (Spark's)   0 1 2 3        the last batch that Spark committed is 3
decisions           0 1 2 3 4      so batch 4 had begun: it is repeated with the query that began it,
                                   and a changed query starts with batch 5
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from weir.errors import QueryError
from weir.expr.nodes import is_internal
from weir.kernel.state_adaptation import StateAdapter
from weir.options import JoinOptions
from weir.plan.tree import Join
from weir.query.options import Span
from weir.query.windows import Window
from weir.runtime.manifest import Manifest
from weir.spark.checkpoint import Checkpoint
from weir.spark.checkpoint_check import check_logs
from weir.spark.epoch import read_id
from weir.spark.errors import ChangedQueryError, DamagedStateError
from weir.spark.file_sinks import withdraw_hidden
from weir.spark.filesystem import open_folder, qualify
from weir.spark.frames import quote
from weir.spark.job_changes import check_changes, find_changes
from weir.spark.job_description import FileTarget, JobDescription, describe_job, leaf_schemas
from weir.spark.result_names import ResultNames, make_id
from weir.spark.routing import Routing
from weir.spark.spark_logs import SparkLogs

if TYPE_CHECKING:
    from weir.spark.join import SparkJoin

_LOG = logging.getLogger("weir")


@dataclass(frozen=True)
class Restart:
    """What a start finds in a checkpoint: the job, the last manifest, and which batches Spark has done.

    `id` is the query's, a new one if the checkpoint has no job. `begun` is the batch that had begun and is
    not committed; None if there is none.
    """

    uri: str
    id: str
    stored: JobDescription | None
    manifest: Manifest
    committed: int
    begun: int | None

    @property
    def next_batch(self) -> int:
        """The first batch that has not begun."""
        return 1 + (self.committed if self.begun is None else self.begun)

    @property
    def has_state(self) -> bool:
        """True if some batch has begun."""
        return self.next_batch > 0


@dataclass(frozen=True)
class StartPlan:
    """How a join starts: in the stored order of its streams, with a plan, a routing and a job to record."""

    join: SparkJoin
    plan: Join
    first_plan: Join
    routing: Routing
    job: JobDescription

    def check(self, restart: Restart) -> StartPlan:
        """Refuse a join that cannot go on; return how it goes on."""
        if restart.stored is None:
            return self
        if not restart.has_state and set(restart.stored.streams) == set(self.job.streams):
            return self
        check_changes(restart.stored, self.job, self.join.query, restart.uri)
        return replace(self, job=self.job.follow(restart.stored, restart.next_batch))


def read_restart(spark: SparkSession, location: str) -> Restart:
    """Read what a checkpoint says of the job there, and refuse one that is damaged."""
    try:
        for _ in range(2):
            with suppress(DamagedStateError):  # another driver may be at work while several files are read
                return _read_restart(spark, location)
        return _read_restart(spark, location)
    except OSError as error:
        raise QueryError(f"the checkpoint {location}/weir cannot be read: {error}") from None


def _read_restart(spark: SparkSession, location: str) -> Restart:
    checkpoint = Checkpoint(open_folder(spark, f"{location}/weir"))
    logs = SparkLogs(open_folder(spark, location))
    check_logs(checkpoint, logs)
    committed = logs.committed
    begun = max((batch for batch in checkpoint.batches("decision") if batch > committed), default=None)
    stored, manifest = checkpoint.read_job(), checkpoint.read_manifest()
    id = checkpoint.id or read_id(checkpoint.folder) or make_id()
    return Restart(checkpoint.folder.uri, id, stored, manifest, committed, begun)


def plan_start(join: SparkJoin, restart: Restart, target: FileTarget | None) -> StartPlan:
    """Plan how a join starts; a restart keeps the order of streams, the plan and the key of the checkpoint.

    Spark knows its sources by their position in the union, so their order is kept.
    """
    stored = restart.stored
    if stored is not None and set(stored.streams) != set(join.query.names):
        stored = None
    if stored is not None and stored.streams != join.query.names:
        join = join.reorder(stored.streams)
    if stored is not None and restart.has_state:
        join = _compute_for_stored(join, stored)
    plan, first_plan = _choose_plans(join, stored, restart.manifest.plan if stored is not None else None)
    routing = _route(join, first_plan, stored, restart.manifest)
    inputs = join.inputs
    job = describe_job(
        restart.id,
        join.query,
        inputs.asked,
        {
            name: {field.name: field.dataType.simpleString() for field in frame.schema}
            for name, frame in inputs.sources.items()
        },
        first_plan,
        routing,
        inputs.projection,
        inputs.deferred,
        target,
        bool(join.user_steps),
    )
    return StartPlan(join, plan, first_plan, routing, job)


def _compute_for_stored(join: SparkJoin, stored: JobDescription) -> SparkJoin:
    """Let the kernel compute what Spark did not compute for the stored rows, from columns that they have."""
    expressions: set[tuple[str, str]] = set()
    while True:
        lacking = expressions | set(_find_not_computed(join, stored))
        if lacking == expressions:
            return join
        expressions = lacking
        try:
            join = join.compute_in_kernel(expressions)
        except QueryError:
            return join  # the kernel does not know it; the refusal names it


def _find_not_computed(join: SparkJoin, stored: JobDescription) -> Iterator[tuple[str, str]]:
    times = {stream.name: stream.time for stream in join.query.streams}
    for name, schema in leaf_schemas(join.query, join.planned.plan).items():
        adapter = StateAdapter(stored.states[name], schema, times)
        for column in adapter.find_lacking():
            if is_internal(column.name):
                yield name, column.text


def _choose_plans(join: SparkJoin, stored: JobDescription | None, current: Join | None) -> tuple[Join, Join]:
    """Return the plan to run, and the one with which the query was first started.

    A restart keeps an automatic plan, and a plan to which the query has migrated.
    """
    planned, first = join.planned, None if stored is None else stored.plan
    if planned.automatic:
        plan = current or first or planned.plan
        return plan, first or plan
    if first is None or current is None or str(planned.plan) not in (str(first), str(current)):
        return planned.plan, planned.plan
    return planned.plan if str(planned.plan) == str(current) else current, first


def _route(join: SparkJoin, first_plan: Join, stored: JobDescription | None, last: Manifest) -> Routing:
    """Route rows; without `partitions=`, a restart keeps the number of the checkpoint."""
    if stored is None:
        return join.route(first_plan, was_shared=False)
    routing = join.route(first_plan, stored.is_shared, known=stored.key)
    kept, default = stored.partitions, routing.partitions
    if stored.is_shared and last.placement is not None:
        kept = last.placement.partitions
    if kept in (None, default) or join.options.partitions is not None:
        return routing
    _LOG.info("the join keeps the %d partitions of its checkpoint; here the default is %d", kept, default)
    return join.route(first_plan, stored.is_shared, kept, stored.key)


def plan_repeat(start: StartPlan, restart: Restart, epoch: int) -> tuple[SparkJoin, FileTarget | None] | None:
    """Return the join that repeats a batch that had begun, and its sink; None if the start may repeat it."""
    stored, job = restart.stored, start.job
    if stored is None or restart.begun is None:
        return None
    if stored.asks_same_as != job.asks_same_as:
        earlier = _rebuild(stored, start.join, restart)
        if stored.target is None:
            _refuse_other_columns(earlier, start.join, restart)
        return earlier, stored.target
    if stored.target in (None, job.target):
        return None
    if not _has_published(start.join, stored, restart.begun, epoch):
        return None
    return start.join, stored.target


def _has_published(join: SparkJoin, stored: JobDescription, batch: int, epoch: int) -> bool:
    """True if a sink of files holds some of a batch, or nothing tells where its files are."""
    if stored.target is None or stored.target.path is None:
        return True
    folder = open_folder(join.sparkSession, stored.target.path)
    return withdraw_hidden(folder, ResultNames(stored.id), batch, epoch)


def _rebuild(stored: JobDescription, join: SparkJoin, restart: Restart) -> SparkJoin:
    """Build the earlier query again, over those columns of the streams that it knew."""
    definition, given = stored.definition, join.inputs.asked.functions or {}
    try:
        if stored.has_steps:
            raise QueryError("its steps after the join are functions of the earlier program")
        for name in definition.functions:
            if name not in given:
                raise QueryError(f"its function '{name}' is not given any more")
        frames = {
            name: _restore(name, join.inputs.sources[name], stored.columns[name]) for name in stored.streams
        }
        options = JoinOptions(
            statement=definition.statement,
            on=definition.on,
            select=definition.select,
            within=_spans(definition.windows) if definition.statement is None else None,
            fresh=_spans(definition.fresh) if definition.statement is None else None,
            clock=definition.clock,
            time=definition.time,
            late={name: timedelta(microseconds=late) for name, late in definition.late.items()},
            cross=definition.cross,
            basic=None if definition.basic is None else timedelta(microseconds=definition.basic),
            functions={name: given[name] for name in definition.functions} or None,
            on_null_time=join.options.on_null_time,
            on_error=join.options.on_error,
            durability=join.options.durability,
            partitions=stored.partitions,
            spread="auto" if stored.spread == "hash" else stored.spread,  # type: ignore[arg-type] # its name
        )
        return join.redefine(frames, options, {**definition.time, **definition.time_expressions})
    except QueryError as error:
        raise _need_earlier_program(restart, f"which cannot be built again: {error}") from error


def _refuse_other_columns(earlier: SparkJoin, join: SparkJoin, restart: Restart) -> None:
    """Refuse to give results of the earlier query to a sink that was written for others."""
    if earlier.dtypes != join.dtypes:
        before, now = (", ".join(f"{name} {kind}" for name, kind in each.dtypes) for each in (earlier, join))
        why = f"whose results ({before}) the sink of this query ({now}) does not expect"
        raise _need_earlier_program(restart, why)


def _need_earlier_program(restart: Restart, why: str) -> ChangedQueryError:
    begun = restart.begun
    return ChangedQueryError(
        f"batch {begun} of the checkpoint {restart.uri} was begun by the earlier query, {why}; "
        f"run the earlier program once to finish batch {begun}, then change it"
    )


def _spans(lengths: Mapping[str, Window | None]) -> dict[str, Span] | None:
    """Return the lengths that streams have, as arguments."""
    return {name: length for name, length in lengths.items() if length is not None} or None


def _restore(name: str, frame: DataFrame, columns: Any) -> DataFrame:
    """Select the columns that a stream had, in the types that they had."""

    def select(column: str, kind: str) -> Column:
        if column not in frame.columns:
            raise QueryError(f"stream '{name}' has no column '{column}' any more")
        found = F.col(quote(column))
        return found if frame.schema[column].dataType.simpleString() == kind else found.cast(kind)

    return frame.select(*(select(column, kind).alias(column) for column, kind in columns.items()))


def explain_restart(join: SparkJoin, location: str) -> str:
    """Say what a start from a checkpoint would change, whether it may, and from which batch on."""
    restart = read_restart(join.sparkSession, qualify(join.sparkSession, location))
    stored, uri = restart.stored, restart.uri
    if stored is None or not restart.has_state:
        return f"the checkpoint {uri} holds no state: the query starts with it"
    start = plan_start(join, restart, stored.target)
    changes = list(find_changes(stored, start.job, start.join.query))
    if not changes:
        return f"the checkpoint {uri} was written by this query: it goes on"
    is_refused = any(change.refusal for change in changes)
    lines = [f"the checkpoint {uri} {'refuses' if is_refused else 'takes'} these changes:"]
    lines += [f"  {change}" for change in changes]
    if set(stored.streams) == set(start.job.streams):
        lines += _explain_repeat(start, restart)
    if not is_refused:
        lines.append(f"they hold from batch {restart.next_batch} on")
    return "\n".join(lines)


def _explain_repeat(start: StartPlan, restart: Restart) -> Iterator[str]:
    try:
        repeat = plan_repeat(start, restart, epoch=0)  # of which no driver is: nothing is withdrawn
    except ChangedQueryError as error:
        yield str(error)
        return
    if repeat is not None:
        yield f"batch {restart.begun} had begun, and is repeated with the earlier query first"
