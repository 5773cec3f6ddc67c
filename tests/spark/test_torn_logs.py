"""Whatever a power cut leaves of Spark's newest log entries, what is torn goes, and nothing else."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pytest

from weir.spark.torn_logs import LogEntries, TornLogs, compare_checksums, find_torn, name_checksums

OFFSETS = 'v1\n{"batchTimestampMs":%d}\n{"logOffset":%d}\n{"logOffset":%d}'
# After batch 1, which has a manifest.
SETTLED = {
    "metadata": '{"id":"6e1c"}',
    "offsets/0": OFFSETS % (7, 0, 0),
    "offsets/1": OFFSETS % (8, 1, 1),
    "commits/0": 'v1\n{"nextBatchWatermarkMs":0}',
    "sources/0/0": 'v1\n{"path":"a/0"}',
    "sources/0/1": 'v1\n{"path":"a/1"}',
    "sources/1/0": 'v1\n{"path":"b/0"}',  # nobody reads it any more
    "sources/1/1.compact": 'v1\n{"path":"b/0"}\n{"path":"b/1"}',
}
# Written since, and not synced: Spark's commit of batch 1, and what batch 2 reads.
UNSYNCED = {
    "commits/1": 'v1\n{"nextBatchWatermarkMs":0}',
    "offsets/2": OFFSETS % (9, 2, 2),
    "sources/0/2": 'v1\n{"path":"a/2"}\n{"path":"a/3"}',
}
UNREAD = ("offsets/0", "commits/0", "sources/1/0")
NEEDED = {name: zlib.crc32(text.encode()) for name, text in SETTLED.items() if name not in UNREAD}
BEGUN = NEEDED | {name: zlib.crc32(UNSYNCED[name].encode()) for name in ("offsets/2", "sources/0/2")}
# How a cut may leave a file.
TEARS = ("whole", "empty", "half", "gone")
TEARS_OF_CHECKSUMS = ("whole", "half", "gone")


@dataclass
class MemoryFolder:
    """A folder that is a dict."""

    files: dict[str, bytes] = field(default_factory=dict)
    uri: str = "memory:"

    def read(self, name: str) -> bytes | None:
        return self.files.get(name)

    def names(self, below: str = "") -> list[str]:
        start = f"{below}/" if below else ""
        return sorted({name[len(start) :].split("/")[0] for name in self.files if name.startswith(start)})

    def delete(self, name: str) -> None:
        self.files.pop(name, None)


def hadoop_checksums(data: bytes) -> bytes:
    chunks = [data[start : start + 512] for start in range(0, len(data), 512)]
    return b"crc\0" + struct.pack(f">I{len(chunks)}I", 512, *map(zlib.crc32, chunks))


def written(entries: dict[str, str]) -> dict[str, bytes]:
    files = {name: text.encode() for name, text in entries.items()}
    return files | {name_checksums(name): hadoop_checksums(data) for name, data in files.items()}


def tear(files: dict[str, bytes], name: str, how: str) -> None:
    data = files.pop(name)
    if how != "gone":
        files[name] = {"whole": data, "empty": b"", "half": data[: len(data) // 2]}[how]


def cuts() -> Iterator[dict[str, bytes]]:
    """Every state that a cut may leave: each unsynced file by itself is whole, torn or gone."""
    whole = written(SETTLED | UNSYNCED)
    choices = [(name, TEARS) for name in UNSYNCED]
    choices += [(name_checksums(name), TEARS_OF_CHECKSUMS) for name in UNSYNCED]
    for tears in product(*(tears for _, tears in choices)):
        files = dict(whole)
        for (name, _), how in zip(choices, tears, strict=True):
            tear(files, name, how)
        yield files


@pytest.mark.parametrize("begun", [None, BEGUN], ids=["undecided", "decided"])
def test_whatever_a_cut_leaves_nothing_torn_stays_and_nothing_settled_goes(begun: Any) -> None:
    settled, whole = written(SETTLED), written(SETTLED | UNSYNCED)
    batch_2, kept, dropped = ("offsets/2", "sources/0/2"), 0, 0
    for files in cuts():
        folder = MemoryFolder(dict(files))
        logs: Any = LogEntries(folder)  # type: ignore[arg-type] # all of a folder that it needs
        torn = find_torn(logs, 1, NEEDED, begun)
        for name in torn.names:
            logs.remove(name)
        left = folder.files
        assert all(left[name] == whole[name] for name in left), "something torn stays"
        assert settled.items() <= left.items(), "something goes that a manifest rests on"
        # Without a decision nothing was published, so nothing of the batch has to stay.
        is_whole = begun is not None and "commits/1" in left
        is_whole = is_whole and all(files.get(name) == whole[name] for name in batch_2)
        leftover = [name for name in files if name not in settled and "commits/" not in name]
        has_begun = begun is not None or bool(leftover)
        assert torn.is_begun == (has_begun and not is_whole)
        assert [name in left for name in batch_2] == [is_whole] * 2
        kept, dropped = kept + is_whole, dropped + torn.is_begun
    assert dropped > 1000 and (begun is None or kept > 10)


def test_entries_of_another_batch_are_no_work_of_a_power_cut() -> None:
    files = written(SETTLED | UNSYNCED | {"offsets/2": SETTLED["offsets/1"]})
    logs: Any = LogEntries(MemoryFolder(files))  # type: ignore[arg-type]
    assert find_torn(logs, 1, NEEDED, BEGUN) == TornLogs()


def test_wrong_checksums_of_an_entry_that_a_manifest_proves_whole_go() -> None:
    files = written(SETTLED | UNSYNCED)
    files["sources/0/.0.crc"] = files["sources/0/.1.crc"]
    logs: Any = LogEntries(MemoryFolder(files))  # type: ignore[arg-type]
    assert find_torn(logs, 1, NEEDED, BEGUN) == TornLogs(("sources/0/.0.crc",))
    files["sources/0/0"] = files["sources/0/1"]
    assert find_torn(logs, 1, NEEDED, BEGUN) == TornLogs(), "an entry that is another one is damage"


def test_a_first_batch_that_is_torn_goes_with_its_metadata() -> None:
    files = written({"metadata": SETTLED["metadata"], "offsets/0": SETTLED["offsets/0"]})
    tear(files, "metadata", "empty")
    logs: Any = LogEntries(MemoryFolder(files))  # type: ignore[arg-type]
    torn = find_torn(logs, -1, {}, None)
    assert torn.is_begun and set(torn.names) == {"metadata", "offsets/0"}


def test_a_query_without_a_batch_keeps_its_id() -> None:
    files = written({"metadata": SETTLED["metadata"]})
    logs: Any = LogEntries(MemoryFolder(files))  # type: ignore[arg-type]
    assert find_torn(logs, -1, {}, None) == TornLogs()
    del files[".metadata.crc"]
    assert find_torn(logs, -1, {}, None) == TornLogs()


def test_entries_that_no_manifest_explains_are_left_alone() -> None:
    files = written(SETTLED | UNSYNCED)
    tear(files, "offsets/2", "empty")
    logs: Any = LogEntries(MemoryFolder(files))  # type: ignore[arg-type]
    assert not find_torn(logs, 0, {}, None).names


def test_offsets_of_a_source_without_rows_can_be_read() -> None:
    files = {"offsets/2": b'v1\n{"batchTimestampMs":9}\n{"logOffset":2}\n-'}
    logs: Any = LogEntries(MemoryFolder(files))  # type: ignore[arg-type]
    assert logs.is_intact("offsets/2")


@pytest.mark.parametrize("size", [1, 511, 512, 513, 1500])
def test_checksums_are_compared_as_hadoop_makes_them(size: int) -> None:
    data = bytes(range(256)) * 6
    data = data[:size]
    checksums = hadoop_checksums(data)
    assert compare_checksums(data, checksums) is True
    assert compare_checksums(data[:-1] + b"?", checksums) is False
    assert compare_checksums(data + b"more" * 200, checksums) is None
    assert not compare_checksums(data[: size // 2], checksums) or size == 1
    assert compare_checksums(data, checksums[:-2]) is None
    assert compare_checksums(data, b"") is None


@pytest.mark.parametrize(
    ("checksums", "is_refused"),
    [(b"", False), (b"crc\0", False), (b"wrong headers", False), (8, True), (10, True), (12, False)],
)
def test_checksums_that_end_too_early_are_refused_where_hadoop_fails(
    checksums: Any, is_refused: bool
) -> None:
    files = written({"metadata": SETTLED["metadata"]})
    whole = files[".metadata.crc"]
    files[".metadata.crc"] = whole[:checksums] if isinstance(checksums, int) else checksums
    logs: Any = LogEntries(MemoryFolder(files))  # type: ignore[arg-type]
    assert len(whole) == 12 and logs.is_refused("metadata") == is_refused


def test_files_that_spark_has_not_finished() -> None:
    unfinished = ".7.7937f01a-11df-4f9a-8755-0ac2996bd59e.tmp"
    left = [
        f".metadata{unfinished[2:]}",
        f"offsets/{unfinished}",
        f"offsets/.{unfinished}.crc",
        f"commits/{unfinished}",
        f"sources/1/.9.compact{unfinished[2:]}",
    ]
    others = [*SETTLED, "offsets/.0.crc", "weir/jobs/1.json.a517724b.tmp", "weir/lock"]
    logs = LogEntries(MemoryFolder(dict.fromkeys(left + others, b"")))
    assert sorted(logs.list_unfinished()) == sorted(left)
