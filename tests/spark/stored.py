"""Checkpoints and results as batches leave them, written without Spark."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

import weir
from weir.kernel.decision import Decision
from weir.options import JoinOptions
from weir.runtime.manifest import Manifest
from weir.runtime.partition_batch import PartitionState, SliceEntry
from weir.spark.checkpoint import Checkpoint, DecisionRecord, ManifestRecord, seal_record
from weir.spark.epoch import take_epoch
from weir.spark.filesystem import LocalFolder
from weir.spark.job_description import FileTarget, JobDescription, describe_job
from weir.spark.result_names import ResultNames
from weir.spark.routing import Routing
from weir.spark.sealed_json import seal
from weir.spark.spark_logs import SparkLogs
from weir.spark.state_names import BatchAndEpoch, name_batch_file, name_job, name_slice
from weir.spark.state_repair import StoredState
from weir.spark.torn_logs import make_checksums, name_checksums

ID = "0123456789ab"
NAMES = ResultNames(ID)
_TABLE = pa.table({"ts": pa.array([], pa.timestamp("us", "UTC")), "k": pa.array([], pa.int64())})


def open_local(path: Path) -> LocalFolder:
    return LocalFolder(f"file:{path}", str(path))


def make_job(on: str = "a.k = b.k", late: str = "1 second") -> JobDescription:
    """The job of a join of two streams."""
    join = weir.join(a=_TABLE, b=_TABLE, on=on, within="8 seconds", time="ts", late=late)
    columns: dict[str, dict[str, str]] = {"a": {}, "b": {}}
    return describe_job(ID, join.query, JoinOptions(on=on), columns, join.planned.plan, Routing(1))


@dataclass(frozen=True)
class Stored:
    """A checkpoint in `ckpt` and results in `out`, of one partition and one epoch, below a folder."""

    root: Path

    @property
    def location(self) -> LocalFolder:
        return open_local(self.root / "ckpt")

    @property
    def weir(self) -> LocalFolder:
        return open_local(self.root / "ckpt/weir")

    @property
    def output(self) -> LocalFolder:
        return open_local(self.root / "out")

    @property
    def state(self) -> StoredState:
        """What a repair sees."""
        return StoredState(self.location, Checkpoint(self.weir), self.output)

    def start(self) -> None:
        """Start a query for the first time."""
        take_epoch(self.weir, ID)
        target = FileTarget("parquet", self.output.uri, None, {}, {}, ())
        job = replace(make_job(), target=target)
        self.weir.write(name_job(1), seal_record("job", ID, None, 1, job))
        owner = {"kind": "owner", "id": ID, "version": 1, "checkpoint": self.location.uri}
        self.output.write(f"_weir/{ID}", seal(owner))
        self.log("metadata", '{"id":"6e1c"}')

    def log(self, name: str, text: str) -> None:
        """Write an entry of one of Spark's logs."""
        self.location.write(name, text.encode())
        self.location.write(name_checksums(name), make_checksums(text.encode()))

    def plan(self, batch: int) -> None:
        """Let Spark say what a batch reads."""
        self.log(f"offsets/{batch}", f'v1\n{{"batchTimestampMs":{batch}}}\n{{"logOffset":{batch}}}\n-')
        self.log(f"sources/0/{batch}", f'v1\n{{"path":"a/{batch}"}}')

    def decide(self, batch: int, epoch: int = 1) -> None:
        job = make_job()
        record = DecisionRecord(Decision(job.plan, ("a", "b")), 1, SparkLogs(self.location).read(batch))
        name = name_batch_file("decision", BatchAndEpoch(batch, epoch))
        self.weir.write(name, seal_record("decision", ID, batch, epoch, record))

    def publish(self, batch: int) -> Path:
        """Write a result file of a batch, and name it in the log of results."""
        name = NAMES.publish(batch, 0, "parquet")
        self.output.write(name, b"results")
        entry, text = f"_spark_metadata/{batch}", json.dumps({"path": f"{self.output.uri}/{name}"})
        self.output.write(entry, f"v1\n{text}".encode())
        self.output.write(name_checksums(entry), make_checksums(f"v1\n{text}".encode()))
        return self.root / "out" / name

    def commit(self, batch: int) -> None:
        """Write the manifest of a batch, with a slice."""
        name = name_slice(BatchAndEpoch(batch, 1), partition=0, number=0)
        self.weir.write(f"slices/{name}", b"rows")
        entry = SliceEntry("a", name, 0, batch, 0, 1, 8, {}, "a@time", None, "None", zlib.crc32(b"rows"))
        manifest = Manifest(batch=batch, parts={0: PartitionState((entry,))})
        record = ManifestRecord(manifest, SparkLogs(self.location).read(batch))
        file = name_batch_file("manifest", BatchAndEpoch(batch, 1))
        self.weir.write(file, seal_record("manifest", ID, batch, 1, record))

    def finish(self, batch: int) -> None:
        """Let Spark commit a batch."""
        self.log(f"commits/{batch}", 'v1\n{"nextBatchWatermarkMs":0}')

    def run(self, batches: int) -> None:
        """Start, and run so many batches to their ends."""
        self.start()
        for batch in range(batches):
            for step in (self.plan, self.decide, self.publish, self.commit, self.finish):
                step(batch)
