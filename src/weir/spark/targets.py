"""Choose the sink for a format or a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from weir.errors import QueryError
from weir.spark.filesystem import open_folder
from weir.spark.sinks import CallSink, FileSink, NoSink, ParquetSink, Sink, Step

_FILES = ("parquet", "orc", "json", "csv", "text")
# Sinks that keep nothing across restarts may have a temporary checkpoint, as in Spark.
EPHEMERAL_FORMATS = ("memory", "console", "noop", "count")
_NOT_FOR_WRITERS = ("path", "checkpointLocation")


@dataclass(frozen=True, slots=True)
class Target:
    """Where results go: a format with a path, or a table."""

    format: str
    path: str | None
    table: str | None


def choose_sink(
    spark: SparkSession,
    target: Target,
    options: Mapping[str, str],
    partition_by: tuple[str, ...],
    steps: tuple[Step, ...],
    name: str | None,
    call: Callable[[DataFrame, int], None] | None,
) -> Sink:
    """The sink of a target; workers write results themselves where they can."""
    rest = {key: value for key, value in options.items() if key not in _NOT_FOR_WRITERS}
    if call is not None:
        return CallSink(call, steps)
    if target.table is not None:
        return _table(spark, target, rest, partition_by, steps)
    if target.format in ("noop", "count"):
        return CallSink(_noop, steps) if steps else NoSink()
    if target.format == "console":
        return CallSink(_console(int(rest.get("numRows", 20)), rest.get("truncate", "true") == "true"), steps)
    if target.format == "memory":
        return CallSink(_Memory(spark, name), steps)
    if target.path is None:
        raise QueryError(
            f"the {target.format} sink needs a path: .option('path', 'some/folder') or start('some/folder')"
        )
    if target.format == "parquet" and not steps and not partition_by:
        compression = rest.get("compression") or spark.conf.get(
            "spark.sql.parquet.compression.codec", "snappy"
        )
        return ParquetSink(open_folder(spark, target.path), _arrow_codec(compression or "snappy"))
    if target.format in _FILES:
        return FileSink(open_folder(spark, target.path), target.format, rest, partition_by, steps)
    return CallSink(_batch_source(target, rest, partition_by), steps)


def _arrow_codec(name: str) -> str:
    arrow_names = {"uncompressed": "none", "lz4_raw": "lz4"}
    codec = arrow_names.get(name.lower(), name.lower())
    if codec not in ("none", "snappy", "gzip", "brotli", "zstd", "lz4"):
        raise QueryError(f"parquet compression '{name}' is not known; use snappy, zstd, gzip, lz4 or none")
    return codec


def _noop(results: DataFrame, batch: int) -> None:
    results.write.format("noop").mode("overwrite").save()


def _console(rows: int, truncate: bool) -> Callable[[DataFrame, int], None]:
    def show(results: DataFrame, batch: int) -> None:
        print(f"batch {batch}")
        results.show(rows, truncate)

    return show


def _batch_source(
    target: Target, options: Mapping[str, str], partition_by: tuple[str, ...]
) -> Callable[[DataFrame, int], None]:
    """Write each batch with Spark's batch writer: at least once, as with foreachBatch."""

    def save(results: DataFrame, batch: int) -> None:
        writer = results.write.format(target.format).options(**options).mode("append")
        writer.partitionBy(*partition_by).save(target.path)

    return save


class _Memory:
    """A table in the driver's memory, named after the query, for tests and demonstrations."""

    def __init__(self, spark: SparkSession, name: str | None) -> None:
        if name is None:
            raise QueryError("the memory sink is a table named after the query: set queryName('some_name')")
        self._spark, self._name = spark, name
        self._batches: dict[int, pa.Table] = {}

    def __call__(self, results: DataFrame, batch: int) -> None:
        self._batches[batch] = results.toArrow()
        rows = pa.concat_tables(self._batches.values())
        self._spark.createDataFrame(rows, results.schema).createOrReplaceTempView(self._name)


def _table(
    spark: SparkSession,
    target: Target,
    options: Mapping[str, str],
    partition_by: tuple[str, ...],
    steps: tuple[Step, ...],
) -> Sink:
    """Write files into the table's folder, so that a repeated batch replaces its own files."""
    name = target.table
    assert name is not None

    def describe(property: str) -> str:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
        return str(next(row.data_type for row in rows if row.col_name == property))

    if spark.catalog.tableExists(name) and (provider := describe("Provider").lower()) != target.format:
        raise QueryError(f"table '{name}' is in {provider}, not {target.format}: say .format('{provider}')")
    location = {} if target.path is None else {"path": target.path}

    def save(results: DataFrame, batch: int) -> None:
        if not spark.catalog.tableExists(name):
            empty = spark.createDataFrame([], results.schema)
            writer = empty.write.format(target.format).options(**options, **location)
            writer.partitionBy(*partition_by).saveAsTable(name)
        folder = open_folder(spark, describe("Location"))
        FileSink(folder, target.format, options, partition_by, ()).emit(results, batch, repeated=True)
        if partition_by:
            spark.sql(f"MSCK REPAIR TABLE {name}")
        spark.catalog.refreshTable(name)

    if target.format not in _FILES:
        return CallSink(lambda results, batch: _append(results, target.format, options, name), steps)
    return CallSink(save, steps)


def _append(results: DataFrame, source: str, options: Mapping[str, str], name: str) -> None:
    results.write.format(source).options(**options).mode("append").saveAsTable(name)
