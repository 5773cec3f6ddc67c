"""Sinks: results are written by the workers themselves (folded), or handed on as a DataFrame.

With a folded sink one Spark action stores, probes and writes. To add a sink, write a class and a line in the
table `SINKS`, and enter its format into `EPHEMERAL_FORMATS` if it keeps nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from weir.errors import QueryError
from weir.spark.filesystem import Folder, open_folder
from weir.spark.task import ResultFiles

FILE_FORMATS = ("parquet", "orc", "json", "csv", "text")
# Sinks that keep nothing across restarts may have a temporary checkpoint, as in Spark.
EPHEMERAL_FORMATS = ("memory", "console", "noop", "count")
_ARROW_CODECS = {"uncompressed": "none", "lz4_raw": "lz4"}


class FoldedSink(Protocol):
    """A sink whose results the workers write, in the tasks that find them."""

    @property
    def results(self) -> ResultFiles:
        """Where the workers write results."""

    def publish(self, batch: int, files: Sequence[str], cleans_up: bool) -> None:
        """Make the files that the workers wrote the batch's results, in place of an earlier attempt's."""


@runtime_checkable
class FrameSink(Protocol):
    """A sink that takes each batch's results as a DataFrame."""

    def emit(self, results: DataFrame, batch: int, cleans_up: bool) -> None:
        """Take the batch's results."""


Sink = FoldedSink | FrameSink


@dataclass(frozen=True)
class CountSink:
    """Counts results and drops them."""

    results: ResultFiles = field(default_factory=ResultFiles)

    def publish(self, batch: int, files: Sequence[str], cleans_up: bool) -> None:
        """Do nothing: no files were written."""


@dataclass(frozen=True)
class ParquetSink:
    """Parquet files in one folder, each complete when it appears; a repeated batch replaces its own."""

    folder: Folder
    compression: str

    @property
    def results(self) -> ResultFiles:
        """The same folder, where workers use hidden names."""
        return ResultFiles(self.folder.uri.rstrip("/"), self.compression)

    def publish(self, batch: int, files: Sequence[str], cleans_up: bool) -> None:
        """Rename the files from `_part-<batch>-<partition>-<attempt>` to `part-<batch>-<partition>-0`."""
        names = {hidden: re.sub(r"^_(part-\d+-\d+)-\w+\.", r"\1-0.", hidden) for hidden in files}
        _replace_batch(self.folder, batch, names, cleans_up)


@dataclass(frozen=True)
class FileSink:
    """Files of any format that Spark writes, renamed after the batch when they are complete."""

    folder: Folder
    format: str
    options: Mapping[str, str]
    partition_by: tuple[str, ...]

    def emit(self, results: DataFrame, batch: int, cleans_up: bool) -> None:
        """Write into a hidden folder, then move the files."""
        hidden = f"_batch-{batch:09d}"
        writer = results.write.format(self.format).options(**self.options).mode("overwrite")
        writer.partitionBy(*self.partition_by).save(f"{self.folder.uri}/{hidden}")
        names: dict[str, str] = {}
        for source in _list_files(self.folder, hidden):
            below, slash, file = source.removeprefix(f"{hidden}/").rpartition("/")
            # Spark's first task writes a file even without rows, and other readers refuse an empty one.
            if file.startswith("part-") and self.folder.size(source):
                ending = file.split(".", 1)[1]
                names[source] = f"{below}{slash}part-{batch:09d}-{len(names):04d}-0.{ending}"
        for below in {target.rpartition("/")[0] for target in names.values()} - {""}:
            self.folder.write(f"{below}/_folder", b"")
        _replace_batch(self.folder, batch, names, cleans_up)
        self.folder.delete(hidden)


@dataclass(frozen=True)
class CallSink:
    """Calls a function with each batch's results and number: a user's `foreachBatch` or one of ours."""

    call: Callable[[DataFrame, int], None]

    def emit(self, results: DataFrame, batch: int, cleans_up: bool) -> None:
        """Call the function."""
        self.call(results, batch)


