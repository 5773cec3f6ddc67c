"""Spark's own logs in the checkpoint: what a batch of weir builds on, and whether it is still there.

    checkpointLocation/
        metadata        the id of Spark's query
        offsets/N       what batch N reads
        sources/S/*     what source S had seen; a restart reads from the newest .compact entry on
        commits/N       batch N is done

Weir's state is that of batch N only together with these. Spark goes on without a word where entries of
`sources` are damaged, or where all are gone, and reads rows twice or never. So every decision and manifest
holds the checksums of the entries that it was built on; none of these is ever rewritten.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping

from weir.spark.errors import DamagedStateError, damaged_state, lost_state
from weir.spark.filesystem import Folder
from weir.spark.torn_logs import ENTRY, LogEntries


class SparkLogs:
    """Spark's logs in a checkpoint; `folder` is the checkpointLocation."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._known: dict[str, int] = {}

    @property
    def committed(self) -> int:
        """The last batch that Spark has committed; -1 if there is none."""
        return max(LogEntries(self.folder).numbers("commits"), default=-1)

    def read(self, batch: int) -> dict[str, int]:
        """Return the checksums of the entries that a batch builds on; each is read once."""
        # A restart reads the offsets of the batch before, too.
        paths = ["metadata", f"offsets/{batch - 1}", f"offsets/{batch}"]
        for source in self.folder.names("sources"):
            names = select_current(self.folder.names(f"sources/{source}"))
            paths += [f"sources/{source}/{name}" for name in names]
        sums = {path: self._known[path] if path in self._known else self._read_sum(path) for path in paths}
        self._known = {path: known for path, known in sums.items() if known is not None}
        return self._known

    def compare(self, recorded: Mapping[str, int], present: Mapping[str, int], batch: int) -> None:
        """Refuse to repeat a batch if an entry is not the one that its decision was made on."""
        for path, checksum in recorded.items():
            if path in present and present[path] != checksum:
                raise self._differs(path, batch)
        if f"offsets/{batch}" not in present:
            raise self._is_missing(f"offsets/{batch}", batch)

    def check(self, recorded: Mapping[str, int], batch: int) -> None:
        """Refuse to start if the entries that a batch was built on are not there, or not the same."""
        for path, checksum in recorded.items():
            present = self._read_sum(path)
            if present is not None and present != checksum:
                raise self._differs(path, batch)
            if present is None and not self._is_compacted(path):
                raise self._is_missing(path, batch)

    def check_metadata(self, recorded: Mapping[str, int], batch: int) -> None:
        """Refuse a `metadata` at which Spark would fail with a page of Java, or that is not a manifest's.

        All manifests rest on it, so without it there is no batch to go back to.
        """
        data, refuse = self.folder.read("metadata"), lost_state if recorded else damaged_state
        if data is not None and not _has_id(data):
            raise refuse(f"{self.folder.uri}/metadata, where Spark keeps its query's id, is damaged")
        try:
            self.check({path: known for path, known in recorded.items() if path == "metadata"}, batch)
        except DamagedStateError as error:
            raise refuse(error.damage) from None

    def _read_sum(self, path: str) -> int | None:
        data = self.folder.read(path)
        return None if data is None else zlib.crc32(data)

    def _is_compacted(self, path: str) -> bool:
        """True if a later entry of a source holds what this one held."""
        below, _, name = path.rpartition("/")
        entries = filter(None, map(ENTRY.fullmatch, self.folder.names(below)))
        return below.startswith("sources/") and any(
            entry[2] and int(entry[1]) >= _number(name) for entry in entries
        )

    def _differs(self, path: str, batch: int) -> DamagedStateError:
        where = f"{self.folder.uri}/{path}"
        return damaged_state(f"{where} is not the entry of Spark's log that batch {batch} was built on")

    def _is_missing(self, path: str, batch: int) -> DamagedStateError:
        where = f"{self.folder.uri}/{path}"
        return damaged_state(f"{where} is missing, an entry of Spark's log that batch {batch} was built on")


def _has_id(metadata: bytes) -> bool:
    try:
        return isinstance(json.loads(metadata)["id"], str)
    except (ValueError, KeyError, TypeError):
        return False


def _number(name: str) -> int:
    match = ENTRY.fullmatch(name)
    return -1 if match is None else int(match[1])


def select_current(names: Iterable[str]) -> list[str]:
    """Select the entries of a log from its newest compact one on, which holds all that came before it.

    >>> select_current(["8", "9.compact", "10", ".10.crc"])
    ['9.compact', '10']
    """
    entries = [match for match in map(ENTRY.fullmatch, names) if match is not None]
    start = max((int(entry[1]) for entry in entries if entry[2]), default=0)
    return [entry[0] for entry in entries if int(entry[1]) >= start]
