"""A lock on a local checkpoint, under which Spark may write its logs there in a quarter of the time.

Spark's default way to write a log entry excludes a second driver, but starts several processes for each file
on a local disk. The way through Hadoop's `FileSystem` starts none, but two drivers can both win one entry. So
the Java process, which writes the logs, holds a lock of the operating system while its query runs. However it
ends, the lock ends with it.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from weir.errors import QueryError
from weir.spark.worker_files import local_path

_SETTING = "spark.sql.streaming.checkpointFileManagerClass"
_MANAGERS = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",
    "org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager",  # before Spark 4.1
)
_PATIENCE_SECONDS = 10.0  # a driver whose Python was killed takes a moment to end
_RETRY_SECONDS = 0.2
_SOURCES_MILLISECONDS = 10_000
_JAVA_ERRORS = (Py4JError, PySparkException)
_LOG = logging.getLogger("weir")


@dataclass
class _Held:
    """A locked file; a restart in one process may begin before the end of the run that it replaces."""

    file: Any
    lock: Any  # Java forgets a lock to which nothing refers
    runs: int = 0


_held: dict[str, _Held] = {}
_kept_open: list[Any] = []
# For both, and so that no start takes the setting of another for the user's.
_guard = threading.Lock()


class CheckpointLock:
    """Entered before a checkpoint is used; held until the query that it starts ends, or else until exit.

    If the disk is not local or has no locks, or the user chose how Spark writes, nothing is locked or set.
    """

    def __init__(self, spark: SparkSession, uri: str) -> None:
        self._spark, self._uri = spark, uri
        self._manager = _choose_manager(spark, uri)
        self._path: str | None = None  # of the lock, while this object holds it

    def __enter__(self) -> CheckpointLock:
        if self._manager is not None:
            folder = os.path.realpath(local_path(self._uri) or "")
            with suppress(OSError):  # whoever writes there first reports it
                os.makedirs(folder, exist_ok=True)
            self._lock(f"{folder}/lock")
        return self

    def __exit__(self, *error: object) -> None:
        if self._path is not None:
            _release(self._path)

    @property
    def is_alone(self) -> bool:
        """True if no other query uses the checkpoint, in any process; False also if nothing is locked."""
        with _guard:
            return self._path is not None and _held[self._path].runs == 1

    def start(self, writer: DataStreamWriter) -> StreamingQuery:
        """Start the query, which holds the lock from then on."""
        if self._manager is None or self._path is None:
            return writer.start()
        with _guard:
            self._spark.conf.set(_SETTING, self._manager)
            try:
                query = writer.start()
                path, self._path = self._path, None
                threading.Thread(target=_release_after, args=(query, path), daemon=True).start()
                # Only now the query's thread makes the logs of its sources, by the setting of this session.
                with suppress(*_JAVA_ERRORS):  # an error of the query is told by the query
                    query._jsq.streamingQuery().awaitInitialization(_SOURCES_MILLISECONDS)
            finally:
                self._spark.conf.unset(_SETTING)
        return query

    def _lock(self, path: str) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not self._try_lock(path):
            if time.monotonic() > deadline:
                raise in_use(self._uri, path)
            time.sleep(_RETRY_SECONDS)

    def _try_lock(self, path: str) -> bool:
        """Lock the file, if it can be locked at all; False if another process has locked it."""
        with _guard:
            # Nothing opens a locked file again: closing it would release all locks of its process on it.
            if path not in _held:
                if os.path.exists(path) and not os.access(path, os.W_OK):
                    raise QueryError(
                        f"the checkpoint {self._uri} cannot be locked, since {path} belongs to another user; "
                        "start as that user, or make the file writable for both"
                    )
                try:
                    held = _open(self._spark._jvm, path)
                except _JAVA_ERRORS as error:
                    _LOG.warning("the checkpoint %s cannot be locked: %s", self._uri, error)
                    return True
                if held is None:
                    return False
                _held[path] = held
            _held[path].runs += 1
            self._path = path
            return True


def _choose_manager(spark: SparkSession, uri: str) -> str | None:
    """The faster of Spark's ways to write files of a checkpoint; None if the default stays."""
    with _guard:
        if local_path(uri) is None or spark.conf.get(_SETTING, None) is not None:
            return None
    for name in _MANAGERS:
        with suppress(*_JAVA_ERRORS):
            spark._jsparkSession.getClass().getClassLoader().loadClass(name)
            return name
    return None


def _open(jvm: Any, path: str) -> _Held | None:
    """Lock a file and write the holder into it; None if another process has locked it."""
    file = jvm.java.io.RandomAccessFile(path, "rw")
    _kept_open.append(file)  # stays there if an error says that another Python of this Java has locked it
    lock = file.getChannel().tryLock()
    _kept_open.pop()
    if lock is None:
        file.close()
        return None
    pid, _, host = jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getName().partition("@")
    with suppress(*_JAVA_ERRORS):  # on a full disk the lock holds, too
        file.setLength(0)
        file.writeBytes(f"process {pid} on host {host}")
    return _Held(file, lock)


def in_use(uri: str, path: str) -> QueryError:
    """Return the error for a checkpoint that another driver has locked by the file at a path."""
    try:
        holder = Path(path).read_text(errors="replace")
    except OSError:
        holder = "unknown"
    return QueryError(
        f"the checkpoint {uri} is in use: another driver ({holder}) runs a query there; stop it or wait for "
        "its end and start again, or start with another checkpointLocation"
    )


def _release_after(query: StreamingQuery, path: str) -> None:
    with suppress(Exception):  # of the query, or Java is gone
        query._jsq.awaitTermination()
    _release(path)


def _release(path: str) -> None:
    with _guard:
        _held[path].runs -= 1
        if not _held[path].runs:
            file = _held.pop(path).file
            with suppress(Exception):  # Java is gone, and the lock with it
                file.close()
