"""Sync what a batch wrote to the disk before its next step, so that a power cut undoes nothing that counts.

    sync_batch     before anything of a batch is published: its decision and slices, its hidden results, and
                   the entries of Spark's logs that it was made from
    sync_results   before its manifest counts: the results under their names, and the hidden manifest

Each is a `syncfs` of the local file systems that hold the checkpoint and the output: Spark's own files need
not be known by name, and many small files go to the disk together. What the driver writes to HDFS is synced
file by file as it is closed (`weir.spark.filesystem`).
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Protocol

from weir.errors import QueryError
from weir.runtime.partition_batch import TaskReport
from weir.spark.filesystem import Folder
from weir.spark.worker_files import local_path


class Durability(Protocol):
    """Syncs files at the two sync points of a batch; the defaults sync nothing.

    `sync_batch` comes before the first result is published, `sync_results` before the manifest counts.
    """

    def sync_start(self) -> None:
        """Sync the epoch and the job of a start, before Spark writes its logs."""
        return

    def sync_batch(self, batch: int, tasks: Sequence[TaskReport]) -> None:
        """Sync what the batch wrote into the checkpoint and the output, and Spark's log entries for it."""
        return

    def sync_hidden(self, folder: Folder, names: Sequence[str]) -> None:
        """Sync files of a folder under their hidden names, before the first of them is renamed."""
        return

    def sync_renames(self) -> None:
        """Sync the renames of results, before a log of them names them."""
        return

    def sync_results(self, batch: int, hidden_manifest: str) -> None:
        """Sync the renames of results, and the manifest under its hidden name."""
        return

    def sync_commit(self, batch: int) -> None:
        """Sync the folder of manifests after the rename that commits a batch."""
        return


class ProcessDurability(Durability):
    """Syncs nothing: what was written survives the end of any process, but not that of the machine."""


class PowerDurability(Durability):
    """Syncs the whole file systems of checkpoint and output, so that what was written survives a power cut.

    A failed sync is final: the kernel forgets what it could not write, and a second one would succeed. The
    folders stay open, because Linux reports the failures since a file was opened, each once.
    """

    def __init__(self, checkpoint: Folder) -> None:
        self._disks: dict[int, _Disk] = {}
        self._synced_results: frozenset[str] = frozenset()
        self._failure: QueryError | None = None
        self._checkpoint = checkpoint
        self._add_disk(checkpoint)

    def sync_start(self) -> None:
        """Sync all that was written up to now."""
        self._sync()

    def sync_batch(self, batch: int, tasks: Sequence[TaskReport]) -> None:
        """Sync all that was written up to now, with the results that tasks have written."""
        self._sync()
        self._synced_results = frozenset(name for task in tasks for name in task.files)

    def sync_hidden(self, folder: Folder, names: Sequence[str]) -> None:
        """Sync all that was written up to now, unless `sync_batch` has synced these files."""
        is_new = self._add_disk(folder)
        if is_new or not self._synced_results.issuperset(names):
            self._sync()

    def sync_renames(self) -> None:
        """Sync all that was written up to now."""
        self._sync()

    def sync_results(self, batch: int, hidden_manifest: str) -> None:
        """Sync all that was written up to now."""
        self._sync()

    def sync_commit(self, batch: int) -> None:
        """Sync the folder of manifests alone, which has the rename that commits the batch."""
        path = local_path(self._checkpoint.uri)
        if path is not None:
            self._try(path, partial(_sync_folder, f"{path}/manifests"))

    def _add_disk(self, folder: Folder) -> bool:
        path = local_path(folder.uri)
        device = None if path is None else os.stat(path).st_dev
        if path is None or device is None or device in self._disks:
            return False
        self._disks[device] = _Disk(path)
        return True

    def _sync(self) -> None:
        for disk in self._disks.values():
            self._try(disk.path, disk.sync)

    def _try(self, path: str, sync: Callable[[], None]) -> None:
        if self._failure is not None:
            raise self._failure
        try:
            sync()
        except OSError as error:
            self._failure = QueryError(
                f"the disk of {path} cannot be synced ({error.strerror}), so what was just written there may "
                "be lost; check the disk and start again, or go on elsewhere from a copy"
            )
            raise self._failure from error


def sync_folders(folders: Iterable[Folder]) -> None:
    """Sync the file systems of those folders that are on local disks."""
    for path in {path for folder in folders if (path := local_path(folder.uri)) is not None}:
        _Disk(path).sync()


class _Disk:
    """The file system of a folder, which stays open."""

    def __init__(self, path: str) -> None:
        self.path, self._folder = path, os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._folder)

    def sync(self) -> None:
        """Write all that the kernel holds in memory for the file system to its disk, and wait for that."""
        syncfs = getattr(_LIBC, "syncfs", None)
        if syncfs is None:  # not on Linux
            os.sync()
        elif syncfs(self._folder) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))


def _sync_folder(path: str) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


_LIBC: Any = ctypes.CDLL(None, use_errno=True)
