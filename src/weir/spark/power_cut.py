"""Mend a checkpoint after a power cut, before anything reads it.

What a batch wrote before `sync_batch` may be torn, lost or back to what it was, each file by itself; what it
published is then not there. So all of such a batch is removed, and the query goes on from the newest manifest
as if the batch had never begun. Whatever a manifest rests on was synced before it: if that is torn, it is
damage of another kind, and reading it will say so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from weir.errors import QueryError
from weir.spark.checkpoint import Checkpoint, SparkLogSums
from weir.spark.epoch import list_epochs
from weir.spark.errors import DamagedStateError, damaged_state
from weir.spark.file_sinks import list_files
from weir.spark.filesystem import Folder, LocalFolder
from weir.spark.output_owner import Owner, is_owned
from weir.spark.result_names import ResultNames
from weir.spark.sealed_json import unseal
from weir.spark.state_names import BatchAndEpoch, name_batch_file
from weir.spark.torn_logs import LogEntries, TornLogs, find_torn

_LOG = logging.getLogger("weir")


def mend_checkpoint(location: Folder, checkpoint: Checkpoint, open_uri: Callable[[str], Folder]) -> None:
    """Remove what a power cut has torn, from a checkpoint that nobody else uses.

    `location` has Spark's logs and weir's folder. Of folders of results, `open_uri` tells what is published.
    """
    if not isinstance(location, LocalFolder) or not list_epochs(checkpoint.folder):
        return
    torn, decisions = find_torn_batch(LogEntries(location), checkpoint)
    if torn.is_begun:
        _refuse_published(location, checkpoint, open_uri)
    _remove(location, torn.names)
    _remove(checkpoint.folder, decisions)


def _remove(folder: Folder, names: Iterable[str]) -> None:
    for name in names:
        _LOG.warning("%s/%s is removed: its batch was not written to the disk to its end", folder.uri, name)
        LogEntries(folder).remove(name)


def open_output(location: Folder, checkpoint: Checkpoint, open_uri: Callable[[str], Folder]) -> Folder | None:
    """Open the folder of results; None if there is none that is known, or it is another checkpoint's."""
    job = checkpoint.read_job()
    if job is None or job.target is None or job.target.path is None:
        return None
    folder = open_uri(job.target.path)
    return folder if is_owned(folder, Owner(job.id, location.uri)) else None


def find_torn_batch(logs: LogEntries, checkpoint: Checkpoint) -> tuple[TornLogs, list[str]]:
    """Find what is torn of the batch after the newest manifest: entries of Spark's logs, and decisions."""
    record = checkpoint.manifest_record()
    last, needed = (-1, {}) if record is None else (record.manifest.batch, record.spark_logs)
    decisions = [file for file in checkpoint.files("decision") if file.batch > last]
    whole = [file for file in decisions if _read(checkpoint, file) is not None]
    begun = _read(checkpoint, whole[-1]) if whole else None
    torn = find_torn(logs, last, needed, begun)
    dropped = decisions if torn.is_begun else [file for file in decisions if file not in whole]
    of_last, torn_of_last = divide_decisions(checkpoint, last)
    dropped += torn_of_last if of_last else []  # of a repeat, which follows the whole one
    return torn, [name_batch_file("decision", file) for file in dropped]


def divide_decisions(checkpoint: Checkpoint, batch: int) -> tuple[list[BatchAndEpoch], list[BatchAndEpoch]]:
    """Divide the decisions of a batch into those that are whole and those that are torn."""
    decisions = [file for file in checkpoint.files("decision") if file.batch == batch]
    whole = [file for file in decisions if _read(checkpoint, file) is not None]
    return whole, [file for file in decisions if file not in whole]


def _read(checkpoint: Checkpoint, decision: BatchAndEpoch) -> SparkLogSums | None:
    """The entries of Spark's logs that a decision was made on; None if it is torn."""
    data = checkpoint.folder.read(name_batch_file("decision", decision)) or b""
    return None if unseal(data) is None else checkpoint.read_decision(decision).spark_logs


def describe_published(checkpoint: Checkpoint, output: Folder) -> str | None:
    """Say what is wrong if results of a batch that is torn are published: that is no work of a power cut."""
    batch, names = max(checkpoint.batches("manifest"), default=-1) + 1, ResultNames(checkpoint.id or "")
    if not any(names.is_published(path, batch) for path in list_files(output)):
        return None
    return (
        f"the decision of batch {batch}, or an entry of Spark's logs that it was made on, is missing or "
        f"damaged in {checkpoint.folder.uri.removesuffix('/weir')}, and its results are published"
    )


def _refuse_published(location: Folder, checkpoint: Checkpoint, open_uri: Callable[[str], Folder]) -> None:
    try:
        output = open_output(location, checkpoint, open_uri)
    except DamagedStateError:
        raise
    except (QueryError, OSError):  # it is out of reach, and this start may write elsewhere
        return
    if output is not None and (damage := describe_published(checkpoint, output)):
        raise damaged_state(damage)
