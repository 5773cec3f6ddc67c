"""Checks of a sink when a query starts, so that no mistake waits for the first batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructType

from weir.errors import QueryError, find_nearest, match_name
from weir.spark.java_errors import JAVA_ERRORS, reason_of
from weir.spark.redaction import hide_secrets

FILE_FORMATS = ("parquet", "orc", "json", "csv", "text")
OWN_FORMATS = ("memory", "console", "noop", "count")
# Formats that are not part of Spark itself, and the packages that bring them.
_PACKAGES: Mapping[str, str] = {
    "avro": "org.apache.spark:spark-avro_2.13:{version}",
    "kafka": "org.apache.spark:spark-sql-kafka-0-10_2.13:{version}",
    "delta": "io.delta:delta-spark_2.13:<version>",
    "iceberg": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:<version>",
    "hudi": "org.apache.hudi:hudi-spark4.0-bundle_2.13:<version>",
    "mongodb": "org.mongodb.spark:mongo-spark-connector_2.13:<version>",
    "bigquery": "com.google.cloud.spark:spark-bigquery-with-dependencies_2.13:<version>",
}
_READ_ONLY = ("binaryfile", "rate", "rate-micro-batch", "socket", "state-metadata", "statestore")
_FILE_CLASSES: Mapping[str, str] = {
    "parquet": "parquet.ParquetFileFormat",
    "orc": "orc.OrcFileFormat",
    "json": "json.JsonFileFormat",
    "csv": "csv.CSVFileFormat",
    "text": "text.TextFileFormat",
}
_OPTION_CLASSES: Mapping[str, str] = {
    "parquet": "execution.datasources.parquet.ParquetOptions",
    "orc": "execution.datasources.orc.OrcOptions",
    "json": "catalyst.json.JSONOptions",
    "csv": "catalyst.csv.CSVOptions",
    "text": "execution.datasources.text.TextOptions",
}
_CONSOLE_OPTIONS = ("numRows", "truncate")


def name_format(spark: SparkSession, given: str) -> str:
    """Return the name of a format as Spark finds it, or refuse one that cannot be written."""
    name = given.lower()
    if name in (*FILE_FORMATS, *OWN_FORMATS):
        return name
    if name in _READ_ONLY:
        raise QueryError(f"'{given}' can be read but not written; known sinks: {_quote(_sinks())}")
    _look_up(spark, given, "sink", _sinks())
    return given


def check_source(spark: SparkSession, given: str) -> None:
    """Refuse a format that Spark does not know to read."""
    if given.lower() not in FILE_FORMATS:
        _look_up(spark, given, "source", (*FILE_FORMATS, "rate", "socket", *_PACKAGES))


def _look_up(spark: SparkSession, given: str, kind: str, known: Sequence[str]) -> None:
    try:
        state = spark._jsparkSession.sessionState()
        _java(spark, "execution.datasources.DataSource").lookupDataSource(given, state.conf())
    except JAVA_ERRORS:
        raise _missing_format(spark, given, kind, known) from None


def _missing_format(spark: SparkSession, given: str, kind: str, known: Sequence[str]) -> QueryError:
    near = find_nearest(given, known, cutoff=0.65)
    if package := _PACKAGES.get(given.lower()):
        example = package.format(version=spark.version)
        return QueryError(
            f"the {kind} format '{given}' is not on Spark's classpath; add its package before the session "
            f"starts, like .config('spark.jars.packages', '{example}')"
        )
    if near is not None:
        return QueryError(f"unknown {kind} format '{given}'; did you mean '{near}'?")
    return QueryError(
        f"Spark knows no {kind} format '{given}'; known are {_quote(known)}, and others once their package "
        "is on the classpath (spark.jars.packages)"
    )


def check_columns(spark: SparkSession, format: str, schema: StructType, partition_by: Iterable[str]) -> None:
    """Refuse result columns that a file format cannot hold, and unknown columns to divide files by."""
    names, divided = schema.names, {}
    for given in partition_by:
        divided[match_name("column", given, names, where=" in partitionBy")] = given
    fields = [field for field in schema if field.name not in divided]
    if divided and not fields:
        raise QueryError(
            "partitionBy names every column of the result, so that files would have none; leave one out"
        )
    if format not in FILE_FORMATS:
        return
    if format == "text" and (len(fields) != 1 or not isinstance(fields[0].dataType, StringType)):
        columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in fields)
        raise QueryError(
            f"the text format holds one string column, but the result has {columns}; use csv or json"
        )
    lower = [name.lower() for name in names]
    for name in names:
        if lower.count(name.lower()) > 1 and not _is_case_sensitive(spark):
            raise QueryError(f"the result has two columns '{name}', which files cannot; rename one with AS")
    writer = _java(spark, f"execution.datasources.{_FILE_CLASSES[format]}")()
    java_schema = spark._jsparkSession.parseDataType(StructType(fields).json())
    for field, java_field in zip(fields, java_schema.fields(), strict=True):
        if not writer.supportDataType(java_field.dataType()):
            kind = field.dataType.simpleString()
            raise QueryError(
                f"column '{field.name}' is {kind}, which {format} files cannot hold; cast or drop it"
            )


def check_options(spark: SparkSession, format: str, options: Iterable[str]) -> None:
    """Refuse an option that is nearly one of the format's: Spark would ignore it."""
    known = list(_CONSOLE_OPTIONS) if format == "console" else []
    if format in _OPTION_CLASSES:
        known = _java(spark, _OPTION_CLASSES[format]).getAllOptions().mkString(",").split(",")
    lower = [name.lower() for name in known]
    for name in options:
        near = None if name.lower() in lower else find_nearest(name.replace("_", ""), known, cutoff=0.8)
        if near is not None:
            raise QueryError(f"unknown option '{name}' of {format}; did you mean '{near}'?")


def check_jdbc(spark: SparkSession, options: Mapping[str, str]) -> None:
    """Refuse a database without an address, a table, or a driver."""
    jvm: Any = spark._jvm
    try:
        scala = jvm.PythonUtils.toScalaMap(dict(options))
        _java(spark, "execution.datasources.jdbc.JdbcOptionsInWrite")(scala)
    except JAVA_ERRORS as error:
        reason = hide_secrets(spark, options, reason_of(error)).removeprefix("requirement failed: ")
        raise QueryError(
            f"the jdbc sink cannot be opened: {reason}; it needs the options url and dbtable, "
            "and the database's driver on the classpath (spark.jars)"
        ) from None


def _java(spark: SparkSession, name: str) -> Any:
    found: Any = spark._jvm
    for part in f"org.apache.spark.sql.{name}".split("."):
        found = getattr(found, part)
    return found


def _is_case_sensitive(spark: SparkSession) -> bool:
    return spark.conf.get("spark.sql.caseSensitive", "false") == "true"


def _sinks() -> tuple[str, ...]:
    return (*FILE_FORMATS, *OWN_FORMATS, "jdbc", "xml", *_PACKAGES)


def _quote(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
