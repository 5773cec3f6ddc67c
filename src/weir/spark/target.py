"""Where results go, as a writer was told, and as a checkpoint records it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from weir.spark.errors import ChangedQueryError
from weir.spark.filesystem import qualify
from weir.spark.job_description import FileTarget
from weir.spark.output_owner import Owner
from weir.spark.redaction import hash_secrets, is_same_secret
from weir.spark.sink_checks import FILE_FORMATS
from weir.spark.tables import find_table


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


def record_target(spark: SparkSession, target: Target | None) -> FileTarget | None:
    """Describe a sink of files, so that what is there can be found, and a batch that had begun repeated.

    A table exists by now: its folder is the path, wherever a new one would have been made.
    """
    if target is None or target.format.lower() not in FILE_FORMATS:
        return None
    table = None if target.table is None else find_table(spark, target.table)
    path = target.path if table is None else table.location
    options, secrets = hash_secrets(spark, target.options, target.owner.id)
    qualified = None if path is None else qualify(spark, path)
    return FileTarget(target.format, qualified, target.table, options, secrets, target.partition_by)


def restore_target(
    recorded: FileTarget, given: Mapping[str, str], schema: StructType, owner: Owner, batch: int | None
) -> Target:
    """Return the sink in which a batch had begun; its secrets are among the options given now."""
    options = dict(recorded.options)
    for name, secret in recorded.secrets.items():
        value = given.get(name)
        if value is None or not is_same_secret(value, secret, owner.id):
            raise ChangedQueryError(
                f"batch {batch} had begun with another value of the sink's option '{name}', of which the "
                "checkpoint keeps only a hash; start once with that value, and change it after the batch"
            )
        options[name] = value
    columns = recorded.partition_by
    return Target(recorded.format, recorded.path, recorded.table, options, columns, None, schema, owner)
