"""The log of a folder's result files, by which Spark reads each batch as a whole.

A batch's files are renamed one after the other, and by another driver if one is killed in between. Whoever
lists the folder then may see a part of a batch, and a watermark that goes by that part drops the rest. So a
batch whose results are read back counts when it is in this log, which is the one of Spark's own file sink
(`_spark_metadata`): Spark's file source reads what it names, and nothing else. Other readers ignore it.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from functools import reduce
from typing import Any
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from weir.errors import QueryError
from weir.spark.filesystem import Folder
from weir.spark.result_names import ResultNames
from weir.spark.torn_logs import LogEntries, make_checksums, name_checksums

LOG_FOLDER = "_spark_metadata"
_PACKAGES = (
    "org.apache.spark.sql.execution.streaming.sinks",
    "org.apache.spark.sql.execution.streaming",  # before Spark 4.1
)
_VERSION = 1


class ResultLog:
    """The log of one folder, for the query whose results have these names; opening it creates it."""

    def __init__(self, spark: SparkSession, folder: Folder, names: ResultNames) -> None:
        self._spark, self._folder, self._names = spark, folder, names
        self._package, jvm = _find_package(spark), _jvm(spark)
        path, retention = f"{folder.uri.rstrip('/')}/{LOG_FOLDER}", jvm.scala.Option.empty()
        self._log = self._package.FileStreamSinkLog(_VERSION, spark._jsparkSession, path, retention)
        # Not read before they are needed, since a power cut may have torn the log: the number of the next
        # entry, and this query's files of its last batch that had results; only the last can be repeated.
        self._next, self._last, self._is_read = 0, frozenset[str](), False

    @property
    def is_empty(self) -> bool:
        """True if no results have been logged."""
        return not LogEntries(self._folder).numbers(LOG_FOLDER)

    def holds(self, names: Collection[str]) -> bool:
        """True if the batch that wrote these files has been logged: readers may have read it."""
        if not self._is_read:
            self._read()
        return any(_name(name) in self._last for name in names)

    def add(self, names: Collection[str]) -> None:
        """Add the files of a batch, all at once; a batch without results leaves no trace."""
        if not names:
            return
        if not self._is_read:
            self._read()
        gateway: Any = self._spark.sparkContext._gateway
        files = gateway.new_array(self._package.SinkFileStatus, len(names))
        for i, name in enumerate(names):
            files[i] = self._package.SinkFileStatus.apply(self._status(name))
        while not self._log.add(self._next, files):  # another query has logged a batch of its own
            self._read()
            if self.holds(names):
                return
        self._next, self._last = self._next + 1, frozenset(map(_name, names))

    def _read(self) -> None:
        latest = self._log.getLatest()
        self._next = int(latest.get()._1()) + 1 if latest.isDefined() else 0
        self._last, self._is_read = self._find_last(), True

    def _find_last(self) -> frozenset[str]:
        """The files of the last entry that names some of this query; other queries may share the folder."""
        for number in range(self._next - 1, -1, -1):
            entry = self._log.get(number)
            if entry.isEmpty():
                break  # older entries were put together in one that has been looked at
            names = [_name(file.path()) for file in entry.get()]
            own = frozenset(name for name in names if self._names.is_own(name))
            if own:
                return own
        return frozenset()

    def _status(self, name: str) -> Any:
        path = _jvm(self._spark).org.apache.hadoop.fs.Path(f"{self._folder.uri.rstrip('/')}/{name}")
        jsc: Any = self._spark._jsc
        return path.getFileSystem(jsc.hadoopConfiguration()).getFileStatus(path)


def forget_results(folder: Folder, names: Collection[str]) -> None:
    """Take files out of the log of a folder, if it has one; whoever reads by the log sees them no more."""
    gone, log = set(map(_name, names)), LogEntries(folder)
    for entry in log.list_entries(LOG_FOLDER):
        version, *lines = (folder.read(entry) or b"").decode().splitlines() or [""]
        kept = [line for line in lines if _name(json.loads(line)["path"]) not in gone]
        if len(kept) < len(lines):
            data = "\n".join([version, *kept]).encode()
            folder.delete(name_checksums(entry))
            folder.write(entry, data)
            folder.write(name_checksums(entry), make_checksums(data))


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
