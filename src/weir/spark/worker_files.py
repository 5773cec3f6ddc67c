"""Files as workers see them: Arrow opens the checkpoint and the output folder, without Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs

from weir.spark.disk_space import name_full_disk

# Hadoop's schemes and what Arrow calls them.
_SCHEMES = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "gcs": "gs"}


def open_path(uri: str) -> tuple[pafs.FileSystem, str]:
    """Return the file system of a URI and the path in it."""
    local = local_path(uri)
    if local is not None:
        return pafs.LocalFileSystem(), local
    scheme, rest = uri.split("://", 1)
    opened: tuple[pafs.FileSystem, str] = pafs.FileSystem.from_uri(f"{_SCHEMES.get(scheme, scheme)}://{rest}")
    return opened


@contextmanager
def open_output(uri: str) -> Iterator[pa.NativeFile]:
    """Open a file for writing, on a local disk with its folder; delete it again if it is not finished."""
    files, path = open_path(uri)
    with name_full_disk(uri):
        if isinstance(files, pafs.LocalFileSystem):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        try:
            with files.open_output_stream(path) as stream:
                yield stream
        except BaseException:
            with suppress(OSError):
                files.delete_file(path)
            raise


def local_path(uri: str) -> str | None:
    """Return the path of one of Hadoop's URIs on this host; None for any other file system.

    Hadoop's URIs are not escaped: a % or # is part of a name.

    >>> local_path("file:/tmp/no #1, 100%25"), local_path("/tmp/x"), local_path("s3a://bucket/x")
    ('/tmp/no #1, 100%25', '/tmp/x', None)
    """
    match = re.match(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://(?=/))?(.*)", uri, re.DOTALL)
    assert match is not None
    scheme, path = match.groups()
    return path if scheme in (None, "file") else None


@dataclass(frozen=True)
class AccessTask:
    """A task that writes a file and reads it back, to check that workers have weir and reach a path."""

    uri: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the bytes that were read."""
        import weir.kernel  # fails where a worker lacks weir's dependencies

        assert weir.kernel
        for batch in batches:
            if batch.num_rows:
                with open_output(self.uri) as stream:
                    stream.write(b"weir")
                files, path = open_path(self.uri)
                with files.open_input_file(path) as source:
                    yield pa.RecordBatch.from_pydict({"read": [source.read()]})
