"""Check at the start that weir's state and Spark's logs in a checkpoint belong together and are whole.

Spark would go on where a part of its logs is gone, and read rows twice or never; here each case is refused in
a sentence, before Spark reads anything.
"""

from __future__ import annotations

from weir.spark.checkpoint import Checkpoint
from weir.spark.epoch import list_epochs
from weir.spark.errors import damaged_state, lost_state
from weir.spark.spark_logs import SparkLogs
from weir.spark.torn_logs import LogEntries


def check_logs(checkpoint: Checkpoint, logs: SparkLogs) -> None:
    """Refuse a checkpoint of which some part is missing, damaged, or of another time or query."""
    weir, spark, committed = checkpoint.folder.uri, logs.folder.uri, logs.committed
    decisions, record = checkpoint.batches("decision"), checkpoint.manifest_record()
    newest, needed = (-1, {}) if record is None else (record.manifest.batch, record.spark_logs)
    if checkpoint.id is None and (decisions or record is not None):
        raise lost_state(f"{weir}/jobs is missing or empty, which says to which query the state belongs")
    if newest == committed == -1 and logs.folder.names("offsets") and not _has_started(checkpoint):
        raise lost_state(f"weir's state in {weir} is missing, and Spark has begun a batch in {spark}")
    if newest < committed:
        finished = f"and Spark has finished batch {committed} in {spark}"
        if checkpoint.id is None:
            raise lost_state(f"weir's state in {weir} is missing, {finished}")
        raise damaged_state(f"{weir}/manifests/{committed}-*.json is missing, {finished}")
    if newest > committed + 1:
        finished = f"and weir has finished batch {newest} in {weir}"
        if committed < 0:
            raise lost_state(f"{spark}/commits is empty or missing, {finished}")
        raise damaged_state(f"{spark}/commits ends with batch {committed}, {finished}")
    logs.check_metadata(needed, newest)
    logs.check(needed, newest)
    begun = max(decisions, default=-1)
    if begun > committed and (decision := checkpoint.decision_record(begun)) is not None:
        logs.check(decision.spark_logs, begun)
    entries = LogEntries(logs.folder)
    for name in (f"commits/{committed}", *needed, *entries.list_new(newest, needed)):
        if entries.is_refused(name):
            raise damaged_state(f"{spark}/{name} is damaged, or Hadoop's checksums beside it are")


def _has_started(checkpoint: Checkpoint) -> bool:
    """True if a start has left its mark; without one, a new id would give what Spark has begun once more."""
    return checkpoint.id is not None or bool(list_epochs(checkpoint.folder))
