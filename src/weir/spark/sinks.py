"""Sinks: results are written by the workers themselves (folded), or handed on as a DataFrame.

With a folded sink one Spark action stores, probes and writes. To add a sink, write a class and a line in the
table `SINKS`, and enter its format into `EPHEMERAL_FORMATS` if it keeps nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from weir.errors import QueryError
from weir.spark.checkpoint import Checkpoint
from weir.spark.file_sinks import FileSink, ParquetSink, list_files
from weir.spark.filesystem import Folder, open_folder
from weir.spark.output_owner import Owner, claim_folder
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


def choose_sink(spark: SparkSession, target: Target, has_steps: bool) -> Sink:
    """Check a target and return its sink; workers write results themselves if no steps follow the join."""
    target = replace(target, format=name_format(spark, target.format))
    check_columns(spark, target.format, target.schema, target.partition_by)
    check_options(spark, target.format, target.options)
    if target.table is not None:
        return _open_table(spark, target, target.table)
    return SINKS.get(target.format, _open_batch_source)(spark, target, has_steps)


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


def _open_console(spark: SparkSession, target: Target, has_steps: bool) -> Sink:
    rows, truncate = target.options.get("numRows", "20"), target.options.get("truncate", "true")
    if not rows.isdecimal():
        raise QueryError(f"option numRows of the console is a whole number; got '{rows}'")

    def show(results: DataFrame, batch: int) -> None:
        print(f"batch {batch}")
        results.show(int(rows), truncate.lower() == "true")

    return CallSink(show)


def _open_memory(spark: SparkSession, target: Target, has_steps: bool) -> Sink:
    """A table in the driver's memory, for tests and demonstrations."""
    name, batches = target.query_name, dict[int, pa.Table]()
    if name is None:
        raise QueryError("the memory sink is a table named after the query: set queryName('some_name')")

    def replace_table(results: DataFrame, batch: int) -> None:
        batches[batch] = results.toArrow()
        rows = pa.concat_tables(batches.values())
        spark.createDataFrame(rows, results.schema).createOrReplaceTempView(name)

    return CallSink(replace_table)


def _open_parquet(spark: SparkSession, target: Target, has_steps: bool) -> Sink:
    if has_steps or target.partition_by:
        return _open_files(spark, target, has_steps)
    default = spark.conf.get("spark.sql.parquet.compression.codec", "snappy")
    name = target.options.get("compression") or default or "snappy"
    codec = _ARROW_CODECS.get(name.lower(), name.lower())
    if codec not in ("none", "snappy", "gzip", "brotli", "zstd", "lz4"):
        raise QueryError(f"unknown parquet compression '{name}'; use snappy, zstd, gzip, lz4 or none")
    folder = _open_output(spark, target)
    return ParquetSink(folder, target.owner.names, codec, _open_log(spark, folder, target.owner))


def _open_files(spark: SparkSession, target: Target, has_steps: bool) -> Sink:
    folder = _open_output(spark, target)
    names, log = target.owner.names, _open_log(spark, folder, target.owner)
    return FileSink(folder, names, target.format, target.options, target.partition_by, log)


def _open_batch_source(spark: SparkSession, target: Target, has_steps: bool) -> Sink:
    """Write each batch with Spark's batch writer: at least once, as with foreachBatch."""
    if target.format.lower() == "jdbc":
        check_jdbc(spark, target.options)

    def save(results: DataFrame, batch: int) -> None:
        writer = results.write.format(target.format).options(**target.options).mode("append")
        with keep_secrets(spark, target.options):
            writer.partitionBy(*target.partition_by).save(target.path)

    return CallSink(save)


# The sink of each format; any other is a batch source of Spark's. A new sink is one more line.
SINKS: Mapping[str, Callable[[SparkSession, Target, bool], Sink]] = {
    "noop": _open_count,
    "count": _open_count,
    "console": _open_console,
    "memory": _open_memory,
    **dict.fromkeys(FILE_FORMATS, _open_files),
    "parquet": _open_parquet,
}


def _open_output(spark: SparkSession, target: Target) -> Folder:
    """Open the folder of a target, and record there who writes into it."""
    if target.path is None:
        raise QueryError(
            f"the {target.format} sink needs a path: .option('path', 'some/folder') or start('some/folder')"
        )
    folder = open_folder(spark, target.path)
    if folder.uri == target.owner.checkpoint:
        raise QueryError(
            f"path and checkpointLocation are one folder, {folder.uri}, where readers would take files of "
            "the checkpoint for results; use two"
        )
    claim_folder(spark, folder, target.owner)
    return folder


def _open_log(spark: SparkSession, folder: Folder, owner: Owner) -> ResultLog | None:
    """Open the log of a folder that has one, and log again what it has lost."""
    log = find_log(spark, folder, owner.names)
    if log is not None:
        manifests = Checkpoint(open_folder(spark, f"{owner.checkpoint}/weir")).batches("manifest")
        log.restore(max(manifests, default=-1), list_files(folder))
    return log
