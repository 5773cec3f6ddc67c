"""Read a join's results back as a stream, for whatever keeps state: aggregates, `dropDuplicates`, joins.

The join writes files and logs each batch when it is complete; Spark's file source reads the log. Each query
has a checkpoint of its own, so every result goes on exactly once, however either of them stops.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType, TimestampNTZType, TimestampType

from weir.errors import QueryError, locate_errors, match_name
from weir.expr.nodes import Column, Expr
from weir.query.model import Query
from weir.query.result_lateness import result_lateness
from weir.query.windows import check_length
from weir.spark.checkpoint import Checkpoint
from weir.spark.filesystem import Folder, open_folder
from weir.spark.frames import quote
from weir.spark.query import SparkQuery
from weir.spark.result_log import LOG_FOLDER, ResultLog
from weir.spark.result_names import ResultNames
from weir.spark.steps import apply_steps
from weir.units import format_interval, parse_interval

if TYPE_CHECKING:
    from weir.spark.join import SparkJoin
    from weir.spark.writer import JoinWriter

_STREAM = "weir.stream"  # in the metadata of a column that is a stream's event time


class ReadBack(NamedTuple):
    """The results as a streaming DataFrame with a watermark, and the running join that brings them."""

    frame: DataFrame
    query: SparkQuery


@dataclass(frozen=True, slots=True)
class ResultWatermark:
    """The column of the results that has the watermark, and how far the watermark stays behind it."""

    column: str
    milliseconds: int

    def add(self, rows: DataFrame) -> DataFrame:
        """Return the rows with this watermark."""
        return rows.withWatermark(quote(self.column), f"{self.milliseconds} milliseconds")


def read_back(
    join: SparkJoin, writer: JoinWriter, path: str, checkpoint: str, watermark: ResultWatermark
) -> ReadBack:
    """Start the join into parquet files, and read these as a stream."""
    spark = join.sparkSession
    folder = open_folder(spark, path)
    _prepare_folder(spark, folder, checkpoint)
    query = writer.format("parquet").start(folder.uri)
    rows = spark.readStream.schema(join.schema).parquet(folder.uri)
    return ReadBack(watermark.add(rows), query)


def choose_watermark(
    join: SparkJoin, results: StructType, time: str | None, late: str | timedelta | None
) -> ResultWatermark:
    """Choose the time of the results and how late it may be; `results` are the columns before any step."""
    times = _find_times(join, results)
    if time is None and not times:
        names = ", ".join(f"{stream.name}.{stream.time}" for stream in join.query.streams)
        raise QueryError(
            "no column of the results is the event time of a stream, and a watermark needs one: "
            f"select one of {names}, or give time= and late= of another timestamp"
        )
    column = next(iter(times)) if time is None else _check_time(join.schema, time)
    if late is not None:
        return ResultWatermark(column, _parse_lateness(late))
    if column not in times:
        raise QueryError(
            f"'{column}' is not the event time of a stream but computed, so weir cannot tell how late it may "
            "be: say late='10 minutes', or choose another time="
        )
    return ResultWatermark(column, _derive_lateness(join.query, times[column]))


def _find_times(join: SparkJoin, results: StructType) -> dict[str, str]:
    """The columns that are the event time of a stream, after all steps, and that stream.

    Spark's analyser passes metadata on with a column, also under another name, but not to what is computed.
    """
    fields = [
        StructField(field.name, field.dataType, field.nullable, _mark_time(join.query, output.expr))
        for field, output in zip(results, join.query.select, strict=True)
    ]
    empty = join.sparkSession.createDataFrame([], StructType(fields))
    after = apply_steps(join.steps, empty).schema
    return {field.name: field.metadata[_STREAM] for field in after if _STREAM in field.metadata}


def _mark_time(query: Query, expr: Expr) -> dict[str, str]:
    if not isinstance(expr, Column):
        return {}
    stream = query.stream(expr.stream)
    return {_STREAM: stream.name} if expr.name == stream.time else {}


def _check_time(results: StructType, time: str) -> str:
    column = match_name("column", time, results.names, " as the time of the results")
    kind = results[column].dataType
    if not isinstance(kind, TimestampType | TimestampNTZType):
        raise QueryError(f"the time of the results must be a timestamp; '{column}' is {kind.simpleString()}")
    return column


def _parse_lateness(late: str | timedelta) -> int:
    with locate_errors("late= of readBack: "):
        micros = parse_interval(late)
    if micros < 0:
        raise QueryError(f"late= of readBack cannot be negative; got {late!r}")
    return -(-micros // 1000)


def _derive_lateness(query: Query, stream: str) -> int:
    """How late results may be, in Spark's milliseconds."""
    lateness = result_lateness(query, stream)
    if lateness is None:
        raise QueryError(
            "windows that count rows do not bound how late results are: say late='10 minutes', behind which "
            "Spark drops results"
        )
    check_length(lateness, f"the lateness of results, {format_interval(lateness)},")
    # Spark drops what is at the watermark, too.
    return lateness // 1000 + 1


def _prepare_folder(spark: SparkSession, folder: Folder, checkpoint: str) -> None:
    """Open the log, or refuse a folder with files that are not in one, or not of this checkpoint."""
    names = folder.names()
    if LOG_FOLDER not in names and any(not name.startswith(("_", ".")) for name in names):
        raise QueryError(
            f"the folder {folder.uri} has files that readBack did not write, so nothing tells which belong "
            "to complete batches; give readBack another path"
        )
    job = Checkpoint(open_folder(spark, f"{checkpoint}/weir")).read_job()
    # From now on the sink and the reader go by the log.
    log = ResultLog(spark, folder, ResultNames("" if job is None else job.id))
    if log.is_foreign:
        raise QueryError(
            f"the folder {folder.uri} has results of another checkpoint than {checkpoint}; "
            "give readBack another path"
        )