def _replace_batch(folder: Folder, batch: int, names: Mapping[str, str], cleans_up: bool) -> None:
    """Rename files; with `cleans_up`, delete other files of this batch, and hidden ones of any batch."""
    for source, target in names.items():
        folder.move(source, target)
    if not cleans_up:
        return
    published = set(names.values())
    leftover = re.compile(rf"(.*/)?(_part-|part-{batch:09d}-).*")
    for name in _list_files(folder):
        if leftover.fullmatch(name) and name not in published:
            folder.delete(name)


def has_published(folder: Folder, batch: int) -> bool:
    """True if a folder of result files holds some of a batch, be it only in part."""
    return any(re.fullmatch(rf"(.*/)?part-{batch:09d}-.*", name) for name in _list_files(folder))


def _list_files(folder: Folder, below: str = "") -> list[str]:
    """The names in a folder, and in the folders of partition values below it."""
    files = []
    for name in folder.names(below):
        path = f"{below}/{name}" if below else name
        files += _list_files(folder, path) if "=" in name and not name.startswith("part-") else [path]
    return files


@dataclass(frozen=True, slots=True)
class Target:
    """Where results go: a format with a path, or a table; `options` are those of Spark's batch writer."""

    format: str
    path: str | None
    table: str | None
    options: Mapping[str, str]
    partition_by: tuple[str, ...]
    query_name: str | None


def choose_sink(spark: SparkSession, target: Target, has_steps: bool) -> Sink:
    """Return the sink of a target; workers write results themselves if no steps follow the join."""
    if target.table is not None:
        return CallSink(_save_to_table(spark, target, target.table))
    return SINKS.get(target.format, _open_batch_source)(spark, target, has_steps)


def _open_count(spark: SparkSession, target: Target, has_steps: bool) -> Sink:
    if not has_steps:
        return CountSink()
    return CallSink(lambda results, batch: results.write.format("noop").mode("overwrite").save())


def _open_console(spark: SparkSession, target: Target, has_steps: bool) -> Sink:
    rows, truncate = int(target.options.get("numRows", 20)), target.options.get("truncate", "true") == "true"

    def show(results: DataFrame, batch: int) -> None:
        print(f"batch {batch}")
        results.show(rows, truncate)

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
    return ParquetSink(open_folder(spark, _require_path(target)), codec)


def _open_files(spark: SparkSession, target: Target, has_steps: bool) -> Sink:
    folder = open_folder(spark, _require_path(target))
    return FileSink(folder, target.format, target.options, target.partition_by)


def _open_batch_source(spark: SparkSession, target: Target, has_steps: bool) -> Sink:
    """Write each batch with Spark's batch writer: at least once, as with foreachBatch."""
    path = _require_path(target)

    def save(results: DataFrame, batch: int) -> None:
        writer = results.write.format(target.format).options(**target.options).mode("append")
        writer.partitionBy(*target.partition_by).save(path)

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


def _require_path(target: Target) -> str:
    if target.path is None:
        raise QueryError(
            f"the {target.format} sink needs a path: .option('path', 'some/folder') or start('some/folder')"
        )
    return target.path


def _save_to_table(spark: SparkSession, target: Target, name: str) -> Callable[[DataFrame, int], None]:
    """Write files into the table's folder, so that a repeated batch replaces its own; else append."""

    def describe(property: str) -> str:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
        return str(next(row.data_type for row in rows if row.col_name == property))

    if spark.catalog.tableExists(name) and (provider := describe("Provider").lower()) != target.format:
        raise QueryError(f"table '{name}' is in {provider}, not {target.format}: say .format('{provider}')")

    def append(results: DataFrame, batch: int) -> None:
        results.write.format(target.format).options(**target.options).mode("append").saveAsTable(name)

    def save(results: DataFrame, batch: int) -> None:
        if not spark.catalog.tableExists(name):
            location = {} if target.path is None else {"path": target.path}
            empty = spark.createDataFrame([], results.schema)
            writer = empty.write.format(target.format).options(**target.options, **location)
            writer.partitionBy(*target.partition_by).saveAsTable(name)
        folder = open_folder(spark, describe("Location"))
        sink = FileSink(folder, target.format, target.options, target.partition_by)
        sink.emit(results, batch, cleans_up=True)
        if target.partition_by:
            spark.sql(f"MSCK REPAIR TABLE {name}")
        spark.catalog.refreshTable(name)

    return save if target.format in FILE_FORMATS else append
