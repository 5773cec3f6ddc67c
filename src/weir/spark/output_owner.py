"""Who writes into a folder of results: `_weir/<id>` there says where the query's checkpoint is.

A copy of a checkpoint has the id of the original, so both would write, replace and sweep the same names. The
record tells them apart.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from pyspark.sql import SparkSession

from weir.errors import QueryError
from weir.spark.filesystem import Folder, open_folder
from weir.spark.result_names import ResultNames
from weir.spark.sealed_json import seal, unseal
from weir.spark.worker_files import local_path

_FOLDER = "_weir"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Owner:
    """The query that owns result files: its id, and the URI of its checkpoint."""

    id: str
    checkpoint: str

    @property
    def names(self) -> ResultNames:
        """The names of the query's result files."""
        return ResultNames(self.id)


def claim_folder(spark: SparkSession, folder: Folder, owner: Owner) -> None:
    """Record in a folder who writes there, or refuse a copy of the checkpoint that is recorded.

    It is written at every start, and so checks that the folder can be written.
    """
    name = f"{_FOLDER}/{owner.id}"
    try:
        recorded = _read_checkpoint(folder, name)
        if recorded is not None and not _is_same(recorded, owner.checkpoint):
            raise _refuse(spark, folder, name, recorded, owner)
        body = {"kind": "owner", "id": owner.id, "version": _VERSION, "checkpoint": owner.checkpoint}
        folder.write(name, seal(body))
    except OSError as error:
        raise QueryError(f"the path {folder.uri} cannot be written: {error}") from None


def _read_checkpoint(folder: Folder, name: str) -> str | None:
    """The recorded checkpoint; None also for a damaged record, from which nothing follows."""
    data = folder.read(name)
    body = None if data is None else unseal(data)
    return None if body is None else body.get("checkpoint")


def _is_same(uri: str, other: str) -> bool:
    if uri == other:
        return True
    local, other_local = local_path(uri), local_path(other)
    # By another way, like a symbolic link, it is the same folder.
    is_local = local is not None and other_local is not None
    return is_local and os.path.realpath(str(local)) == os.path.realpath(str(other_local))


def _refuse(spark: SparkSession, folder: Folder, name: str, recorded: str, owner: Owner) -> QueryError:
    record = f"{folder.uri.rstrip('/')}/{name}"
    if open_folder(spark, recorded).names():
        return QueryError(
            f"the checkpoint {owner.checkpoint} is a copy of {recorded}, whose query writes the same file "
            f"names into {folder.uri}; start with a new checkpointLocation or into another folder, or, if "
            f"only the copy shall go on, delete {record} and start again"
        )
    return QueryError(
        f"the query of the checkpoint {owner.checkpoint} wrote into {folder.uri} from {recorded}, where "
        f"nothing is now; if the checkpoint was moved, and not copied to where another query goes on with "
        f"it, delete {record} and start again"
    )
