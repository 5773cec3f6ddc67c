"""Find the entries of Spark's logs that a power cut has torn, and those that may go with them.

    metadata                the id of Spark's query
    offsets/N               what batch N reads, written before it begins
    sources/I/K             the files of source I that its K-th entry brought; now and then K.compact has all
    commits/N               batch N is done

Spark does not sync its logs; `sync_batch` of batch N does, before anything of the batch is published. So if
an entry that came after the newest manifest is torn, or nothing was decided yet, its batch has published
nothing: all entries of that batch go, and Spark makes it anew. Hadoop keeps the checksums of each entry in a
hidden file beside it.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from weir.spark.filesystem import Folder

ENTRY = re.compile(r"(\d{1,18})(\.compact)?")
_CHECKSUMS = re.compile(r"\.(.*)\.crc")
# The name of an entry until it is whole, and that of its checksums.
_UNFINISHED = re.compile(r"\.(?:metadata|\d{1,18}(?:\.compact)?)\.[0-9a-f-]{36}\.tmp|\.\..*\.tmp\.crc")
_CHECKSUM_HEADER = struct.Struct(">4sI")  # a magic word, and the bytes that each checksum covers
_MAGIC = b"crc\0"


@dataclass(frozen=True)
class TornLogs:
    """The entries that have to go before Spark reads its logs; `is_begun` if all of a begun batch has to."""

    names: tuple[str, ...] = ()
    is_begun: bool = False


@dataclass(frozen=True)
class LogEntries:
    """The entries of Spark's logs with Hadoop's checksums of them; `folder` is the checkpointLocation."""

    folder: Folder

    def numbers(self, log: str) -> list[int]:
        """Return the numbers of a log's entries."""
        return sorted(int(match[1]) for name in self.folder.names(log) if (match := ENTRY.fullmatch(name)))

    def list_entries(self, log: str = "") -> list[str]:
        """Name the entries of a log, or the metadata beside the logs; also where only checksums are left."""
        stems = {_CHECKSUMS.sub(r"\1", name) for name in self.folder.names(log)}
        if not log:
            return [stem for stem in stems if stem == "metadata"]
        return sorted(f"{log}/{stem}" for stem in stems if ENTRY.fullmatch(stem))

    def list_inputs(self) -> list[str]:
        """Name all that says what batches read: metadata, offsets and the entries of sources."""
        logs = ["", "offsets", *self._list_sources()]
        return [name for log in logs for name in self.list_entries(log)]

    def list_unfinished(self) -> list[str]:
        """Name the files that Spark had begun to write when its process ended, or the room on the disk did.

        Spark does not read them, but refuses to begin its first batch while one is beside its offsets.
        """
        logs = ["", "offsets", "commits", *self._list_sources()]
        files = [
            (log, name) for log in logs for name in self.folder.names(log) if _UNFINISHED.fullmatch(name)
        ]
        return [f"{log}/{name}" if log else name for log, name in files]

    def list_new(self, last: int, needed: Mapping[str, int]) -> list[str]:
        """Name those of them that came after batch `last`, which needs the others."""
        newest = {"offsets": last}
        for name in needed:
            log = _log_of(name)
            newest[log] = max(newest.get(log, -1), _number(name))
        return [name for name in self.list_inputs() if _number(name) > newest.get(_log_of(name), -1)]

    def list_changed(self, begun: Mapping[str, int], needed: Mapping[str, int]) -> list[str]:
        """Name the entries of a batch that had begun, beyond those needed, that are not what they were."""
        return [name for name in begun if name not in needed and self._checksum(name) != begun[name]]

    def list_same(self, recorded: Mapping[str, int]) -> list[str]:
        """Name the entries that are what they were when their checksums were recorded."""
        return [name for name, checksum in recorded.items() if self._checksum(name) == checksum]

    def is_intact(self, name: str) -> bool:
        """True if an entry has what Hadoop's checksums say or, where these are lost, what Spark can read."""
        is_equal, data = self._compare(name), self.folder.read(name) or b""
        if is_equal is not None:
            return is_equal
        return _is_readable(data if name != "metadata" else b"v1\n" + data)  # it has no version

    def is_confirmed(self, name: str) -> bool:
        """True if an entry has what Hadoop's checksums say."""
        return self._compare(name) is True

    def is_refused(self, name: str) -> bool:
        """True if Spark would fail to read an entry: it is empty, or has not the checksums beside it.

        Hadoop passes over checksums without a whole header, and fails at those that end too early.
        """
        data, checksums = self.folder.read(name), self.folder.read(name_checksums(name)) or b""
        if not data:
            return data is not None
        return _has_header(checksums) and not compare_checksums(data, checksums)

    def list_wrong_checksums(self, names: Iterable[str]) -> list[str]:
        """Name Hadoop's checksums of whole entries, where Spark would refuse the entries because of them."""
        files = {name_checksums(name): name for name in names}
        return [
            file for file in files if self.folder.read(file) is not None and not self._compare(files[file])
        ]

    def remove(self, name: str) -> None:
        """Delete an entry, and before it its checksums, with which a new one would not agree."""
        self.folder.delete(name_checksums(name))
        self.folder.delete(name)

    def _list_sources(self) -> list[str]:
        return [f"sources/{source}" for source in self.folder.names("sources")]

    def _checksum(self, name: str) -> int | None:
        data = self.folder.read(name)
        return None if data is None else zlib.crc32(data)

    def _compare(self, name: str) -> bool | None:
        data = self.folder.read(name)
        if not data:
            return False
        return compare_checksums(data, self.folder.read(name_checksums(name)) or b"")


