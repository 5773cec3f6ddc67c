"""Delete what no retained manifest needs, and nothing that another driver may still commit.

A driver deletes files of its own epoch and of older ones, never of a higher one. Files of older epochs that
no manifest names go when this driver has committed a batch of its own: until then a driver that was paused
may commit the batch that they belong to. Where a lock shows that no other driver runs, `weir.spark.sweep` has
deleted those of unfinished batches at the start.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

from weir.runtime.manifest import Manifest
from weir.spark.checkpoint import Checkpoint
from weir.spark.epoch import Epoch, list_epochs, name_epoch
from weir.spark.errors import DamagedStateError
from weir.spark.filesystem import Folder
from weir.spark.state_names import (
    BatchAndEpoch,
    BatchFileKind,
    name_batch_file,
    name_job,
    parse_counts,
    parse_hidden,
    parse_job,
    parse_slice,
)

# Files that failed attempts left behind, in the checkpoint and the sink, are deleted once in so many batches.
CLEAN_UP_EVERY = 50
_BATCH_FILES: tuple[BatchFileKind, ...] = ("decision", "manifest")
_LOG = logging.getLogger("weir")
_PROBE = ".probe-"  # of a check of the workers that was killed


def delete_unnamed_slices(
    folder: Folder, named: Collection[str], is_left: Callable[[BatchAndEpoch], bool]
) -> None:
    """Delete those slice files which are not named that nobody may still commit, as `is_left` says."""
    for name in folder.names("slices"):
        written = parse_slice(name)
        if name not in named and (name.startswith(_PROBE) if written is None else is_left(written)):
            folder.delete(f"slices/{name}")


class Vacuum:
    """Deletes files of a checkpoint; slice files live while one of the last `retain` manifests names them."""

    def __init__(self, checkpoint: Checkpoint, epoch: Epoch, retain: int) -> None:
        self._checkpoint, self._folder, self._own = checkpoint, checkpoint.folder, epoch.number
        self._retain = retain
        self._has_committed = self._has_swept = False
        self._files_named: dict[int, frozenset[str]] = {}

    def note_commit(self, manifest: Manifest) -> None:
        """Take note of a batch that this driver has committed."""
        self._files_named[manifest.batch] = manifest.files
        self._has_committed = True

    def run(self, before: Manifest, batch: int) -> None:
        """Delete what is not needed when a batch begins after a manifest."""
        first = before.batch - self._retain + 1
        if before.batch not in self._files_named:
            self._read_retained(before, first)
        if self._has_committed and not self._has_swept:
            self._has_swept = True
            newest, own = before.batch, self._own
            delete_unnamed_slices(
                self._folder,
                self._named(),
                lambda written: written.epoch <= own and written.batch <= newest,
            )
            self._sweep_epochs()
        outdated = [number for number in self._files_named if number < first]
        candidates = frozenset[str]().union(*(self._files_named.pop(number) for number in outdated))
        for name in candidates - self._named():
            self._folder.delete(f"slices/{name}")
        if outdated or batch % CLEAN_UP_EVERY == 0:
            self._delete_batch_files(first)

    def _named(self) -> frozenset[str]:
        return frozenset[str]().union(*self._files_named.values())

    def _read_retained(self, newest: Manifest, first: int) -> None:
        self._files_named = {newest.batch: newest.files}
        for batch in self._checkpoint.batches("manifest"):
            if first <= batch < newest.batch:
                try:
                    self._files_named[batch] = self._checkpoint.read_manifest(before=batch + 1).files
                except DamagedStateError as error:  # nobody can go back to it, but nobody has to
                    _LOG.warning("%s; the query goes on without it", error.damage)
                    self._files_named[batch] = frozenset()

    def _delete_batch_files(self, first: int) -> None:
        for kind in _BATCH_FILES:
            for file in self._checkpoint.files(kind):
                if file.batch < first and file.epoch <= self._own:
                    self._folder.delete(name_batch_file(kind, file))

    def _sweep_epochs(self) -> None:
        """Delete what drivers of older epochs recorded of themselves, and what they were writing."""
        older = [name_epoch(epoch) for epoch in list_epochs(self._folder) if epoch < self._own]
        jobs = [epoch for epoch in map(parse_job, self._folder.names("jobs")) if epoch is not None]
        older += [name_job(epoch) for epoch in jobs if epoch < self._own]
        for kind in _BATCH_FILES:
            for name in self._folder.names(f"{kind}s"):
                epoch = parse_hidden(name)
                if epoch is not None and epoch < self._own:
                    older.append(f"{kind}s/{name}")
        for name in self._folder.names("stats"):
            epoch = parse_counts(name)
            if epoch is not None and epoch < self._own:
                older.append(f"stats/{name}")
        for name in older:
            self._folder.delete(name)
