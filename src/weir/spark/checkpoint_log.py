"""The log of a query in its checkpoint: decisions before batches, manifests after them, and history."""

from __future__ import annotations

from typing import Any

from weir.kernel.decision import Decision
from weir.runtime.manifest import Manifest
from weir.spark.errors import DamagedStateError
from weir.spark.filesystem import Folder
from weir.spark.history import History
from weir.spark.ledger import Ledger
from weir.spark.vacuum import Vacuum


class CheckpointLog:
    """Keeps the last manifest in memory, and reads it from the checkpoint after a start only."""

    def __init__(self, folder: Folder, batches_to_retain: int) -> None:
        self._folder, self._ledger = folder, Ledger(folder)
        self._vacuum = Vacuum(folder, self._ledger, batches_to_retain)
        self._history = History(folder)
        self._last: Manifest | None = None
        self._is_shared = self._ledger.spread() is not None

    def begin(self, batch: int) -> Manifest:
        """Return the manifest that a batch starts from, and delete what no retained manifest names."""
        before = self._last
        if before is None or before.batch != batch - 1:
            before = self._ledger.manifest_before(batch)
        if before.batch != batch - 1:
            raise DamagedStateError(
                f"{self._folder.uri}/manifests/{batch - 1}.json is missing, on which batch {batch} builds; "
                "restore it, or start anew with another checkpoint"
            )
        self._vacuum.collect(before, batch)
        return before

    def decision(self, batch: int) -> tuple[Decision, int] | None:
        """What was decided for a batch, and how often it was tried; None if nothing was."""
        return self._ledger.decision(batch)

    def record(self, batch: int, decision: Decision, attempt: int) -> None:
        """Write what a batch will do."""
        placement = decision.placement
        if placement is not None and placement.is_shared and not self._is_shared:
            # First, so that no start by key meets a decision to share.
            self._ledger.write_spread(placement.spread)
            self._is_shared = True
        self._ledger.write_decision(batch, decision, attempt)

    def record_history(self, batch: int, line: dict[str, Any]) -> None:
        """Write a line about what changes with a batch."""
        self._history.add(batch, line)

    def commit(self, manifest: Manifest) -> None:
        """Write the manifest after a batch."""
        self._ledger.write_manifest(manifest)
        self._vacuum.keep(manifest)
        self._last = manifest
