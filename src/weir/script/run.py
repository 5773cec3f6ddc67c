"""Run and explain a job script: open its sources, build the join and start the query."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import weir.api
from weir.errors import QueryError, locate_errors
from weir.plan.explain import render_mermaid
from weir.script.parse import IntoClause, Script, StreamSource
from weir.units import format_interval

if TYPE_CHECKING:
    from weir.spark.join import SparkJoin
    from weir.spark.query import SparkQuery
    from weir.spark.script import Session
    from weir.spark.writer import JoinWriter

_ADD_CHECKPOINT = (
    "add OPTIONS (checkpointLocation 'some/folder') after INTO, or run with --checkpoint some/folder"
)


def open_join(script: Script, spark: Session, partitions: int | None, schema_only: bool = False) -> SparkJoin:
    """Build the join of a script over its sources; with `schema_only`, over their declared columns."""
    frames = {source.name: _open_source(source, spark, schema_only) for source in _list_sources(script)}
    with locate_errors(f"line {script.line}, in the SELECT: "):
        join: Any = weir.api.sql(
            script.select,
            time={alias: source.time for source, alias in script.tables},
            late={alias: timedelta(microseconds=source.late) for source, alias in script.tables},
            budget=script.sink.budget,
            adapt=script.sink.adapt,
            rates=_collect_rates(script),
            partitions=partitions,
            streams=frames,
            **script.sink.arguments,
        )
    return join  # type: ignore[no-any-return]


def start_query(script: Script, join: SparkJoin, name: str, once: bool, checkpoint: str | None) -> SparkQuery:
    """Start the join; with `once` it ends when it has read all available rows, else it runs until stopped."""
    with _locate_into(script.sink):
        writer = _make_writer(script.sink, join, name)
        if checkpoint is not None:
            writer.option("checkpointLocation", checkpoint)
        writer.check()
        if writer.needs_checkpoint:
            raise QueryError(f"the join stores its state in a checkpoint: {_ADD_CHECKPOINT}")
        if once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{(script.sink.trigger or 0) // 1000} milliseconds").start()


def explain_script(script: Script, spark: Session, name: str, partitions: int | None, mermaid: bool) -> str:
    """Explain a script: its sources, sink, query and plan.

    Sources with declared columns are not opened; the sink is checked as far as that writes nothing.
    """
    join = open_join(script, spark, partitions, schema_only=True)
    with _locate_into(script.sink):
        writer = _make_writer(script.sink, join, name)
        writer.check()
    if mermaid:
        return render_mermaid(join.planned.plan, join.planned.cost)
    sources = [f"  {source.name}: {_format_target(source, spark)}" for source in _list_sources(script)]
    interval = f", every {format_interval(script.sink.trigger)}" if script.sink.trigger else ""
    sink = f"  {_format_target(script.sink, spark)}{interval}"
    hint = [f"  no checkpoint yet: {_ADD_CHECKPOINT}"] if writer.needs_checkpoint else []
    return "\n".join(["sources", *sources, "sink", sink, *hint, join.explanation()])


def _make_writer(sink: IntoClause, join: SparkJoin, name: str) -> JoinWriter:
    from weir.spark.writer import JoinWriter  # needs pyspark

    return JoinWriter(join).format(sink.format).queryName(name).options(**sink.options)


def _locate_into(sink: IntoClause) -> AbstractContextManager[None]:
    return locate_errors(f"line {sink.line}, in INTO: ")


def _list_sources(script: Script) -> list[StreamSource]:
    """List the sources that the SELECT reads, each once."""
    return list({source.name: source for source, _ in script.tables}.values())


def _open_source(source: StreamSource, spark: Session, schema_only: bool) -> Any:
    from weir.spark.script import open_stream  # needs pyspark

    with locate_errors(f"line {source.line}, in stream '{source.name}': "):
        return open_stream(spark, source.format, source.columns, source.options, schema_only)


def _collect_rates(script: Script) -> dict[str, float] | None:
    """Collect the rates of the CREATE statements; the planner needs all or none."""
    rates = {alias: source.rate for source, alias in script.tables if source.rate is not None}
    for source, _ in script.tables:
        if rates and source.rate is None:
            raise QueryError(f"stream '{source.name}' has no RATE, but another one has; give all or none")
    return rates or None


def _format_target(target: StreamSource | IntoClause, spark: Session) -> str:
    from weir.spark.redaction import redact_options  # needs pyspark

    options = redact_options(spark, target.options)
    return " ".join([target.format, *(f"{key}='{value}'" for key, value in options.items())])
