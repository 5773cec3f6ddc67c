"""Where results go: folded into the workers' own files, or handed on as a DataFrame."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from pyspark.sql import DataFrame

from weir.spark.filesystem import Folder
from weir.spark.task import ResultFiles

Step = Callable[[DataFrame], DataFrame]


@runtime_checkable
class FoldedSink(Protocol):
    """A sink whose results the workers write, in the task that finds them."""

    @property
    def results(self) -> ResultFiles:
        """Where the workers write results."""

    def publish(self, batch: int, files: Sequence[str], repeated: bool) -> None:
        """Make the files that the workers wrote the batch's results, in place of an earlier attempt's."""


@runtime_checkable
class FrameSink(Protocol):
    """A sink that takes each batch's results as a DataFrame."""

    def emit(self, results: DataFrame, batch: int, repeated: bool) -> None:
        """Take the batch's results."""


Sink = FoldedSink | FrameSink


@dataclass(frozen=True)
class NoSink:
    """Results are computed, counted and dropped."""

    results: ResultFiles = field(default_factory=ResultFiles)

    def publish(self, batch: int, files: Sequence[str], repeated: bool) -> None:
        """Nothing to show."""


@dataclass(frozen=True)
class ParquetSink:
    """Parquet files, flat in a folder, each complete when it appears; a repeated batch replaces its own."""

    folder: Folder
    compression: str

    @property
    def results(self) -> ResultFiles:
        """The workers write under hidden names in the same folder."""
        return ResultFiles(self.folder.uri.rstrip("/"), self.compression)

    def publish(self, batch: int, files: Sequence[str], repeated: bool) -> None:
        """Give the files their real names."""
        renamed = {name: _real_name(name) for name in files}
        replace_batch(self.folder, batch, renamed, repeated)


def _real_name(hidden: str) -> str:
    """`_part-<batch>-<partition>-<attempt>.parquet` without what is the attempt's."""
    found = re.fullmatch(r"_part-(\d+)-(\d+)-\w+\.(\w+)", hidden)
    assert found is not None, hidden
    return f"part-{found[1]}-{found[2]}-0.{found[3]}"


def replace_batch(folder: Folder, batch: int, renamed: Mapping[str, str], repeated: bool) -> None:
    """Move files to their names; if `repeated`, remove what earlier attempts of this and any batch left."""
    for hidden, real in renamed.items():
        folder.move(hidden, real)
    if not repeated:
        return
    kept = set(renamed.values())
    mine = re.compile(rf"(.*/)?(_part-|part-{batch:09d}-).*")
    for name in _files_below(folder):
        if mine.fullmatch(name) and name not in kept:
            folder.delete(name)


def _files_below(folder: Folder, below: str = "") -> list[str]:
    """The names in a folder, and in the folders of partition values below it."""
    found = []
    for name in folder.names(below):
        path = f"{below}/{name}" if below else name
        found += _files_below(folder, path) if "=" in name and not name.startswith("part-") else [path]
    return found


@dataclass(frozen=True)
class FileSink:
    """Files of any format that Spark writes, moved to names of the batch when they are complete."""

    folder: Folder
    format: str
    options: Mapping[str, str]
    partition_by: tuple[str, ...]
    steps: tuple[Step, ...]

    def emit(self, results: DataFrame, batch: int, repeated: bool) -> None:
        """Write into a hidden folder, then move the files."""
        for step in self.steps:
            results = step(results)
        hidden = f"_batch-{batch:09d}"
        writer = results.write.format(self.format).options(**self.options).mode("overwrite")
        writer.partitionBy(*self.partition_by).save(f"{self.folder.uri}/{hidden}")
        self._move(hidden, batch, repeated)
        self.folder.delete(hidden)

    def _move(self, hidden: str, batch: int, repeated: bool) -> None:
        renamed = {}
        written = [name.removeprefix(f"{hidden}/") for name in _files_below(self.folder, hidden)]
        # Spark's first task writes a file even without rows, and other readers refuse an empty one.
        data = [
            name
            for name in written
            if name.rpartition("/")[2].startswith("part-") and self.folder.size(f"{hidden}/{name}")
        ]
        for number, name in enumerate(data):
            below, _, file = name.rpartition("/")
            ending = file.split(".", 1)[1]
            target = f"part-{batch:09d}-{number:04d}-0.{ending}"
            renamed[f"{hidden}/{name}"] = f"{below}/{target}" if below else target
        for below in {target.rpartition("/")[0] for target in renamed.values()} - {""}:
            self.folder.write(f"{below}/_folder", b"")
        replace_batch(self.folder, batch, renamed, repeated)


@dataclass(frozen=True)
class CallSink:
    """A user's `foreachBatch`, or anything else that takes a DataFrame and the batch's number."""

    call: Callable[[DataFrame, int], None]
    steps: tuple[Step, ...] = ()

    def emit(self, results: DataFrame, batch: int, repeated: bool) -> None:
        """Hand the results on."""
        for step in self.steps:
            results = step(results)
        self.call(results, batch)
