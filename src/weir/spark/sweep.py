"""Make room before a start writes anything: delete what failed attempts of the query left behind.

They may have filled the disk, and vacuum comes only when a batch begins.
"""

from __future__ import annotations

from contextlib import suppress

from pyspark.sql import SparkSession

from weir.errors import QueryError
from weir.runtime.manifest import Manifest
from weir.spark.file_sinks import sweep_hidden
from weir.spark.filesystem import Folder, open_folder
from weir.spark.job_description import FileTarget
from weir.spark.output_owner import Owner, is_owned
from weir.spark.restart import Restart
from weir.spark.state_names import parse_slice
from weir.spark.table_sink import find_table


def sweep_failed_attempts(spark: SparkSession, folder: Folder, restart: Restart, owner: Owner) -> None:
    """Delete what a query, none of whose batches may be running, has neither committed nor published."""
    # If manifests are lost, their slices are not for a start to delete.
    if restart.manifest.batch >= restart.committed:
        _sweep_state(folder, restart.manifest)
    target = None if restart.stored is None else restart.stored.target
    with suppress(QueryError, OSError):  # an earlier sink may be out of reach, and is not needed any more
        output = None if target is None else _find_output(spark, target)
        # The query of which this checkpoint is a copy may be running.
        if output is not None and is_owned(output, owner):
            sweep_hidden(output, owner.names)


def _sweep_state(folder: Folder, newest: Manifest) -> None:
    """Delete slices of batches after the newest manifest, and of that batch's other attempts."""
    for name in folder.names("slices"):
        written = parse_slice(name)
        if written is not None and written.batch >= newest.batch and name not in newest.files:
            folder.delete(f"slices/{name}")
    folder.delete("stats")  # a repeat counts anew


def _find_output(spark: SparkSession, target: FileTarget) -> Folder | None:
    if target.table is None:
        return None if target.path is None else open_folder(spark, target.path)
    table = find_table(spark, target.table)
    return None if table is None else open_folder(spark, table.location)
