"""The checkpoint of a query, and the log that its batches keep there.

    checkpointLocation/weir/
        job.json          the query, what the state holds and where rows lie; a start is compared with it
        decisions/N.json  what batch N does, written before it begins, so that a repeat does the same
        manifests/N.json  the state after batch N; writing it commits the batch
        slices/*.arrow    rows; a slice file counts only while a retained manifest names it
        stats/N-P-S.json  what partition P counted in stage S of a second job; deleted after the batch
        quarantine/*.parquet  rows left out because an expression failed for them, for people
        history.jsonl     changes of plan and allowance, for people
        lock              on a local disk, locked by the driver whose query runs; says which one

Job, decisions and manifests carry a checksum; that of a slice file is in the manifest.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from weir.codec import from_json, to_json
from weir.kernel.decision import Decision
from weir.partition.placement import Placement
from weir.runtime.decide import BatchLog
from weir.runtime.manifest import Manifest
from weir.spark.errors import damaged_state
from weir.spark.filesystem import Folder
from weir.spark.job_description import JobDescription, check_version

# Files that failed attempts left behind, in the checkpoint and the sink, are deleted once in so many batches.
CLEAN_UP_EVERY = 50
_HISTORY = "history.jsonl"
_MAX_HISTORY_LINES = 1000
T = TypeVar("T")


class Checkpoint:
    """Reads the JSON files of a checkpoint."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder

    def read_job(self) -> JobDescription | None:
        """Return the job of the last batch that has begun; before any, that of the first start."""
        body = self._read("job.json")
        if body is None:
            return None
        check_version(body, self.folder.uri)
        job = self._parse(JobDescription, body, "job.json")
        if job.earlier is not None and max(self.batches("decisions"), default=-1) < job.since:
            return job.earlier
        return job

    def write_job(self, job: JobDescription) -> None:
        """Record a job."""
        self._write("job.json", to_json(job))

    def read_manifest(self, before: int | None = None) -> Manifest:
        """Return the newest manifest, or the newest before a batch; an empty one if there is none."""
        batches = [batch for batch in self.batches("manifests") if before is None or batch < before]
        name = f"manifests/{max(batches, default=-1)}.json"
        body = self._read(name) if batches else None
        return Manifest() if body is None else self._parse(Manifest, body, name)

    def decision(self, batch: int) -> tuple[Decision, int] | None:
        """Return what was decided for a batch and the number of its last attempt; None if nothing was."""
        name = f"decisions/{batch}.json"
        body = self._read(name)
        return None if body is None else (self._parse(Decision, body["decision"], name), body["attempt"])

    def batches(self, kind: str) -> list[int]:
        """Return the numbers of the batches of which there are files: "decisions" or "manifests"."""
        names = [name.removesuffix(".json") for name in self.folder.names(kind) if name.endswith(".json")]
        return sorted(int(name) for name in names if name.isdigit())

    def _read(self, name: str) -> dict[str, Any] | None:
        data = self.folder.read(name)
        if data is None:
            return None
        try:
            sealed = json.loads(data)
            body: dict[str, Any] = json.loads(sealed["body"])
            is_intact = zlib.crc32(sealed["body"].encode()) == sealed["checksum"]
        except (ValueError, KeyError, TypeError):
            is_intact = False
        if not is_intact:
            raise damaged_state(f"{self.folder.uri}/{name} is damaged")
        return body

    def _parse(self, kind: type[T], body: Mapping[str, Any], name: str) -> T:
        try:
            return from_json(kind, body)
        except (ValueError, KeyError) as error:
            path = f"{self.folder.uri}/{name}"
            raise damaged_state(f"{path} was written by another version of weir: {error}") from error

    def _write(self, name: str, body: dict[str, Any]) -> None:
        text = json.dumps(body)
        sealed = {"checksum": zlib.crc32(text.encode()), "body": text}
        self.folder.write(name, json.dumps(sealed).encode())


