"""Choose the sink for a format or a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from weir.errors import QueryError
from weir.spark.filesystem import open_folder
from weir.spark.sinks import CallSink, CountSink, FileSink, ParquetSink, Sink

_FILE_FORMATS = ("parquet", "orc", "json", "csv", "text")
# Sinks that keep nothing across restarts may have a temporary checkpoint, as in Spark.
EPHEMERAL_FORMATS = ("memory", "console", "noop", "count")
_ARROW_CODECS = {"uncompressed": "none", "lz4_raw": "lz4"}


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
    return CallSink(_discard) if has_steps else CountSink()


def _open_console(spark: SparkSession, target: Target, has_steps: bool) -> Sink:
    options = target.options
    return CallSink(_show(int(options.get("numRows", 20)), options.get("truncate", "true") == "true"))


def _open_memory(spark: SparkSession, target: Target, has_steps: bool) -> Sink:
    if target.query_name is None:
        raise QueryError("the memory sink is a table named after the query: set queryName('some_name')")
    return CallSink(_MemoryTable(spark, target.query_name))


def _open_parquet(spark: SparkSession, target: Target, has_steps: bool) -> Sink:
    if has_steps or target.partition_by:
        return _open_files(spark, target, has_steps)
    default = spark.conf.get("spark.sql.parquet.compression.codec", "snappy")
    codec = _arrow_codec(target.options.get("compression") or default or "snappy")
    return ParquetSink(open_folder(spark, _require_path(target)), codec)


def _open_files(spark: SparkSession, target: Target, has_steps: bool) -> Sink:
    folder = open_folder(spark, _require_path(target))
    return FileSink(folder, target.format, target.options, target.partition_by)


def _open_batch_source(spark: SparkSession, target: Target, has_steps: bool) -> Sink:
    _require_path(target)
    return CallSink(_save_to_source(target))


# The sink of each format; any other is a batch source of Spark's. A new sink is one more line.
SINKS: Mapping[str, Callable[[SparkSession, Target, bool], Sink]] = {
    "noop": _open_count,
    "count": _open_count,
    "console": _open_console,
    "memory": _open_memory,
    "parquet": _open_parquet,
    **dict.fromkeys(("orc", "json", "csv", "text"), _open_files),
}


def _require_path(target: Target) -> str:
    if target.path is None:
        raise QueryError(
            f"the {target.format} sink needs a path: .option('path', 'some/folder') or start('some/folder')"
        )
    return target.path


def _arrow_codec(name: str) -> str:
    codec = _ARROW_CODECS.get(name.lower(), name.lower())
    if codec not in ("none", "snappy", "gzip", "brotli", "zstd", "lz4"):
        raise QueryError(f"parquet compression '{name}' is not known; use snappy, zstd, gzip, lz4 or none")
    return codec


def _discard(results: DataFrame, batch: int) -> None:
    results.write.format("noop").mode("overwrite").save()


def _show(rows: int, truncate: bool) -> Callable[[DataFrame, int], None]:
    def show(results: DataFrame, batch: int) -> None:
        print(f"batch {batch}")
        results.show(rows, truncate)

    return show


class _MemoryTable:
    """A table in the driver's memory, for tests and demonstrations."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self._spark, self._name = spark, name
        self._batches: dict[int, pa.Table] = {}

    def __call__(self, results: DataFrame, batch: int) -> None:
        self._batches[batch] = results.toArrow()
        rows = pa.concat_tables(self._batches.values())
        self._spark.createDataFrame(rows, results.schema).createOrReplaceTempView(self._name)


def _save_to_source(target: Target) -> Callable[[DataFrame, int], None]:
    """Write each batch with Spark's batch writer: at least once, as with foreachBatch."""

    def save(results: DataFrame, batch: int) -> None:
        writer = results.write.format(target.format).options(**target.options).mode("append")
        writer.partitionBy(*target.partition_by).save(target.path)

    return save


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

    return save if target.format in _FILE_FORMATS else append
