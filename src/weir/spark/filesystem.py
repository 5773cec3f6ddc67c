"""Folders as the driver sees them: any path that Spark accepts, written atomically."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from pyspark.sql import SparkSession

from weir.errors import QueryError
from weir.spark.disk_space import name_full_disk
from weir.spark.java_errors import JAVA_ERRORS, reason_of
from weir.spark.worker_files import local_path


def qualify(spark: SparkSession, path: str) -> str:
    """Return the path with its scheme, as Hadoop resolves it."""
    try:
        hadoop = _hadoop_path(spark, path)
        uri: str = hadoop.getFileSystem(spark._jsc.hadoopConfiguration()).makeQualified(hadoop).toString()
    except JAVA_ERRORS as error:
        raise QueryError(f"cannot reach the path {path}: {reason_of(error)}") from None
    return uri


def open_folder(spark: SparkSession, path: str) -> Folder:
    """Return the folder at a path; writing the first file creates it."""
    uri = qualify(spark, path)
    local = local_path(uri)
    return HadoopFolder(spark, uri) if local is None else LocalFolder(uri, local)


class LocalFolder:
    """A folder on the driver's own disk, where a rename is atomic and no Java call is needed."""

    def __init__(self, uri: str, root: str) -> None:
        self.uri, self._root = uri, Path(root)

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a file; None if it does not exist."""
        try:
            return (self._root / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except PermissionError:
            raise QueryError(
                f"{self.uri}/{name} cannot be read, since it belongs to another user; start as that user"
            ) from None

    def write(self, name: str, data: bytes, private: bool = False) -> None:
        """Write or replace a file; it is complete when it appears. A private one only its owner may read."""
        target = self._root / name
        hidden = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}")
        with name_full_disk(f"{self.uri}/{name}"):
            target.parent.mkdir(parents=True, exist_ok=True)
            _write_file(hidden, data, 0o600 if private else 0o666)
            os.replace(hidden, target)

    def names(self, below: str = "") -> list[str]:
        """List the names in a folder below this one; none if it does not exist."""
        folder = self._root / below
        return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []

    def size(self, name: str) -> int:
        """Return the bytes that an existing file takes."""
        return (self._root / name).stat().st_size

    def delete(self, name: str) -> None:
        """Delete a file or folder, if it exists."""
        target = self._root / name
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)

    def move(self, source: str, target: str) -> None:
        """Rename a file, in place of one that has the target's name."""
        with name_full_disk(f"{self.uri}/{target}"):
            os.replace(self._root / source, self._root / target)


def _write_file(path: Path, data: bytes, mode: int) -> None:
    """Write a file with the mode that the umask leaves; delete it again if it is not finished."""
    try:
        with open(path, "wb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            file.write(data)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


@contextmanager
def _as_os_errors() -> Iterator[None]:
    """Raise what Hadoop says as an OSError of one line, which is what a local disk would raise."""
    try:
        yield
    except JAVA_ERRORS as error:
        raise OSError(reason_of(error)) from None


class HadoopFolder:
    """A folder on any file system that Hadoop reaches; the same methods as `LocalFolder`."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        self.uri, self._spark = uri.rstrip("/"), spark
        self._files = _hadoop_path(spark, uri).getFileSystem(spark._jsc.hadoopConfiguration())

    @_as_os_errors()
    def read(self, name: str) -> bytes | None:
        """Return the bytes of a file; None if it does not exist."""
        path = self._path(name)
        if not self._files.exists(path):
            return None
        jvm: Any = self._spark._jvm
        with closing(self._files.open(path)) as stream:
            return bytes(jvm.org.apache.commons.io.IOUtils.toByteArray(stream))

    @_as_os_errors()
    def write(self, name: str, data: bytes, private: bool = False) -> None:
        """Write or replace a file; it is complete when it appears. A private one only its owner may read."""
        hidden = f"{name}.{uuid.uuid4().hex[:8]}.tmp"
        with name_full_disk(f"{self.uri}/{name}"):
            with closing(self._files.create(self._path(hidden), True)) as stream:
                stream.write(bytearray(data))
            if private:
                self._files.setPermission(self._path(hidden), self._own_permission())
        self.move(hidden, name)

    @_as_os_errors()
    def names(self, below: str = "") -> list[str]:
        """List the names in a folder below this one; none if it does not exist."""
        path = self._path(below)
        if not self._files.exists(path):
            return []
        return sorted(entry.getPath().getName() for entry in self._files.listStatus(path))

    @_as_os_errors()
    def size(self, name: str) -> int:
        """Return the bytes that an existing file takes."""
        return int(self._files.getFileStatus(self._path(name)).getLen())

    @_as_os_errors()
    def delete(self, name: str) -> None:
        """Delete a file or folder, if it exists."""
        self._files.delete(self._path(name), True)

    @_as_os_errors()
    def move(self, source: str, target: str) -> None:
        """Rename a file, in place of one that has the target's name."""
        if not self._files.rename(self._path(source), self._path(target)):
            self._files.delete(self._path(target), False)
            if not self._files.rename(self._path(source), self._path(target)):
                raise OSError(f"cannot rename {source} to {target} in {self.uri}")

    def _own_permission(self) -> Any:
        jvm: Any = self._spark._jvm
        return jvm.org.apache.hadoop.fs.permission.FsPermission("600")

    def _path(self, name: str) -> Any:
        return _hadoop_path(self._spark, f"{self.uri}/{name}" if name else self.uri)


Folder: TypeAlias = LocalFolder | HadoopFolder


def _hadoop_path(spark: SparkSession, path: str) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.hadoop.fs.Path(path)