class CheckpointLog(Checkpoint, BatchLog):
    """The log of a running query: keeps the last manifest in memory, and deletes what is no longer needed.

    Slice files live as long as a manifest of the last `batches_to_retain` batches names them. Manifests from
    before the job's first batch are adapted to its query.
    """

    def __init__(
        self,
        folder: Folder,
        batches_to_retain: int,
        job: JobDescription,
        adapt: Callable[[Manifest], Manifest],
    ) -> None:
        super().__init__(folder)
        self._retain, self._job, self._adapt = batches_to_retain, job, adapt
        self._is_recorded = False
        self._history: list[dict[str, Any]] | None = None
        self._last: Manifest | None = None
        self._files_named: dict[int, frozenset[str]] = {}

    def begin(self, batch: int) -> Manifest:
        """Return the manifest that a batch starts from, and delete what no retained manifest names."""
        before = self._last
        if before is None or before.batch != batch - 1:
            before = self.read_manifest(before=batch)
        if before.batch != batch - 1:
            name = f"{self.folder.uri}/manifests/{batch - 1}.json"
            raise damaged_state(f"{name} is missing, and batch {batch} starts from it")
        self._vacuum(before, batch)
        return self._adapt(before) if self._job.drops_joins and before.batch < self._job.since else before

    def record(self, batch: int, decision: Decision, attempt: int) -> None:
        """Record what a batch will do; before it, record the job if it is new or divides rows differently."""
        if decision.placement is not None:
            self._follow(decision.placement)
        if not self._is_recorded:
            self.write_job(self._job)
            self._is_recorded = True
        self._write(f"decisions/{batch}.json", {"decision": to_json(decision), "attempt": attempt})

    def _follow(self, placement: Placement) -> None:
        job = replace(self._job, spread=placement.spread, partitions=placement.partitions)
        if placement.is_shared:
            job = replace(job, partitions=None, key=None)
        if job != self._job:
            self._job, self._is_recorded = job, False

    def record_history(self, batch: int, line: dict[str, Any]) -> None:
        """Add a line about a change of plan or allowance, in place of that of an earlier attempt."""
        lines = self._read_history() if self._history is None else self._history
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        earlier = [entry for entry in lines if entry["batch"] < batch]
        self._history = [*earlier, {"batch": batch, "time": time, **line}][-_MAX_HISTORY_LINES:]
        text = "".join(f"{json.dumps(entry, ensure_ascii=False)}\n" for entry in self._history)
        self.folder.write(_HISTORY, text.encode())

    def commit(self, manifest: Manifest) -> None:
        """Write the manifest after a batch."""
        self._write(f"manifests/{manifest.batch}.json", to_json(manifest))
        self._files_named[manifest.batch] = manifest.files
        self._last = manifest

    def _read_history(self) -> list[dict[str, Any]]:
        try:
            return [json.loads(line) for line in (self.folder.read(_HISTORY) or b"").decode().splitlines()]
        except ValueError:
            return []  # nothing depends on it, so damage is no reason to stop

    def _vacuum(self, before: Manifest, batch: int) -> None:
        """Delete slices, manifests and decisions that only batches older than the retained ones needed."""
        first = before.batch - self._retain + 1
        if not self._files_named:
            self._vacuum_after_start(before, first)
        outdated = [number for number in self._files_named if number < first]
        candidates = frozenset().union(*(self._files_named.pop(number) for number in outdated))
        for name in candidates - frozenset().union(*self._files_named.values()):
            self.folder.delete(f"slices/{name}")
        if outdated or batch % CLEAN_UP_EVERY == 0:
            for kind in ("decisions", "manifests"):
                for number in self.batches(kind):
                    if number < first:
                        self.folder.delete(f"{kind}/{number}.json")

    def _vacuum_after_start(self, newest: Manifest, first: int) -> None:
        """Delete slices that no retained manifest names, and files that a killed driver was writing."""
        self._files_named[newest.batch] = newest.files
        manifest = newest
        while manifest.batch >= max(first, 0):
            self._files_named[manifest.batch] = manifest.files
            manifest = self.read_manifest(before=manifest.batch)
        named = frozenset().union(*self._files_named.values())
        outdated = [f"slices/{name}" for name in self.folder.names("slices") if name not in named]
        for kind in ("decisions", "manifests"):
            names = self.folder.names(kind)
            outdated += [f"{kind}/{name}" for name in names if not name.endswith((".json", ".crc"))]
        for name in outdated:
            self.folder.delete(name)
