"""From a script to a join over its streams, and to a running query."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import weir.api
from weir.adapt.planner import chart_plan
from weir.errors import QueryError
from weir.script.model import Into, Script, StreamSource
from weir.script.parse import in_select
from weir.units import show_interval

if TYPE_CHECKING:
    from weir.spark.join import SparkJoin
    from weir.spark.query import SparkQuery
    from weir.spark.script import Session


def open_join(script: Script, spark: Session, partitions: int | None = None) -> SparkJoin:
    """The join of a script over its sources."""
    return _join(script, {source.name: _open(source, spark) for source in _read(script)}, partitions)


def start(script: Script, join: SparkJoin, name: str, once: bool, checkpoint: str | None) -> SparkQuery:
    """Start the join; `once` for all that is available now, else until it is stopped."""
    from weir.spark.targets import EPHEMERAL_FORMATS  # only who has Spark needs it

    options = dict(script.into.options)
    if checkpoint is not None:
        options["checkpointLocation"] = checkpoint
    if "checkpointLocation" not in options and script.into.format.lower() not in EPHEMERAL_FORMATS:
        raise QueryError(
            "the join keeps its state in a checkpoint: add OPTIONS (checkpointLocation 'some/folder') after "
            "INTO, or --checkpoint some/folder"
        )
    writer = join.writeStream.format(script.into.format).queryName(name).options(**options)
    return writer.trigger(**_trigger(script.into, once)).start()


def explanation(script: Script, spark: Session, partitions: int | None = None, mermaid: bool = False) -> str:
    """What a script asks, from where to where; sources whose columns are declared are not touched."""
    from weir.spark.script import empty_frame  # only who has Spark needs it

    frames = {}
    for source in _read(script):
        if source.columns is None:
            frames[source.name] = _open(source, spark)
            continue
        try:
            frames[source.name] = empty_frame(spark, source.columns)
        except QueryError as error:
            raise _in_stream(source, error) from None
    join = _join(script, frames, partitions)
    if mermaid:
        return chart_plan(join.planned)
    asked = join.explanation()
    sources = [f"  {source.name}: {_shown(source.format, source.options)}" for source in _read(script)]
    into = script.into
    pace = f", every {show_interval(into.trigger)}" if into.trigger else ""
    return "\n".join(["sources", *sources, "sink", f"  {_shown(into.format, into.options)}{pace}", asked])


def _read(script: Script) -> list[StreamSource]:
    """The sources that the SELECT reads, each once."""
    return list({source.name: source for source, _ in script.tables}.values())


def _open(source: StreamSource, spark: Session) -> Any:
    from weir.spark.script import open_stream  # only who has Spark needs it

    try:
        return open_stream(spark, source.format, source.columns, source.options)
    except QueryError as error:
        raise _in_stream(source, error) from None


def _in_stream(source: StreamSource, error: QueryError) -> QueryError:
    return QueryError(f"line {source.line}, in stream '{source.name}': {error}")


def _join(script: Script, frames: dict[str, Any], partitions: int | None) -> SparkJoin:
    try:
        found: Any = weir.api.sql(
            script.select,
            time={alias: source.time for source, alias in script.tables},
            late={alias: timedelta(microseconds=source.late) for source, alias in script.tables},
            budget=script.into.budget,
            adapt=script.into.adapt,
            rates=_rates(script),
            partitions=partitions,
            streams=frames,
        )
    except QueryError as error:
        raise in_select(script.line, error) from None
    return found  # type: ignore[no-any-return]


def _rates(script: Script) -> dict[str, float] | None:
    """What the CREATE statements say: a plan is weighed by all rates or by none."""
    rates = {alias: source.rate for source, alias in script.tables if source.rate is not None}
    for source, _ in script.tables:
        if rates and source.rate is None:
            raise QueryError(f"stream '{source.name}' has no RATE, but another one has; give all or none")
    return rates or None


def _trigger(into: Into, once: bool) -> dict[str, Any]:
    if once:
        return {"availableNow": True}
    return {"processingTime": f"{(into.trigger or 0) // 1000} milliseconds"}


def _shown(name: str, options: Any) -> str:
    return " ".join([name, *(f"{key}='{value}'" for key, value in options.items())])
