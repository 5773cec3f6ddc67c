"""What tasks of a second job count, in small sealed files of the checkpoint.

Each partition and stage has a file of a fixed name, so that a second reading replaces the first; the driver
deletes them after the batch. Workers import this module.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from weir.codec import from_json, to_json
from weir.spark.sealed_json import seal, unseal
from weir.spark.state_names import BatchAndEpoch, name_counts
from weir.spark.worker_files import open_output, open_path
from weir.stats.batch_counts import BatchCounts


@dataclass(frozen=True)
class StageCounts:
    """What one partition counted in one stage of probing, and to which partitions it sent partials.

    `quarantine` names the files of rows that were left out.
    """

    counts: BatchCounts
    sent_to: tuple[int, ...] = ()
    quarantine: tuple[str, ...] = ()


@dataclass(frozen=True)
class CountFiles:
    """Where the tasks of a batch write what they count; `folder` is weir's own in the checkpoint."""

    folder: str
    id: str
    written: BatchAndEpoch
    version: int

    def name(self, partition: int, stage: int) -> str:
        """Return the name of a file, below the folder."""
        return name_counts(self.written, partition, stage)

    def write(self, partition: int, stage: int, counts: StageCounts) -> None:
        """Write what a partition counted in a stage, in place of an earlier run's counts."""
        path = f"{self.folder}/{self.name(partition, stage)}"
        hidden = f"{path}.{uuid.uuid4().hex[:8]}.tmp"
        with open_output(hidden) as stream:
            stream.write(seal({**self._describe(partition, stage), "content": to_json(counts)}))
        files, hidden_path = open_path(hidden)
        files.move(hidden_path, open_path(path)[1])

    def parse(self, data: bytes | None, partition: int, stage: int) -> StageCounts | None:
        """Return what a file says; None if it is missing, damaged or another's: the counts are unknown."""
        body = unseal(data or b"")
        if body is None:
            return None
        content = body.pop("content", None)
        if body != self._describe(partition, stage):
            return None
        try:
            return from_json(StageCounts, content)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None

    def _describe(self, partition: int, stage: int) -> dict[str, str | int]:
        batch, epoch = self.written
        return {
            "kind": "counts",
            "id": self.id,
            "batch": batch,
            "epoch": epoch,
            "version": self.version,
            "partition": partition,
            "stage": stage,
        }
