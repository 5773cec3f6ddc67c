"""What of a batch is on the disk, and not only in memory of the machine, before its next step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from weir.runtime.partition_batch import TaskReport
from weir.spark.filesystem import Folder


class Durability(Protocol):
    """Syncs files at the two sync points of a batch; the defaults sync nothing.

    `sync_batch` comes before the first result is published, `sync_results` before the manifest counts.
    """

    def sync_batch(self, batch: int, tasks: Sequence[TaskReport]) -> None:
        """Sync what the batch wrote into the checkpoint and the output, and Spark's log entries for it."""
        return

    def sync_hidden(self, output: Folder, names: Sequence[str]) -> None:
        """Sync results that were written after `sync_batch`, before the first of them is renamed."""
        return

    def sync_results(self, batch: int, hidden_manifest: str) -> None:
        """Sync the renames of results, and the manifest under its hidden name."""
        return

    def sync_commit(self, batch: int) -> None:
        """Sync the folder of manifests after the rename that commits a batch."""
        return


class ProcessDurability(Durability):
    """Syncs nothing: what was written survives the end of any process, but not that of the machine."""
