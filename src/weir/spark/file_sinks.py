"""Sinks that are files in a folder: complete when they appear, and replaced by a repeated batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from weir.spark.disk_space import name_full_disk
from weir.spark.filesystem import Folder
from weir.spark.result_log import ResultLog
from weir.spark.result_names import ResultNames
from weir.spark.sink_batch import SinkBatch
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
        return ResultFiles(self.folder.uri.rstrip("/"), self.names.id, compression=self.compression)

    def publish(self, batch: SinkBatch, files: Sequence[str]) -> None:
        """Rename the files from the names of their tasks to those of results."""
        _replace_batch(self, batch, {hidden: self.names.reveal(hidden) for hidden in files})

    def has_published(self, batch: int, epoch: int) -> bool:
        """True if results of a batch can be seen; older drivers can publish no more of it."""
        return withdraw_hidden(self.folder, self.names, batch, epoch)


@dataclass(frozen=True)
class FileSink:
    """Files of any format that Spark writes, renamed after the batch when they are complete."""

    folder: Folder
    names: ResultNames
    format: str
    options: Mapping[str, str]
    partition_by: tuple[str, ...]
    log: ResultLog | None = None

    def emit(self, results: DataFrame, batch: SinkBatch) -> None:
        """Write into a hidden folder, then move the files."""
        hidden = self.names.name_folder(batch.number, batch.epoch)
        writer, path = (
            results.write.format(self.format).options(**self.options),
            f"{self.folder.uri}/{hidden}",
        )
        with name_full_disk(path, "on its disk and on that of spark.local.dir"):
            writer.mode("overwrite").partitionBy(*self.partition_by).save(path)
        targets: dict[str, str] = {}
        for source in list_files(self.folder, hidden):
            below, slash, file = source.removeprefix(f"{hidden}/").rpartition("/")
            # Spark's first task writes a file even without rows, and other readers refuse an empty one.
            if file.startswith("part-") and self.folder.size(source):
                ending = file.split(".", 1)[1]
                name = self.names.publish(batch.number, len(targets), ending)
                targets[source] = f"{below}{slash}{name}"
        for below in {target.rpartition("/")[0] for target in targets.values()} - {""}:
            self.folder.write(f"{below}/_folder", b"")
        _replace_batch(self, batch, targets)
        self.folder.delete(hidden)

    def has_published(self, batch: int, epoch: int) -> bool:
        """True if results of a batch can be seen; older drivers can publish no more of it."""
        return withdraw_hidden(self.folder, self.names, batch, epoch)


def _replace_batch(sink: ParquetSink | FileSink, batch: SinkBatch, targets: Mapping[str, str]) -> None:
    """Rename files; if asked to, delete others of this batch, and hidden ones of any, of this query."""
    folder, names, log = sink.folder, sink.names, sink.log
    batch.before_publish(folder, list(targets))
    if log is not None and log.holds(batch.number):
        for source in targets:  # a repeat: the files are equal in sum, but perhaps not one by one
            folder.delete(source)
        return
    for source, target in targets.items():
        folder.move(source, target)
    if log is not None and targets:
        batch.before_listing()  # or a cut could leave the entry, but not the files
        log.add(batch.number, targets.values())
    if not batch.cleans_up:
        return
    published = set(targets.values())
    for path in list_files(folder):
        is_outdated = names.is_published(path, batch.number) and path not in published
        if is_outdated or names.is_hidden(path, batch.epoch):
            folder.delete(path)


def sweep_hidden(folder: Folder, names: ResultNames, epoch: int | None = None) -> None:
    """Delete what drivers up to an epoch, or all, have not published."""
    for name in folder.names():
        if names.is_hidden(name, epoch):
            folder.delete(name)


def withdraw_hidden(folder: Folder, names: ResultNames, batch: int, epoch: int) -> bool:
    """Delete what older drivers have not published; True if some of a batch is, be it only in part.

    A driver that was paused before it renames its files cannot do so afterwards, or they are seen here.
    """
    sweep_hidden(folder, names, epoch)
    return any(names.is_published(path, batch) for path in list_files(folder))


def list_files(folder: Folder, below: str = "") -> list[str]:
    """The names in a folder, and in the folders of partition values below it."""
    files = []
    for name in folder.names(below):
        path = f"{below}/{name}" if below else name
        files += list_files(folder, path) if "=" in name and not name.startswith("part-") else [path]
    return files
