"""Files as workers see them: the checkpoint and the output folder through Arrow, without Spark."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs

# Hadoop's names for what Arrow calls otherwise.
_SCHEMES = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "gcs": "gs"}


def open_path(uri: str) -> tuple[pafs.FileSystem, str]:
    """The file system a worker reaches a URI by, and the path in it."""
    local = local_path(uri)
    if local is not None:
        return pafs.LocalFileSystem(), local
    scheme, rest = uri.split("://", 1)
    found: tuple[pafs.FileSystem, str] = pafs.FileSystem.from_uri(f"{_SCHEMES.get(scheme, scheme)}://{rest}")
    return found


def open_output(uri: str) -> pa.NativeFile:
    """A file to be written by a worker; on a local disk its folder is made first."""
    files, path = open_path(uri)
    if isinstance(files, pafs.LocalFileSystem):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    return files.open_output_stream(path)


def local_path(uri: str) -> str | None:
    """Where a URI of Hadoop's lies on this host; None for any other file system.

    Hadoop's URIs are not escaped: a % or # is part of a name.

    >>> local_path("file:/tmp/no #1, 100%25"), local_path("/tmp/x"), local_path("s3a://bucket/x")
    ('/tmp/no #1, 100%25', '/tmp/x', None)
    """
    found = re.match(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://(?=/))?(.*)", uri, re.DOTALL)
    assert found is not None
    return found[2] if found[1] in (None, "file") else None
