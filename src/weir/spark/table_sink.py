"""Tables as sinks: checked, and created if need be, when the query starts."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.types import StructType

from weir.errors import QueryError, match_name
from weir.spark.file_sinks import FileSink
from weir.spark.filesystem import Folder, open_folder
from weir.spark.frames import quote
from weir.spark.java_errors import JAVA_ERRORS, reason_of
from weir.spark.output_owner import claim_folder
from weir.spark.redaction import hide_secrets, keep_secrets
from weir.spark.sink_checks import FILE_FORMATS
from weir.spark.target import Target


@dataclass(frozen=True, slots=True)
class Table:
    """A table as the catalog describes it."""

    kind: str
    provider: str
    location: str
    partitioned_by: tuple[str, ...]
    schema: StructType


def find_table(spark: SparkSession, name: str) -> Table | None:
    """Return the table of a name; None if there is none."""
    try:
        if not spark.catalog.tableExists(name):
            return None
        columns = [column for column in spark.catalog.listColumns(name) if column.isPartition]
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
        schema = spark.table(name).schema
    except JAVA_ERRORS as error:
        raise QueryError(f"table '{name}' cannot be read: {reason_of(error)}") from None
    described = {row.col_name: str(row.data_type) for row in rows}
    kind = described.get("Type", "TEMPORARY VIEW")
    location, provider = described.get("Location", ""), described.get("Provider", "").lower()
    return Table(kind, provider, location, tuple(column.name for column in columns), schema)


def prepare_table(spark: SparkSession, target: Target, name: str) -> Target:
    """Check the table that a target names, or create it; return the target with the table's partitions."""
    table = find_table(spark, name)
    if table is None:
        _create(spark, target, name)
        return target
    if "VIEW" in table.kind:
        raise QueryError(f"'{name}' is a view, which cannot be written; give toTable another name")
    if table.provider != target.format.lower():
        raise QueryError(
            f"table '{name}' is in {table.provider}, not {target.format}: say .format('{table.provider}')"
        )
    given = tuple(column.lower() for column in target.partition_by)
    if given and given != tuple(column.lower() for column in table.partitioned_by):
        by = ", ".join(table.partitioned_by) or "no column"
        raise QueryError(f"table '{name}' is partitioned by {by}, not by {', '.join(target.partition_by)}")
    if target.format in FILE_FORMATS:
        _compare(name, table.schema, target.schema)
    return replace(target, partition_by=table.partitioned_by)


def _create(spark: SparkSession, target: Target, name: str) -> None:
    location = {} if target.path is None else {"path": target.path}
    writer = spark.createDataFrame([], target.schema).write.format(target.format)
    writer = writer.options(**target.options, **location).partitionBy(*target.partition_by)
    try:
        writer.saveAsTable(name)
    except JAVA_ERRORS as error:
        reason, hint = hide_secrets(spark, target.options, reason_of(error)), ""
        if folder := re.search(r"location '([^']+)' already exists", reason):
            reason = f"its folder {folder[1]} already exists"
            hint = "; delete what an earlier table left there, or choose a folder by .option('path', ...)"
        raise QueryError(f"table '{name}' cannot be created: {reason}{hint}") from None


def _compare(name: str, table: StructType, result: StructType) -> None:
    """Refuse a result whose columns are not those of the table: files are read by the table's schema."""
    own = {field.name.lower(): field for field in table}
    for field in result:
        known = own.pop(field.name.lower(), None)
        if known is None:
            match_name("result column", field.name, table.names, where=f" in table '{name}'")
        elif known.dataType != field.dataType:
            kind, other = field.dataType.simpleString(), known.dataType.simpleString()
            raise QueryError(
                f"column '{known.name}' of table '{name}' is {other}, but the result's is {kind}; "
                f"cast it in the SELECT list, like CAST(... AS {other.upper()}) AS {known.name}"
            )
    if own:
        missing = next(iter(own.values())).name
        raise QueryError(
            f"the result has no column '{missing}', which table '{name}' has; "
            f"select it, or write NULL by .withColumn('{missing}', ...)"
        )


def save_to_table(spark: SparkSession, target: Target, name: str) -> Callable[[DataFrame, int], None]:
    """Write files into the table's folder, so that a repeated batch replaces its own; else append."""
    target = prepare_table(spark, target, name)
    claimed: set[str] = set()

    def append(results: DataFrame, batch: int) -> None:
        writer = results.write.format(target.format).options(**target.options).mode("append")
        with keep_secrets(spark, target.options):
            writer.saveAsTable(name)

    def open_table() -> tuple[Folder, StructType]:
        table = find_table(spark, name)
        if table is None:
            raise QueryError(f"table '{name}' was dropped while the query ran; start it again")
        folder = open_folder(spark, table.location)
        if table.location not in claimed:  # the table may have been moved since
            claim_folder(spark, folder, target.owner)
            claimed.add(table.location)
        return folder, table.schema

    def save(results: DataFrame, batch: int) -> None:
        folder, schema = open_table()
        sink = FileSink(folder, target.owner.names, target.format, target.options, target.partition_by)
        # Formats without names, like csv, are read by position.
        ordered = results.select(*(F.col(quote(column)) for column in schema.names))
        sink.emit(ordered, batch, cleans_up=True)
        if target.partition_by:
            spark.sql(f"MSCK REPAIR TABLE {name}")
        spark.catalog.refreshTable(name)

    if target.format not in FILE_FORMATS:
        return append
    open_table()
    return save
