"""Sinks: results are written by the workers themselves (folded), or handed on as a DataFrame.

With a folded sink one Spark action stores, probes and writes. To add a sink, write a class, what opens it and
what checks it before, a line in the table `SINKS`, and enter its format into `EPHEMERAL_FORMATS` if it keeps
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, runtime_checkable

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from weir.errors import QueryError
from weir.spark.checkpoint import Checkpoint
from weir.spark.file_sinks import FileSink, ParquetSink, list_files
from weir.spark.filesystem import Folder, open_folder
from weir.spark.output_owner import Owner, check_folder, record_owner
from weir.spark.redaction import keep_secrets
from weir.spark.result_log import ResultLog, find_log
from weir.spark.sink_batch import SinkBatch
from weir.spark.sink_checks import (
    FILE_FORMATS,
    OWN_FORMATS,
    check_columns,
    check_jdbc,
    check_options,
    name_format,
)
from weir.spark.table_sink import TableSink, prepare_table
from weir.spark.target import Target
from weir.spark.task import ResultFiles

# Sinks that keep nothing across restarts may have a temporary checkpoint, as in Spark.
EPHEMERAL_FORMATS = OWN_FORMATS
_ARROW_CODECS = {"uncompressed": "none", "lz4_raw": "lz4"}


class FoldedSink(Protocol):
    """A sink whose results the workers write, in the tasks that find them."""

    @property
    def results(self) -> ResultFiles:
        """Where the workers write results."""

    def publish(self, batch: SinkBatch, files: Sequence[str]) -> None:
        """Make the files that the workers wrote the batch's results, in place of an earlier attempt's."""

    def has_published(self, batch: int, epoch: int) -> bool:
        """True if results of a batch can be seen, as far as that is known; older drivers add no more."""


@runtime_checkable
class FrameSink(Protocol):
    """A sink that takes each batch's results as a DataFrame."""

    def emit(self, results: DataFrame, batch: SinkBatch) -> None:
        """Take the batch's results."""

    def has_published(self, batch: int, epoch: int) -> bool:
        """True if results of a batch can be seen, as far as that is known; older drivers add no more."""


Sink = FoldedSink | FrameSink


@dataclass(frozen=True)
class CountSink:
    """Counts results and drops them."""

    results: ResultFiles = field(default_factory=ResultFiles)

    def publish(self, batch: SinkBatch, files: Sequence[str]) -> None:
        """Do nothing: no files were written."""

    def has_published(self, batch: int, epoch: int) -> bool:
        """Nothing can be seen."""
        return False


@dataclass(frozen=True)
class CallSink:
    """Calls a function with each batch's results and number: a user's `foreachBatch` or one of ours."""

    call: Callable[[DataFrame, int], None]

    def emit(self, results: DataFrame, batch: SinkBatch) -> None:
        """Call the function."""
        self.call(results, batch.number)

    def has_published(self, batch: int, epoch: int) -> bool:
        """Nothing is known of what the function did."""
        return False


def check_target(spark: SparkSession, target: Target) -> Target:
    """Refuse a target that cannot take the results, as far as that is known without writing or creating.

    Returns the target with its format as Spark names it.
    """
    target = replace(target, format=name_format(spark, target.format))
    check_columns(spark, target.format, target.schema, target.partition_by)
    check_options(spark, target.format, target.options)
    if target.table is None:
        _find_kind(target).check(spark, target)
    return target


def choose_sink(spark: SparkSession, target: Target, has_steps: bool) -> Sink:
    """Check a target and return its sink; workers write results themselves if no steps follow the join."""
    target = check_target(spark, target)
    if target.table is not None:
        return _open_table(spark, target, target.table)
    return _find_kind(target).open(spark, target, has_steps)


def _open_table(spark: SparkSession, target: Target, name: str) -> Sink:
    target = prepare_table(spark, target, name)
    if target.format in FILE_FORMATS:
        sink = TableSink(spark, target, name)
        sink.open()
        return sink

    def append(results: DataFrame, batch: int) -> None:
        writer = results.write.format(target.format).options(**target.options).mode("append")
        with keep_secrets(spark, target.options):
            writer.saveAsTable(name)

    return CallSink(append)


def _open_count(spark: SparkSession, target: Target, has_steps: bool) -> Sink:
    if not has_steps:
        return CountSink()
    return CallSink(lambda results, batch: results.write.format("noop").mode("overwrite").save())


def _check_nothing(spark: SparkSession, target: Target) -> None:
    pass


def _check_console(spark: SparkSession, target: Target) -> None:
    rows = target.options.get("numRows", "20")
    if not rows.isdecimal():
        raise QueryError(f"option numRows of the console is a whole number; got '{rows}'")


def _open_console(spark: SparkSession, target: Target, has_steps: bool) -> Sink:
    rows, truncate = target.options.get("numRows", "20"), target.options.get("truncate", "true")

    def show(results: DataFrame, batch: int) -> None:
        print(f"batch {batch}")
        results.show(int(rows), truncate.lower() == "true")

    return CallSink(show)


