"""Sinks that are files in a folder: complete when they appear, and replaced by a repeated batch."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from weir.spark.filesystem import Folder
from weir.spark.result_log import ResultLog
from weir.spark.task import ResultFiles


@dataclass(frozen=True)
class ParquetSink:
    """Parquet files in one folder, each complete when it appears; a repeated batch replaces its own."""

    folder: Folder
    compression: str
    log: ResultLog | None = None

    @property
    def results(self) -> ResultFiles:
        """The same folder, where workers use hidden names."""
        return ResultFiles(self.folder.uri.rstrip("/"), self.compression)

    def publish(self, batch: int, files: Sequence[str], cleans_up: bool) -> None:
        """Rename the files from `_part-<batch>-<partition>-<attempt>` to `part-<batch>-<partition>-0`."""
        names = {hidden: re.sub(r"^_(part-\d+-\d+)-\w+\.", r"\1-0.", hidden) for hidden in files}
        _replace_batch(self.folder, batch, names, cleans_up, self.log)


@dataclass(frozen=True)
class FileSink:
    """Files of any format that Spark writes, renamed after the batch when they are complete."""

    folder: Folder
    format: str
    options: Mapping[str, str]
    partition_by: tuple[str, ...]
    log: ResultLog | None = None

    def emit(self, results: DataFrame, batch: int, cleans_up: bool) -> None:
        """Write into a hidden folder, then move the files."""
        hidden = f"_batch-{batch:09d}"
        writer = results.write.format(self.format).options(**self.options).mode("overwrite")
        writer.partitionBy(*self.partition_by).save(f"{self.folder.uri}/{hidden}")
        names: dict[str, str] = {}
        for source in _list_files(self.folder, hidden):
            below, slash, file = source.removeprefix(f"{hidden}/").rpartition("/")
            # Spark's first task writes a file even without rows, and other readers refuse an empty one.
            if file.startswith("part-") and self.folder.size(source):
                ending = file.split(".", 1)[1]
                names[source] = f"{below}{slash}part-{batch:09d}-{len(names):04d}-0.{ending}"
        for below in {target.rpartition("/")[0] for target in names.values()} - {""}:
            self.folder.write(f"{below}/_folder", b"")
        _replace_batch(self.folder, batch, names, cleans_up, self.log)
        self.folder.delete(hidden)


def _replace_batch(
    folder: Folder, batch: int, names: Mapping[str, str], cleans_up: bool, log: ResultLog | None
) -> None:
    """Rename files; with `cleans_up`, delete other files of this batch, and hidden ones of any batch."""
    if log is not None and log.holds(names.values()):
        for source in names:  # a repeat: the files are equal in sum, but perhaps not one by one
            folder.delete(source)
        return
    for source, target in names.items():
        folder.move(source, target)
    if log is not None:
        log.add(names.values())
    if not cleans_up:
        return
    published = set(names.values())
    leftover = re.compile(rf"(.*/)?(_part-|part-{batch:09d}-).*")
    for name in _list_files(folder):
        if leftover.fullmatch(name) and name not in published:
            folder.delete(name)


def has_published(folder: Folder, batch: int) -> bool:
    """True if a folder of result files holds some of a batch, be it only in part."""
    return any(re.fullmatch(rf"(.*/)?part-{batch:09d}-.*", name) for name in _list_files(folder))


def _list_files(folder: Folder, below: str = "") -> list[str]:
    """The names in a folder, and in the folders of partition values below it."""
    files = []
    for name in folder.names(below):
        path = f"{below}/{name}" if below else name
        files += _list_files(folder, path) if "=" in name and not name.startswith("part-") else [path]
    return files
