"""Before a query starts: do the workers have what they need, and do they reach the checkpoint?"""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from weir.errors import QueryError
from weir.spark.filesystem import Folder
from weir.spark.worker_files import local_path, open_output, open_path


class _Probe:
    """Write a file where slices will go, from a worker."""

    def __init__(self, uri: str) -> None:
        self._uri = uri

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import weir.kernel  # the workers must have it

        assert weir.kernel
        for batch in batches:
            if batch.num_rows:
                with open_output(self._uri) as stream:
                    stream.write(b"weir")
                files, path = open_path(self._uri)
                with files.open_input_file(path) as source:
                    yield pa.RecordBatch.from_pydict({"read": [source.read()]})


def check_workers(spark: SparkSession, folder: Folder, partitions: int) -> None:
    """Write and read a file of the checkpoint, from the driver and from a task."""
    name = f"slices/.probe-{uuid.uuid4().hex[:8]}"
    try:
        folder.write("slices/.keep", b"")
    except OSError as error:
        raise QueryError(f"the checkpoint {folder.uri} cannot be written: {error}") from error
    try:
        found = spark.range(0, 1, 1, 1).mapInArrow(_Probe(f"{folder.uri}/{name}"), "read binary").collect()
    except PySparkException as error:
        reason = str(error).strip().splitlines()
        cause = next((line for line in reversed(reason) if "Error" in line or "MISMATCH" in line), reason[0])
        raise QueryError(
            f"the workers cannot run this query or write its checkpoint {folder.uri}: {cause.strip()}; "
            "each needs the driver's Python version with weir, pyarrow and numpy, and access to that path"
        ) from error
    written = folder.read(name)
    folder.delete(name)
    if not found or bytes(found[0].read) != b"weir" or written != b"weir":
        where = "is on this host only" if local_path(folder.uri) else "is not the same for all"
        raise QueryError(
            f"the checkpoint {folder.uri} {where}: what a worker writes there, the driver cannot read; "
            "use a path that the driver and all workers share"
        )
