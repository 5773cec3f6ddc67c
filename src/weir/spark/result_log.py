"""The log of a folder's result files, by which Spark reads each batch as a whole.

A batch's files are renamed one after the other, and by another driver if one is killed in between. Whoever
lists the folder then may see a part of a batch, and a watermark that goes by that part drops the rest. So a
batch whose results are read back counts when it is in this log, which is the one of Spark's own file sink
(`_spark_metadata`): Spark's file source reads what it names, and nothing else. Other readers ignore it.

The end of the log may be torn by a power cut, damaged or deleted, and of the batches that it named only one
that was not committed is repeated. So a start logs the others again, whose files are all there.
"""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import reduce
from typing import Any
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from weir.errors import QueryError
from weir.spark.errors import DamagedStateError
from weir.spark.filesystem import Folder
from weir.spark.result_names import ResultNames, is_result
from weir.spark.spark_logs import select_current
from weir.spark.torn_logs import LogEntries, find_torn_end, make_checksums, name_checksums

LOG_FOLDER = "_spark_metadata"
_PACKAGES = (
    "org.apache.spark.sql.execution.streaming.sinks",
    "org.apache.spark.sql.execution.streaming",  # before Spark 4.1
)
_VERSION = 1
_LOG = logging.getLogger("weir")


class ResultLog:
    """The log of one folder, for the query whose results have these names; opening it creates it."""

    def __init__(self, spark: SparkSession, folder: Folder, names: ResultNames) -> None:
        self._spark, self._folder, self._names = spark, folder, names
        self._package, jvm = _find_package(spark), _jvm(spark)
        path, retention = f"{folder.uri.rstrip('/')}/{LOG_FOLDER}", jvm.scala.Option.empty()
        self._log = self._package.FileStreamSinkLog(_VERSION, spark._jsparkSession, path, retention)
        # Not read before they are needed, since a power cut may have torn the log: the number of the next
        # entry, and the batches of the last one that has results of this query; only the last is repeated.
        self._next, self._last, self._is_read = 0, frozenset[int](), False

    @property
    def is_foreign(self) -> bool:
        """True if results have been logged, and none of this query; what a power cut has torn is left out."""
        log = LogEntries(self._folder)
        torn = find_torn_end(log, LOG_FOLDER)
        whole = [entry for entry in log.list_entries(LOG_FOLDER) if entry not in torn]
        own = f"/part-{self._names.id}-".encode()
        return bool(whole) and not any(own in (self._folder.read(entry) or b"") for entry in whole)

    def restore(self, newest: int, files: Iterable[str]) -> None:
        """Log again what the log has lost at its end of batches up to the newest one that is committed.

        `files` are those of the folder. A batch is committed after it was logged.
        """
        _remove_torn_end(self._folder)
        self._read()
        lost, last = self._by_batch(files), max(self._last, default=-1)
        for batch in sorted(batch for batch in lost if last < batch <= newest):
            _LOG.warning("%s/%s has lost batch %d, which is added again", self._folder.uri, LOG_FOLDER, batch)
            self.add(batch, lost[batch])

    def holds(self, batch: int) -> bool:
        """True if results of a batch, the last one of this query, have been logged: readers may have them."""
        if not self._is_read:
            self._read()
        return batch in self._last

    def add(self, batch: int, names: Collection[str]) -> None:
        """Add the files of a batch, all at once; a batch without results leaves no trace."""
        if not names:
            return
        if not self._is_read:
            self._read()
        gateway: Any = self._spark.sparkContext._gateway
        files = gateway.new_array(self._package.SinkFileStatus, len(names))
        for i, name in enumerate(names):
            files[i] = self._package.SinkFileStatus.apply(self._status(name))
        while not self._log.add(self._next, files):
            # Another query has logged a batch, or a later driver of this one has: perhaps also this batch.
            first = self._next
            self._read()
            if any(batch in self._by_batch(names) for names in self._read_names(first)):
                return
        self._next, self._last = self._next + 1, frozenset([batch])

    def _read(self) -> None:
        self._next = max(LogEntries(self._folder).numbers(LOG_FOLDER), default=-1) + 1
        own = (batches for names in self._read_names() if (batches := self._by_batch(names)))
        self._last, self._is_read = frozenset(next(own, ())), True

    def _by_batch(self, files: Iterable[str]) -> dict[int, list[str]]:
        """This query's files of each batch."""
        batches = defaultdict[int, list[str]](list)
        for path in files:
            batch = self._names.batch_of(path)
            if batch is not None:
                batches[batch].append(path)
        return batches

    def _read_names(self, first: int = 0) -> Iterator[list[str]]:
        """The files of each entry from a number on, the newest first; earlier ones are in a compact one."""
        names = select_current(self._folder.names(LOG_FOLDER))
        for number, name in sorted(((int(name.partition(".")[0]), name) for name in names), reverse=True):
            if number >= first:
                yield list(_read_entry(self._folder, f"{LOG_FOLDER}/{name}")[1].values())

    def _status(self, name: str) -> Any:
        path = _jvm(self._spark).org.apache.hadoop.fs.Path(f"{self._folder.uri.rstrip('/')}/{name}")
        jsc: Any = self._spark._jsc
        return path.getFileSystem(jsc.hadoopConfiguration()).getFileStatus(path)


