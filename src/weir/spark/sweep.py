"""Make room before a start writes anything: delete what failed attempts of the query left behind.

They may have filled the disk, and vacuum comes only when a batch begins.
"""

from __future__ import annotations

from contextlib import suppress

from pyspark.sql import SparkSession

from weir.errors import QueryError
from weir.spark.file_sinks import sweep_hidden
from weir.spark.filesystem import Folder, open_folder
from weir.spark.output_owner import Owner, is_owned
from weir.spark.restart import Restart
from weir.spark.torn_logs import LogEntries
from weir.spark.vacuum import delete_unnamed_slices


def sweep_failed_attempts(spark: SparkSession, folder: Folder, restart: Restart, owner: Owner) -> None:
    """Delete what a query, none of whose batches may be running, has neither committed nor published."""
    location = open_folder(spark, owner.checkpoint)
    for name in LogEntries(location).list_unfinished():
        location.delete(name)
    # If manifests are lost, their slices are not for a start to delete.
    newest = restart.manifest
    if newest.batch >= restart.committed:
        # Of the newest batch, its other attempts have left some.
        delete_unnamed_slices(folder, newest.files, lambda written: written.batch >= newest.batch)
        folder.delete("stats")  # a repeat counts anew
    target = None if restart.stored is None else restart.stored.target
    if target is None or target.path is None:
        return
    with suppress(QueryError, OSError):  # an earlier sink may be out of reach, and is not needed any more
        output = open_folder(spark, target.path)
        # The query of which this checkpoint is a copy may be running.
        if is_owned(output, owner):
            sweep_hidden(output, owner.names)
