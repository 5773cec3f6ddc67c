"""The log that the batches of a running query keep in its checkpoint, under the epoch of their driver."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from weir.kernel.decision import Decision
from weir.partition.placement import Placement
from weir.runtime.decide import BatchLog
from weir.runtime.manifest import Manifest
from weir.runtime.partition_batch import TaskReport
from weir.spark.checkpoint import Checkpoint, DecisionRecord, ManifestRecord, SparkLogSums, seal_record
from weir.spark.durability import Durability
from weir.spark.epoch import Epoch
from weir.spark.errors import damaged_state
from weir.spark.job_description import JobDescription
from weir.spark.spark_logs import SparkLogs
from weir.spark.state_names import BatchAndEpoch, name_batch_file, name_job
from weir.spark.vacuum import Vacuum

_HISTORY = "history.jsonl"
_MAX_HISTORY_LINES = 1000


class CheckpointLog(Checkpoint, BatchLog):
    """Keeps the last manifest in memory too, and looks for a newer epoch where the protocol says so.

    Manifests from before the job's first batch are adapted to its query.
    """

    def __init__(
        self,
        epoch: Epoch,
        job: JobDescription,
        adapt: Callable[[Manifest], Manifest],
        logs: SparkLogs,
        durability: Durability,
        vacuum: Vacuum,
    ) -> None:
        super().__init__(epoch.folder)
        self._epoch, self._job, self._adapt, self._logs = epoch, job, adapt, logs
        self._durability, self._vacuum = durability, vacuum
        self._is_recorded = False
        self._history: list[dict[str, Any]] | None = None
        self._last: Manifest | None = None
        self._spark_logs: SparkLogSums = {}  # of the batch that runs
        self._hidden_manifest: str | None = None

    @property
    def id(self) -> str:
        """The id of the query."""
        return self._epoch.id

    def begin(self, batch: int) -> Manifest:
        """Return the manifest that a batch starts from, and delete what no retained manifest needs."""
        self._epoch.check()
        before = self._last
        if before is None or before.batch != batch - 1:
            before = self._read_before(batch)
        self._vacuum.run(before, batch)
        return self._adapt(before) if self._job.drops_joins and before.batch < self._job.since else before

    def decision(self, batch: int) -> tuple[Decision, int] | None:
        """Return what was decided for a batch; refuse it if Spark's logs are not those it was made on."""
        self._spark_logs = self._logs.read(batch)
        record = self.decision_record(batch)
        if record is None:
            return None
        self._logs.compare(record.spark_logs, self._spark_logs, batch)
        return record.decision, record.attempt

    def record_job(self) -> None:
        """Record the job of this epoch."""
        name = name_job(self._epoch.number)
        data = seal_record("job", self.id, None, self._epoch.number, self._job)
        hidden = self.folder.write_hidden(name, data, private=True)
        self._durability.sync_hidden(self.folder, [hidden])  # it may replace one that manifests rest on
        self.folder.move(hidden, name)

    def record(self, batch: int, decision: Decision, attempt: int) -> None:
        """Record what a batch will do; before it, record the job if it is new or divides rows differently."""
        if decision.placement is not None:
            self._follow(decision.placement)
        if not self._is_recorded:
            self.record_job()
            self._is_recorded = True
        record = DecisionRecord(decision, attempt, self._spark_logs)
        written = BatchAndEpoch(batch, self._epoch.number)
        self.folder.write(name_batch_file("decision", written), self._seal("decision", batch, record))
        self._epoch.check()

    def record_history(self, batch: int, line: dict[str, Any]) -> None:
        """Add a line about a change of plan or allowance, in place of that of an earlier attempt."""
        lines = self._read_history() if self._history is None else self._history
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        earlier = [entry for entry in lines if entry["batch"] < batch]
        self._history = [*earlier, {"batch": batch, "time": time, **line}][-_MAX_HISTORY_LINES:]
        text = "".join(f"{json.dumps(entry, ensure_ascii=False)}\n" for entry in self._history)
        self.folder.write(_HISTORY, text.encode())

    def sync_batch(self, batch: int, tasks: Sequence[TaskReport]) -> None:
        """Sync what the batch has written; then look for a newer epoch, before anything is published."""
        self._durability.sync_batch(batch, tasks)
        self._epoch.check()

    def sync_results(self, manifest: Manifest) -> None:
        """Write the manifest under a hidden name, and sync it with the results."""
        name = name_batch_file("manifest", BatchAndEpoch(manifest.batch, self._epoch.number))
        record = ManifestRecord(manifest, self._spark_logs)
        self._hidden_manifest = self.folder.write_hidden(name, self._seal("manifest", manifest.batch, record))
        self._durability.sync_results(manifest.batch, self._hidden_manifest)

    def commit(self, manifest: Manifest) -> None:
        """Rename the manifest, by which the batch is committed."""
        assert self._hidden_manifest is not None, "a manifest is written before it is committed"
        name = name_batch_file("manifest", BatchAndEpoch(manifest.batch, self._epoch.number))
        self._epoch.check()
        try:
            self.folder.move(self._hidden_manifest, name)
        finally:
            # A newer driver may have deleted what is renamed here, and Spark must not commit after it began.
            self._epoch.check()
        self._durability.sync_commit(manifest.batch)
        self._vacuum.note_commit(manifest)
        self._last = manifest

    def _read_before(self, batch: int) -> Manifest:
        newest = max(self.batches("manifest"), default=-1)
        if newest > batch:
            raise damaged_state(
                f"Spark begins batch {batch}, and weir has finished batch {newest} in {self.folder.uri}: "
                "entries of Spark's logs are missing"
            )
        before = self.read_manifest(before=batch)
        if before.batch != batch - 1:
            name = f"{self.folder.uri}/manifests/{batch - 1}-*.json"
            raise damaged_state(f"{name} is missing, and batch {batch} starts from it")
        return before

    def _follow(self, placement: Placement) -> None:
        job = replace(self._job, spread=placement.spread, partitions=placement.partitions)
        if placement.is_shared:
            job = replace(job, partitions=None, key=None)
        if job != self._job:
            self._job, self._is_recorded = job, False

    def _read_history(self) -> list[dict[str, Any]]:
        """The lines that can be read: nothing depends on them, so damage is no reason to stop."""
        lines = (self.folder.read(_HISTORY) or b"").splitlines()
        return [entry for line in lines if (entry := _read_line(line)) is not None]

    def _seal(self, kind: str, batch: int, record: DecisionRecord | ManifestRecord) -> bytes:
        return seal_record(kind, self.id, batch, self._epoch.number, record)


def _read_line(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) and isinstance(entry.get("batch"), int) else None
