"""Who writes into a folder of results: `_weir/<id>` there says where the query's checkpoint is.

A copy of a checkpoint has the id of the original, so both would write, replace and sweep the same names. The
record tells them apart.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession

from weir.errors import QueryError
from weir.spark.filesystem import Folder, open_folder
from weir.spark.result_log import check_log
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


def check_folder(spark: SparkSession, folder: Folder, owner: Owner) -> None:
    """Refuse a folder into which a query cannot write, as far as that is known without writing.

    A copy of the checkpoint that is recorded there is refused, and a folder into which Spark's own file sink
    writes.
    """
    name, checkpoint = f"{_FOLDER}/{owner.id}", _resolve(owner.checkpoint)
    with _name_path(folder):
        folder.check_writable()
        check_log(folder)
        recorded = _read_checkpoint(folder, name)
    if recorded is not None and recorded != checkpoint:
        raise _refuse(spark, folder, name, recorded, checkpoint)


def claim_folder(spark: SparkSession, folder: Folder, owner: Owner) -> None:
    """Record in a folder who writes there, or refuse it."""
    check_folder(spark, folder, owner)
    record_owner(folder, owner)


def record_owner(folder: Folder, owner: Owner) -> None:
    """Record in a folder that has been checked who writes there.

    It is written at every start, and so checks that the folder can be written.
    """
    checkpoint = _resolve(owner.checkpoint)
    body = {"kind": "owner", "id": owner.id, "version": _VERSION, "checkpoint": checkpoint}
    with _name_path(folder):
        folder.write(f"{_FOLDER}/{owner.id}", seal(body))


@contextmanager
def _name_path(folder: Folder) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise QueryError(f"the path {folder.uri} cannot be written: {error}") from None


def is_owned(folder: Folder, owner: Owner) -> bool:
    """True if a folder records this owner, and not one of which its checkpoint is a copy."""
    return _read_checkpoint(folder, f"{_FOLDER}/{owner.id}") == _resolve(owner.checkpoint)


def _read_checkpoint(folder: Folder, name: str) -> str | None:
    """The recorded checkpoint; None also for a damaged record, from which nothing follows."""
    data = folder.read(name)
    body = None if data is None else unseal(data)
    return None if body is None else str(body.get("checkpoint"))


def _resolve(uri: str) -> str:
    """On a local disk, the URI without symbolic links: by each way to it, a checkpoint is the same."""
    local = local_path(uri)
    return uri if local is None else f"file:{os.path.realpath(local)}"


def _exists(spark: SparkSession, uri: str) -> bool:
    try:
        return bool(open_folder(spark, uri).names())
    except (QueryError, OSError):
        return True  # for all that is known


def _refuse(spark: SparkSession, folder: Folder, name: str, recorded: str, checkpoint: str) -> QueryError:
    record = f"{folder.uri.rstrip('/')}/{name}"
    if _exists(spark, recorded):
        return QueryError(
            f"the checkpoint {checkpoint} is a copy of {recorded}, whose query writes the same file names "
            f"into {folder.uri}; start with a new checkpointLocation or into another folder, or, if only the "
            f"copy shall go on, delete {record} and start again"
        )
    return QueryError(
        f"the checkpoint {checkpoint} was at {recorded}, where nothing is now, when its query wrote into "
        f"{folder.uri}; if it was moved and no copy of it goes on elsewhere, delete {record} and start again"
    )