def forget_results(folder: Folder, names: Collection[str]) -> None:
    """Take files out of the log of a folder, if it has one; whoever reads by the log sees them no more."""
    gone = set(map(_name, names))
    _remove_torn_end(folder)
    current = select_current(folder.names(LOG_FOLDER))
    entries = dict[str, tuple[str, dict[str, str]]]()
    # All are read before the first is written, so that damage is found while nothing is changed.
    for entry in LogEntries(folder).list_entries(LOG_FOLDER):
        try:
            entries[entry] = _read_entry(folder, entry)
        except DamagedStateError:
            if entry.rpartition("/")[2] in current:
                raise
    for entry, (version, lines) in entries.items():
        kept = [line for line, name in lines.items() if name not in gone]
        if len(kept) < len(lines):
            data = "\n".join([version, *kept]).encode()
            folder.delete(name_checksums(entry))
            folder.write(entry, data)
            folder.write(name_checksums(entry), make_checksums(data))


def check_log(folder: Folder) -> None:
    """Refuse a folder whose log is not weir's, or is damaged before its end, which a start restores."""
    log = LogEntries(folder)
    torn = find_torn_end(log, LOG_FOLDER)
    names = [name for name in folder.names(LOG_FOLDER) if f"{LOG_FOLDER}/{name}" not in torn]
    numbers = set[int]()
    for name in select_current(names):
        entry = f"{LOG_FOLDER}/{name}"
        if not log.is_intact(entry):
            raise _damaged(folder, entry, "damaged")
        if not all(map(is_result, _read_entry(folder, entry)[1].values())):
            raise QueryError(
                f"the folder {folder.uri} has the log of a streaming query of Spark's own, which would skip "
                "batches if weir wrote there too; write into another folder"
            )
        number, _, compact = name.partition(".")
        numbers.update(range(int(number) + 1) if compact else [int(number)])
    for missing in set(range(max(numbers, default=0))) - numbers:
        raise _damaged(folder, f"{LOG_FOLDER}/{missing}", "missing")


def _remove_torn_end(folder: Folder) -> None:
    log = LogEntries(folder)
    for entry in find_torn_end(log, LOG_FOLDER):
        _LOG.warning("%s/%s is removed: it is damaged", folder.uri, entry)
        log.remove(entry)


def _read_entry(folder: Folder, entry: str) -> tuple[str, dict[str, str]]:
    """Return the version of an entry, and its lines with the names of the files that they add."""
    try:
        version, *lines = (folder.read(entry) or b"").decode().splitlines() or [""]
        return version, {line: _name(json.loads(line)["path"]) for line in lines}
    except (ValueError, KeyError, TypeError):
        raise _damaged(folder, entry, "damaged") from None


def _damaged(folder: Folder, entry: str, how: str) -> DamagedStateError:
    damage = f"{folder.uri}/{entry}, by which Spark reads the results there, is {how}"
    return DamagedStateError(damage, "restore it, or write into another folder")


def find_log(spark: SparkSession, folder: Folder, names: ResultNames) -> ResultLog | None:
    """Return the log of a folder that has one."""
    return ResultLog(spark, folder, names) if LOG_FOLDER in folder.names() else None


def _name(path: str) -> str:
    """The file's own name; Spark escapes paths as in URLs."""
    return unquote(path).rpartition("/")[2]


def _find_package(spark: SparkSession) -> Any:
    session: Any = spark._jsparkSession
    for package in _PACKAGES:
        try:
            session.getClass().getClassLoader().loadClass(f"{package}.FileStreamSinkLog")
        except Py4JJavaError:
            continue
        return reduce(getattr, package.split("."), _jvm(spark))
    raise QueryError(
        f"Spark {spark.version} has no log of result files that weir knows; use Spark 4.0 to 4.x"
    )


def _jvm(spark: SparkSession) -> Any:
    return spark._jvm