def _check_memory(spark: SparkSession, target: Target) -> None:
    if target.query_name is None:
        raise QueryError("the memory sink is a table named after the query: set queryName('some_name')")


def _open_memory(spark: SparkSession, target: Target, has_steps: bool) -> Sink:
    """A table in the driver's memory, for tests and demonstrations."""
    name, batches = target.query_name or "", dict[int, pa.Table]()

    def replace_table(results: DataFrame, batch: int) -> None:
        batches[batch] = results.toArrow()
        rows = pa.concat_tables(batches.values())
        spark.createDataFrame(rows, results.schema).createOrReplaceTempView(name)

    return CallSink(replace_table)


def _check_files(spark: SparkSession, target: Target) -> None:
    check_folder(spark, _find_output(spark, target), target.owner)


def _check_parquet(spark: SparkSession, target: Target) -> None:
    _name_codec(spark, target)
    _check_files(spark, target)


def _open_parquet(spark: SparkSession, target: Target, has_steps: bool) -> Sink:
    if has_steps or target.partition_by:
        return _open_files(spark, target, has_steps)
    folder, log = _open_output(spark, target)
    return ParquetSink(folder, target.owner.names, _name_codec(spark, target), log)


def _name_codec(spark: SparkSession, target: Target) -> str:
    """The compression of a parquet target, as Arrow names it."""
    default = spark.conf.get("spark.sql.parquet.compression.codec", "snappy")
    name = target.options.get("compression") or default or "snappy"
    codec = _ARROW_CODECS.get(name.lower(), name.lower())
    if codec not in ("none", "snappy", "gzip", "brotli", "zstd", "lz4"):
        raise QueryError(f"unknown parquet compression '{name}'; use snappy, zstd, gzip, lz4 or none")
    return codec


def _open_files(spark: SparkSession, target: Target, has_steps: bool) -> Sink:
    folder, log = _open_output(spark, target)
    return FileSink(folder, target.owner.names, target.format, target.options, target.partition_by, log)


def _check_batch_source(spark: SparkSession, target: Target) -> None:
    if target.format.lower() == "jdbc":
        check_jdbc(spark, target.options)


def _open_batch_source(spark: SparkSession, target: Target, has_steps: bool) -> Sink:
    """Write each batch with Spark's batch writer: at least once, as with foreachBatch."""

    def save(results: DataFrame, batch: int) -> None:
        writer = results.write.format(target.format).options(**target.options).mode("append")
        with keep_secrets(spark, target.options):
            writer.partitionBy(*target.partition_by).save(target.path)

    return CallSink(save)


class SinkKind(NamedTuple):
    """How a sink is opened, and what refuses a target before, without a trace."""

    open: Callable[[SparkSession, Target, bool], Sink]
    check: Callable[[SparkSession, Target], None] = _check_nothing


# The sink of each format; any other is a batch source of Spark's. A new sink is one more line.
SINKS: Mapping[str, SinkKind] = {
    "noop": SinkKind(_open_count),
    "count": SinkKind(_open_count),
    "console": SinkKind(_open_console, _check_console),
    "memory": SinkKind(_open_memory, _check_memory),
    **dict.fromkeys(FILE_FORMATS, SinkKind(_open_files, _check_files)),
    "parquet": SinkKind(_open_parquet, _check_parquet),
}
_BATCH_SOURCE = SinkKind(_open_batch_source, _check_batch_source)


def _find_kind(target: Target) -> SinkKind:
    return SINKS.get(target.format, _BATCH_SOURCE)


def _find_output(spark: SparkSession, target: Target) -> Folder:
    """Find the folder of a target."""
    if target.path is None:
        raise QueryError(
            f"the {target.format} sink needs a path: .option('path', 'some/folder'), start('some/folder'), "
            f"or in a script INTO {target.format} 'some/folder'"
        )
    folder = open_folder(spark, target.path)
    if folder.uri == target.owner.checkpoint:
        raise QueryError(
            f"path and checkpointLocation are one folder, {folder.uri}, where readers would take files of "
            "the checkpoint for results; use two"
        )
    return folder


def _open_output(spark: SparkSession, target: Target) -> tuple[Folder, ResultLog | None]:
    """Open the folder of a target and its log, and record there who writes into it."""
    folder = _find_output(spark, target)
    record_owner(folder, target.owner)
    return folder, _open_log(spark, folder, target.owner)


def _open_log(spark: SparkSession, folder: Folder, owner: Owner) -> ResultLog | None:
    """Open the log of a folder that has one, and log again what it has lost."""
    log = find_log(spark, folder, owner.names)
    if log is not None:
        manifests = Checkpoint(open_folder(spark, f"{owner.checkpoint}/weir")).batches("manifest")
        log.restore(max(manifests, default=-1), list_files(folder))
    return log
