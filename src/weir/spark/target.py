"""Where results go, as a writer was told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql.types import StructType

from weir.spark.output_owner import Owner


@dataclass(frozen=True, slots=True)
class Target:
    """Where results go: a format with a path, or a table; `options` are those of Spark's batch writer.

    `owner` is the query whose results they are, and `schema` that of the results.
    """

    format: str
    path: str | None
    table: str | None
    options: Mapping[str, str]
    partition_by: tuple[str, ...]
    query_name: str | None
    schema: StructType
    owner: Owner
