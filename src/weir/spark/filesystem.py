"""Folders as the driver sees them: any path that Spark accepts, written atomically."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Any, Protocol

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from weir.errors import QueryError
from weir.spark.worker_files import local_path


class Folder(Protocol):
    """A folder of small files; a file is complete when it appears."""

    uri: str

    def read(self, name: str) -> bytes | None:
        """The bytes of a file; None if there is none."""

    def write(self, name: str, data: bytes) -> None:
        """Put a file in place, over an older one of that name."""

    def names(self, below: str = "") -> list[str]:
        """The names of the files in a folder below this one."""

    def size(self, name: str) -> int:
        """The bytes of a file that is there."""

    def delete(self, name: str) -> None:
        """Remove a file or folder, if it is there."""

    def move(self, source: str, target: str) -> None:
        """Rename a file, over an older one of the target's name."""


def qualify(spark: SparkSession, path: str) -> str:
    """The path with its scheme, as Hadoop resolves it."""
    try:
        hadoop = _hadoop_path(spark, path)
        found: str = hadoop.getFileSystem(_configuration(spark)).makeQualified(hadoop).toString()
    except (Py4JJavaError, PySparkException) as error:
        reason = next((line for line in str(error).splitlines() if "Exception: " in line), str(error))
        raise QueryError(f"the path {path} is out of reach: {reason.split('Exception: ')[-1]}") from error
    return found


def open_folder(spark: SparkSession, path: str) -> Folder:
    """The folder at a path; it is made when the first file is written."""
    uri = qualify(spark, path)
    local = local_path(uri)
    return HadoopFolder(spark, uri) if local is None else LocalFolder(uri, local)


class LocalFolder:
    """A folder on the driver's own disk: a rename is atomic, and no Java call is needed."""

    def __init__(self, uri: str, root: str) -> None:
        self.uri = uri
        self._root = Path(root)

    def read(self, name: str) -> bytes | None:
        """The bytes of a file; None if there is none."""
        try:
            return (self._root / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        """Put a file in place, over an older one of that name."""
        target = self._root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        hidden = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}")
        hidden.write_bytes(data)
        os.replace(hidden, target)

    def names(self, below: str = "") -> list[str]:
        """The names of the files in a folder below this one."""
        folder = self._root / below
        return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []

    def size(self, name: str) -> int:
        """The bytes of a file that is there."""
        return (self._root / name).stat().st_size

    def delete(self, name: str) -> None:
        """Remove a file or folder, if it is there."""
        target = self._root / name
        if target.is_dir():
            for entry in target.iterdir():
                self.delete(f"{name}/{entry.name}")
            target.rmdir()
        else:
            target.unlink(missing_ok=True)

    def move(self, source: str, target: str) -> None:
        """Rename a file, over an older one of the target's name."""
        os.replace(self._root / source, self._root / target)


class HadoopFolder:
    """A folder on whatever Hadoop's FileSystem reaches."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        self.uri = uri.rstrip("/")
        self._spark = spark
        self._files = _hadoop_path(spark, uri).getFileSystem(_configuration(spark))

    def read(self, name: str) -> bytes | None:
        """The bytes of a file; None if there is none."""
        path = self._path(name)
        if not self._files.exists(path):
            return None
        stream = self._files.open(path)
        try:
            io: Any = self._jvm.org.apache.commons.io.IOUtils
            return bytes(io.toByteArray(stream))
        finally:
            stream.close()

    def write(self, name: str, data: bytes) -> None:
        """Put a file in place, over an older one of that name."""
        hidden = f"{name}.{uuid.uuid4().hex[:8]}.tmp"
        stream = self._files.create(self._path(hidden), True)
        try:
            stream.write(bytearray(data))
        finally:
            stream.close()
        self.move(hidden, name)

    def names(self, below: str = "") -> list[str]:
        """The names of the files in a folder below this one."""
        path = self._path(below)
        if not self._files.exists(path):
            return []
        return sorted(entry.getPath().getName() for entry in self._files.listStatus(path))

    def size(self, name: str) -> int:
        """The bytes of a file that is there."""
        return int(self._files.getFileStatus(self._path(name)).getLen())

    def delete(self, name: str) -> None:
        """Remove a file or folder, if it is there."""
        self._files.delete(self._path(name), True)

    def move(self, source: str, target: str) -> None:
        """Rename a file, over an older one of the target's name."""
        if not self._files.rename(self._path(source), self._path(target)):
            self._files.delete(self._path(target), False)
            if not self._files.rename(self._path(source), self._path(target)):
                raise OSError(f"cannot rename {source} to {target} in {self.uri}")

    @property
    def _jvm(self) -> Any:
        return self._spark._jvm

    def _path(self, name: str) -> Any:
        return _hadoop_path(self._spark, f"{self.uri}/{name}" if name else self.uri)


def _hadoop_path(spark: SparkSession, path: str) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.hadoop.fs.Path(path)


def _configuration(spark: SparkSession) -> Any:
    return spark._jsc.hadoopConfiguration()
