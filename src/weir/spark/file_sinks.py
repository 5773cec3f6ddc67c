"""Sinks that are files in a folder: complete when they appear, and replaced by a repeated batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from weir.spark.disk_space import name_full_disk
from weir.spark.filesystem import Folder
from weir.spark.result_log import ResultLog
from weir.spark.result_names import ResultNames
from weir.spark.task import ResultFiles


@dataclass(frozen=True)
class ParquetSink:
    """Parquet files in one folder, each complete when it appears; a repeated batch replaces its own."""

    folder: Folder
    names: ResultNames
    compression: str
    log: ResultLog | None = None

    @property
    def results(self) -> ResultFiles:
        """The same folder, where workers use hidden names."""
        return ResultFiles(self.folder.uri.rstrip("/"), self.names.id, self.compression)

    def publish(self, batch: int, files: Sequence[str], cleans_up: bool) -> None:
        """Rename the files from the names of their tasks to those of results."""
        targets = {hidden: self.names.reveal(hidden) for hidden in files}
        _replace_batch(self, batch, targets, cleans_up)


@dataclass(frozen=True)
class FileSink:
    """Files of any format that Spark writes, renamed after the batch when they are complete."""

    folder: Folder
    names: ResultNames
    format: str
    options: Mapping[str, str]
    partition_by: tuple[str, ...]
    log: ResultLog | None = None

    def emit(self, results: DataFrame, batch: int, cleans_up: bool) -> None:
        """Write into a hidden folder, then move the files."""
        hidden = self.names.name_folder(batch)
        writer, path = (
            results.write.format(self.format).options(**self.options),
            f"{self.folder.uri}/{hidden}",
        )
        with name_full_disk(path, "on its disk and on that of spark.local.dir"):
            writer.mode("overwrite").partitionBy(*self.partition_by).save(path)
        targets: dict[str, str] = {}
        for source in _list_files(self.folder, hidden):
            below, slash, file = source.removeprefix(f"{hidden}/").rpartition("/")
            # Spark's first task writes a file even without rows, and other readers refuse an empty one.
            if file.startswith("part-") and self.folder.size(source):
                ending = file.split(".", 1)[1]
                targets[source] = f"{below}{slash}{self.names.publish(batch, len(targets), ending)}"
        for below in {target.rpartition("/")[0] for target in targets.values()} - {""}:
            self.folder.write(f"{below}/_folder", b"")
        _replace_batch(self, batch, targets, cleans_up)
        self.folder.delete(hidden)


def _replace_batch(
    sink: ParquetSink | FileSink, batch: int, targets: Mapping[str, str], cleans_up: bool
) -> None:
    """Rename files; with `cleans_up`, delete others of this batch, and hidden ones of any, of this query."""
    folder, names, log = sink.folder, sink.names, sink.log
    if log is not None and log.holds(targets.values()):
        for source in targets:  # a repeat: the files are equal in sum, but perhaps not one by one
            folder.delete(source)
        return
    for source, target in targets.items():
        folder.move(source, target)
    if log is not None:
        log.add(targets.values())
    if not cleans_up:
        return
    published = set(targets.values())
    for path in _list_files(folder):
        if names.is_hidden(path) or (names.is_published(path, batch) and path not in published):
            folder.delete(path)


def sweep_hidden(folder: Folder, names: ResultNames) -> None:
    """Delete what failed attempts of a query left behind; no batch of it may be running."""
    for name in folder.names():
        if names.is_hidden(name):
            folder.delete(name)


def has_published(folder: Folder, names: ResultNames, batch: int) -> bool:
    """True if a folder of result files holds some of a query's batch, be it only in part."""
    return any(names.is_published(path, batch) for path in _list_files(folder))


def _list_files(folder: Folder, below: str = "") -> list[str]:
    """The names in a folder, and in the folders of partition values below it."""
    files = []
    for name in folder.names(below):
        path = f"{below}/{name}" if below else name
        files += _list_files(folder, path) if "=" in name and not name.startswith("part-") else [path]
    return files
