"""Folders as the driver sees them: any path that Spark accepts, written atomically."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

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


def open_folder(spark: SparkSession, path: str, is_synced: bool = False) -> Folder:
    """Return the folder at a path; writing the first file creates it.

    With `is_synced` Hadoop syncs files as they are written, where it can; for local disks see
    `weir.spark.durability`.
    """
    uri = qualify(spark, path)
    local = local_path(uri)
    return HadoopFolder(spark, uri, is_synced) if local is None else LocalFolder(uri, local)


class LocalFolder:
    """A folder on the driver's own disk, where a rename is atomic and no Java call is needed."""

    def __init__(self, uri: str, root: str) -> None:
        self.uri, self._root = uri, Path(root)

    def check_writable(self) -> None:
        """Raise an OSError if nothing can be written here, as far as that is known without trying."""
        there = next(path for path in (self._root, *self._root.parents) if path.exists())
        if not there.is_dir():
            raise OSError(_no_folder(str(there)))
        if not os.access(there, os.W_OK | os.X_OK):
            raise OSError(f"{there} belongs to another user")

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
        hidden = self.write_hidden(name, data, private)
        with name_full_disk(f"{self.uri}/{name}"):
            os.replace(self._root / hidden, self._root / name)

    def write_hidden(self, name: str, data: bytes, private: bool = False) -> str:
        """Write what will be moved to a name; return the hidden name that it has until then."""
        hidden = _hide(name)
        with name_full_disk(f"{self.uri}/{name}"):
            (self._root / hidden).parent.mkdir(parents=True, exist_ok=True)
            _write_file(self._root / hidden, data, "wb", 0o600 if private else 0o666)
        return hidden

    def create(self, name: str, data: bytes) -> bool:
        """Write a file that does not exist; False if it exists, however many try it at once."""
        target = self._root / name
        try:
            with name_full_disk(f"{self.uri}/{name}"):
                target.parent.mkdir(parents=True, exist_ok=True)
                _write_file(target, data, "xb")
        except FileExistsError:
            return False
        return True

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


def _write_file(path: Path, data: bytes, mode: Literal["wb", "xb"], permissions: int = 0o666) -> None:
    """Write a file with what the umask leaves of permissions; delete it again if it is not finished."""
    with open(path, mode, opener=lambda name, flags: os.open(name, flags, permissions)) as file:
        try:
            file.write(data)
            file.flush()
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

    def __init__(self, spark: SparkSession, uri: str, is_synced: bool = False) -> None:
        self.uri, self._spark, self._is_synced = uri.rstrip("/"), spark, is_synced
        self._files = _hadoop_path(spark, uri).getFileSystem(spark._jsc.hadoopConfiguration())
        self._context = _open_context(spark, self._files.getUri())

    @_as_os_errors()
    def check_writable(self) -> None:
        """Raise an OSError if nothing can be written here, as far as that is known without trying."""
        there = self._path("")
        while not self._files.exists(there) and there.getParent() is not None:
            there = there.getParent()
        if self._files.exists(there) and not self._files.getFileStatus(there).isDirectory():
            raise OSError(_no_folder(there.toString()))

    @_as_os_errors()
    def read(self, name: str) -> bytes | None:
        """Return the bytes of a file; None if it does not exist."""
        path = self._path(name)
        if not self._files.exists(path):
            return None
        jvm: Any = self._spark._jvm
        with closing(self._files.open(path)) as stream:
            return bytes(jvm.org.apache.commons.io.IOUtils.toByteArray(stream))

    def write(self, name: str, data: bytes, private: bool = False) -> None:
        """Write or replace a file; it is complete when it appears. A private one only its owner may read."""
        self.move(self.write_hidden(name, data, private), name)

    @_as_os_errors()
    def write_hidden(self, name: str, data: bytes, private: bool = False) -> str:
        """Write what will be moved to a name; return the hidden name that it has until then."""
        hidden = _hide(name)
        with name_full_disk(f"{self.uri}/{name}"):
            self._fill(self._files.create(self._path(hidden), True), data)
            if private:
                self._files.setPermission(self._path(hidden), self._own_permission())
        return hidden

    @_as_os_errors()
    def create(self, name: str, data: bytes) -> bool:
        """Write a file that does not exist; False if it exists, however many try it at once."""
        path = self._path(name)
        with name_full_disk(f"{self.uri}/{name}"):
            try:
                stream = self._files.create(path, False)
            except JAVA_ERRORS:
                if self._files.exists(path):
                    return False
                raise
            self._fill(stream, data)
        return True

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
        if self._context is not None:
            self._context.rename(self._path(source), self._path(target), self._overwrite())
        elif not self._files.rename(self._path(source), self._path(target)):
            # A file system of which Hadoop knows no more than this cannot replace in one step.
            self._files.delete(self._path(target), False)
            if not self._files.rename(self._path(source), self._path(target)):
                raise OSError(f"cannot rename {source} to {target} in {self.uri}")

    def _fill(self, stream: Any, data: bytes) -> None:
        with closing(stream):
            stream.write(bytearray(data))
            if self._is_synced and stream.hasCapability("hsync"):
                stream.hsync()

    def _overwrite(self) -> Any:
        """The option of a rename that replaces its target in one step."""
        jvm: Any = self._spark._jvm
        gateway: Any = self._spark.sparkContext._gateway
        kind = getattr(jvm.org.apache.hadoop.fs, "Options$Rename")
        options = gateway.new_array(kind, 1)
        options[0] = kind.OVERWRITE
        return options

    def _own_permission(self) -> Any:
        jvm: Any = self._spark._jvm
        return jvm.org.apache.hadoop.fs.permission.FsPermission("600")

    def _path(self, name: str) -> Any:
        return _hadoop_path(self._spark, f"{self.uri}/{name}" if name else self.uri)


Folder: TypeAlias = LocalFolder | HadoopFolder


def _no_folder(path: str) -> str:
    return f"{path} is a file, not a folder"


def _hide(name: str) -> str:
    below, slash, file = name.rpartition("/")
    return f"{below}{slash}.{file}.{uuid.uuid4().hex[:8]}"


def _open_context(spark: SparkSession, uri: Any) -> Any | None:
    """Hadoop's `FileContext` of a file system, which can rename over a file; None if it has none."""
    jvm: Any = spark._jvm
    try:
        return jvm.org.apache.hadoop.fs.FileContext.getFileContext(uri, spark._jsc.hadoopConfiguration())
    except JAVA_ERRORS:
        return None


def _hadoop_path(spark: SparkSession, path: str) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.hadoop.fs.Path(path)