def find_torn(
    logs: LogEntries, last: int, needed: Mapping[str, int], begun: Mapping[str, int] | None
) -> TornLogs:
    """Find what a power cut has torn, after the newest manifest, of batch `last`.

    `needed` has the checksums of the entries on which this manifest rests, and `begun` those of the next
    batch, as its decision has them; None if nothing is decided.
    """
    changed = [] if begun is None else logs.list_changed(begun, needed)
    # Entries that the manifest proves to be whole need no checksums of Hadoop's.
    torn = logs.list_wrong_checksums(logs.list_same(needed))
    if max(logs.numbers("commits"), default=-1) > last or any(map(logs.is_confirmed, changed)):
        # No power cut does that: the start will say what is missing, or is another's.
        return TornLogs(tuple(torn))
    torn += find_torn_end(logs, "commits")
    new = [name for name in logs.list_new(last, needed) if name != "metadata" or not logs.is_intact(name)]
    # Before a batch publishes anything, it syncs the commit of the batch before it, too.
    is_whole = last < 0 or (last in logs.numbers("commits") and f"commits/{last}" not in torn)
    is_whole = is_whole and begun is not None and not changed
    is_begun = bool(new or begun) and not is_whole
    torn += new if is_begun else logs.list_wrong_checksums(new)
    return TornLogs(tuple(torn), is_begun)


def find_torn_end(logs: LogEntries, log: str) -> list[str]:
    """Name the newest entry of a log if it is torn, or its checksums if only these are."""
    newest = max(logs.numbers(log), default=-1)
    entries = [name for name in logs.list_entries(log) if _number(name) >= newest]
    torn = [name for name in entries if not logs.is_intact(name)]
    return torn + logs.list_wrong_checksums(name for name in entries if name not in torn)


def _log_of(name: str) -> str:
    return name.rpartition("/")[0]


def _number(name: str) -> int:
    match = ENTRY.fullmatch(name.rpartition("/")[2])
    return 0 if match is None else int(match[1])  # the metadata, of which there is one


def name_checksums(name: str) -> str:
    """Name the hidden file in which Hadoop keeps the checksums of a file.

    >>> name_checksums("sources/0/9.compact"), name_checksums("metadata")
    ('sources/0/.9.compact.crc', '.metadata.crc')
    """
    folder, slash, file = name.rpartition("/")
    return f"{folder}{slash}.{file}.crc"


def _has_header(checksums: bytes) -> bool:
    return len(checksums) >= _CHECKSUM_HEADER.size and checksums.startswith(_MAGIC)


def compare_checksums(data: bytes, checksums: bytes) -> bool | None:
    """True if data has these checksums of Hadoop's, False if it has not; None if they are torn themselves."""
    if not _has_header(checksums):
        return None
    _, size = _CHECKSUM_HEADER.unpack_from(checksums)
    count, rest = divmod(len(checksums) - _CHECKSUM_HEADER.size, 4)
    if not size or rest or count < -(-len(data) // size):
        return None
    return make_checksums(data, size) == checksums


def make_checksums(data: bytes, size: int = 512) -> bytes:
    """Return the checksums that Hadoop keeps of data, one for every `size` bytes."""
    starts = range(0, len(data), size)
    sums = (struct.pack(">I", zlib.crc32(data[start : start + size])) for start in starts)
    return _CHECKSUM_HEADER.pack(_MAGIC, size) + b"".join(sums)


def _is_readable(data: bytes) -> bool:
    """True if this can be an entry of Spark's: its version, then JSON, or - of a source without rows."""
    try:
        version, *lines = data.decode().splitlines()
        for line in lines:
            if line != "-":
                json.loads(line)
    except ValueError:
        return False
    return re.fullmatch(r"v\d+", version) is not None and bool(lines)
