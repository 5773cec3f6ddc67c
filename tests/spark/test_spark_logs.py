"""Which entries of Spark's logs a batch is tied to, and what becomes of the tie; without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from weir.spark.errors import DamagedStateError
from weir.spark.filesystem import LocalFolder
from weir.spark.spark_logs import SparkLogs


@pytest.fixture
def folder(tmp_path: Path) -> LocalFolder:
    """A checkpoint of two sources, one of which has put earlier entries together, at batch 12."""
    folder = LocalFolder(f"file:{tmp_path}", str(tmp_path))
    names = ["metadata", "offsets/11", "offsets/12", "commits/11", "sources/1/0", "sources/1/.0.crc"]
    names += [f"sources/0/{entry}" for entry in (7, 8, "9.compact", 10, 11)]
    for name in names:
        folder.write(name, name.encode())
    return folder


TIED = ["metadata", "offsets/11", "offsets/12"]
TIED += ["sources/0/10", "sources/0/11", "sources/0/9.compact", "sources/1/0"]


def test_a_batch_is_tied_to_what_restarts_read(folder: LocalFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    logs, read, reads = SparkLogs(folder), LocalFolder.read, list[str]()

    def count(self: LocalFolder, name: str) -> bytes | None:
        reads.append(name)
        return read(self, name)

    monkeypatch.setattr(LocalFolder, "read", count)
    assert logs.committed == 11
    assert sorted(logs.read(12)) == sorted(reads) == TIED
    folder.write("offsets/13", b"13")
    folder.write("sources/0/12", b"12")
    reads.clear()
    assert set(logs.read(13)) == {*TIED, "offsets/13", "sources/0/12"} - {"offsets/11"}
    assert sorted(reads) == ["offsets/13", "sources/0/12"], "what is never rewritten is read once"


def test_a_start_misses_what_spark_would_read(folder: LocalFolder) -> None:
    logs = SparkLogs(folder)
    recorded = logs.read(12)
    folder.delete("sources/0/10")
    with pytest.raises(DamagedStateError, match="sources/0/10 is missing, an entry of Spark's log"):
        logs.check(recorded, 12)
    folder.write("sources/0/19.compact", b"holds them too")
    logs.check(recorded, 12)
    for name in ("metadata", "offsets/11", "offsets/12", "sources/1/0"):
        kept = folder.read(name)
        assert kept is not None
        folder.delete(name)
        with pytest.raises(DamagedStateError, match=f"{name} is missing"):
            logs.check(recorded, 12)
        folder.write(name, b"another")
        with pytest.raises(DamagedStateError, match=f"{name} is not the entry of Spark's log that batch 12"):
            logs.check(recorded, 12)
        folder.write(name, kept)
    logs.check(recorded, 12)


def test_a_repeat_needs_the_same_entries(folder: LocalFolder) -> None:
    recorded = SparkLogs(folder).read(12)
    logs = SparkLogs(folder)
    logs.compare(recorded, logs.read(12), 12)
    folder.write("offsets/12", b"others")
    logs = SparkLogs(folder)
    with pytest.raises(DamagedStateError, match="offsets/12 is not the entry of Spark's log that batch 12"):
        logs.compare(recorded, logs.read(12), 12)
    folder.delete("offsets/12")
    logs = SparkLogs(folder)
    with pytest.raises(DamagedStateError, match="offsets/12 is missing"):
        logs.compare(recorded, logs.read(12), 12)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"name": 1}', b"\xff\xfe"])
def test_damaged_metadata_is_refused(data: bytes, folder: LocalFolder) -> None:
    folder.write("metadata", data)
    damage = "metadata, where Spark keeps its query's id, is damaged"
    with pytest.raises(DamagedStateError, match=f"{damage}; .* weir state repair"):
        SparkLogs(folder).check_metadata({}, -1)
    # A manifest needs it, so there is no batch to go back to.
    with pytest.raises(DamagedStateError, match=f"{damage}; restore it, or start with a new"):
        SparkLogs(folder).check_metadata({"metadata": 1}, 0)
