"""Tables as sinks: checked, and created if need be, when the query starts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.types import StructType

from weir.errors import QueryError, match_name
from weir.spark.file_sinks import FileSink
from weir.spark.filesystem import open_folder
from weir.spark.frames import quote
from weir.spark.java_errors import JAVA_ERRORS, reason_of
from weir.spark.output_owner import claim_folder
from weir.spark.redaction import hide_secrets
from weir.spark.sink_batch import SinkBatch
from weir.spark.sink_checks import FILE_FORMATS
from weir.spark.tables import find_table
from weir.spark.target import Target


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
    own = {column.name.lower(): column for column in table}
    for column in result:
        known = own.pop(column.name.lower(), None)
        if known is None:
            match_name("result column", column.name, table.names, where=f" in table '{name}'")
        elif known.dataType != column.dataType:
            kind, other = column.dataType.simpleString(), known.dataType.simpleString()
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


@dataclass(frozen=True)
class TableSink:
    """Files in the folder of a table, so that a repeated batch replaces its own."""

    spark: SparkSession
    target: Target
    name: str
    claimed: set[str] = field(default_factory=set)

    def open(self) -> tuple[FileSink, StructType]:
        """Return the sink of the table's folder as it is now, and the table's schema."""
        table, target = find_table(self.spark, self.name), self.target
        if table is None:
            raise QueryError(f"table '{self.name}' was dropped while the query ran; start it again")
        folder = open_folder(self.spark, table.location)
        if table.location not in self.claimed:  # the table may have been moved since
            claim_folder(self.spark, folder, target.owner)
            self.claimed.add(table.location)
        names, options, columns = target.owner.names, target.options, target.partition_by
        return FileSink(folder, names, target.format, options, columns), table.schema

    def emit(self, results: DataFrame, batch: SinkBatch) -> None:
        """Write the results as files of the table."""
        sink, schema = self.open()
        # Formats without names, like csv, are read by position.
        ordered = results.select(*(F.col(quote(column)) for column in schema.names))
        sink.emit(ordered, replace(batch, cleans_up=True))
        if self.target.partition_by:
            self.spark.sql(f"MSCK REPAIR TABLE {self.name}")
        self.spark.catalog.refreshTable(self.name)

    def has_published(self, batch: int, epoch: int) -> bool:
        """True if results of a batch can be seen; older drivers can publish no more of it."""
        return self.open()[0].has_published(batch, epoch)
