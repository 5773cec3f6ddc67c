"""The checkpoint of a query, as readers see it.

    checkpointLocation/weir/
        epochs/E.json       a driver that started from here; the highest runs, others stop
        jobs/E.json         the query, what the state holds and where rows lie; a start is compared with it
        decisions/N-E.json  what batch N does, written before it begins, so that a repeat does the same
        manifests/N-E.json  the state after batch N; writing it commits the batch
        slices/*.arrow      rows; a slice file counts only while a retained manifest names it
        stats/*.json        what a partition counted in a stage of a second job; deleted after the batch
        quarantine/*.parquet  rows left out because an expression failed for them, for people
        history.jsonl       changes of plan and allowance, for people
        lock                on a local disk, locked by the driver whose query runs; says which one

Of files that differ in their epoch only, the highest counts: a driver of an older one may have written the
others late. JSON files are sealed with a checksum, and say what they are and of which query, batch, epoch and
format; that of a slice file is in the manifest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from weir.codec import from_json, to_json
from weir.kernel.decision import Decision
from weir.runtime.manifest import Manifest
from weir.spark.errors import DamagedStateError, damaged_state, lost_state
from weir.spark.filesystem import Folder
from weir.spark.job_description import VERSION, JobDescription, check_version
from weir.spark.sealed_json import seal, unseal
from weir.spark.state_names import (
    BatchAndEpoch,
    BatchFileKind,
    name_batch_file,
    name_job,
    parse_batch_file,
    parse_job,
    parse_slice,
)

T = TypeVar("T")
SparkLogSums = Mapping[str, int]  # the checksum of each entry of Spark's logs that a batch builds on, by path


@dataclass(frozen=True)
class DecisionRecord:
    """The decision for a batch, the attempt number, and the entries of Spark's logs that it was made on."""

    decision: Decision
    attempt: int
    spark_logs: SparkLogSums


@dataclass(frozen=True)
class ManifestRecord:
    """The state after a batch, and the entries of Spark's logs on which it was built."""

    manifest: Manifest
    spark_logs: SparkLogSums


class Checkpoint:
    """Reads and writes the JSON files of a checkpoint; `folder` is weir's own folder there."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._known_id: str | None = None

    @property
    def id(self) -> str | None:
        """The id of the query; None if no job is recorded."""
        if self._known_id is None:
            epoch = self._newest_job()
            if epoch is not None:
                self._known_id = self._read_job_file(epoch).id
        return self._known_id

    def read_job(self) -> JobDescription | None:
        """Return the job of the last batch that has begun; before any, that of the first start."""
        epoch = self._newest_job()
        if epoch is None:
            return None
        job = self._read_job_file(epoch)
        if job.earlier is not None and max(self.batches("decision"), default=-1) < job.since:
            return job.earlier
        return job

    def read_manifest(self, before: int | None = None) -> Manifest:
        """Return the newest manifest, or the newest before a batch; an empty one if there is none."""
        record = self.manifest_record(before)
        return Manifest() if record is None else record.manifest

    def manifest_record(self, before: int | None = None) -> ManifestRecord | None:
        """Return what is recorded with the newest manifest, or the newest before a batch."""
        files = [file for file in self.files("manifest") if before is None or file.batch < before]
        if not files:
            return None
        name = name_batch_file("manifest", files[-1])
        record = self._read_batch_file("manifest", files[-1], ManifestRecord)
        if record.manifest.batch != files[-1].batch:
            raise self._damaged(name, f"holds the state after batch {record.manifest.batch}")
        for slice_name in record.manifest.files:
            if parse_slice(slice_name) is None:
                raise self._damaged(name, f"names '{slice_name}', which is not the name of a slice file")
        return record

    def decision(self, batch: int) -> tuple[Decision, int] | None:
        """Return what was decided for a batch and the number of its last attempt; None if nothing was."""
        record = self.decision_record(batch)
        return None if record is None else (record.decision, record.attempt)

    def decision_record(self, batch: int) -> DecisionRecord | None:
        """Return what is recorded with the decision for a batch."""
        files = [file for file in self.files("decision") if file.batch == batch]
        return self.read_decision(files[-1]) if files else None

    def read_decision(self, file: BatchAndEpoch) -> DecisionRecord:
        """Return what is recorded with the decision that an epoch made for a batch."""
        return self._read_batch_file("decision", file, DecisionRecord)

    def batches(self, kind: BatchFileKind) -> list[int]:
        """Return the numbers of the batches of which there are decisions or manifests."""
        return sorted({file.batch for file in self.files(kind)})

    def files(self, kind: BatchFileKind) -> list[BatchAndEpoch]:
        """Return the batch and epoch of every decision or manifest, in this order."""
        files = map(parse_batch_file, self.folder.names(f"{kind}s"))
        return sorted(file for file in files if file is not None)

    def _newest_job(self) -> int | None:
        epochs = [epoch for epoch in map(parse_job, self.folder.names("jobs")) if epoch is not None]
        if not epochs and (older := self.folder.read("job.json")) is not None:
            check_version(unseal(older) or {}, self.folder.uri)
        return max(epochs, default=None)

    def _read_job_file(self, epoch: int) -> JobDescription:
        name = name_job(epoch)
        body = self._read(name)
        check_version(body, self.folder.uri)
        self._check_seal(name, body, {"kind": "job", "epoch": epoch})
        job = self._parse(JobDescription, body, name)
        if job.id != body["id"]:
            raise self._damaged(name, "is damaged")
        return job

    def _read_batch_file(self, kind: BatchFileKind, file: BatchAndEpoch, record: type[T]) -> T:
        name = name_batch_file(kind, file)
        body = self._read(name)
        if body.get("version") != VERSION:
            versions = f"format {body.get('version')}, and this one reads {VERSION}"
            raise self._damaged(name, f"was written by another version of weir ({versions})")
        self._check_seal(name, body, {"kind": kind, "id": self.id, "batch": file.batch, "epoch": file.epoch})
        return self._parse(record, body, name)

    def _read(self, name: str) -> dict[str, Any]:
        body = unseal(self.folder.read(name) or b"")
        if body is None:
            raise self._damaged(name, "is damaged")
        return body

    def _check_seal(self, name: str, body: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
        """Refuse a file that is whole but is not what its name says."""
        for key, value in expected.items():
            if value is not None and body.get(key) != value:
                what = {"kind": "is another kind of file", "id": "belongs to another query"}
                wrong = what.get(key, f"belongs to another {key}")
                raise self._damaged(name, f"{wrong}: {body.get(key)} instead of {value}")

    def _parse(self, kind: type[T], body: Mapping[str, Any], name: str) -> T:
        try:
            return from_json(kind, body["content"])
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise self._damaged(name, f"was written by another version of weir: {error}") from error

    def _damaged(self, name: str, how: str) -> DamagedStateError:
        refuse = lost_state if name.startswith("jobs/") else damaged_state
        return refuse(f"{self.folder.uri}/{name} {how}")


def seal_record(kind: str, query_id: str, batch: int | None, epoch: int, record: Any) -> bytes:
    """Return the bytes of a sealed file that holds a record and says what it is."""
    about = {"kind": kind, "id": query_id, "batch": batch, "epoch": epoch, "version": VERSION}
    return seal({**about, "content": to_json(record)})
