"""Tables as Spark's catalog describes them."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from weir.errors import QueryError
from weir.spark.java_errors import JAVA_ERRORS, reason_of


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
