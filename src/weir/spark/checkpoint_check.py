"""Check at the start that weir's state and Spark's logs in a checkpoint belong together and are whole.

Spark would go on where a part of its logs is gone, and read rows twice or never; here each case is refused in
a sentence, before Spark reads anything.
"""

from __future__ import annotations

from weir.spark.checkpoint import Checkpoint
from weir.spark.errors import damaged_state
from weir.spark.spark_logs import SparkLogs


def check_logs(checkpoint: Checkpoint, logs: SparkLogs) -> None:
    """Refuse a checkpoint of which some part is missing, damaged, or of another time or query."""
    logs.check_metadata()
    weir, spark, committed = checkpoint.folder.uri, logs.folder.uri, logs.committed
    decisions, record = checkpoint.batches("decision"), checkpoint.manifest_record()
    newest = -1 if record is None else record.manifest.batch
    if checkpoint.id is None and (decisions or record is not None):
        raise damaged_state(f"{weir}/jobs is missing or empty, which says to which query the state belongs")
    if newest < committed:
        missing = (
            f"weir's state in {weir}" if checkpoint.id is None else f"{weir}/manifests/{committed}-*.json"
        )
        raise damaged_state(f"{missing} is missing, and Spark has finished batch {committed} in {spark}")
    if newest > committed + 1:
        last = f"{spark}/commits " + (
            f"ends with batch {committed}" if committed >= 0 else "is empty or missing"
        )
        raise damaged_state(f"{last}, and weir has finished batch {newest} in {weir}")
    if record is not None:
        logs.check(record.spark_logs, newest)
    begun = max(decisions, default=-1)
    if begun > committed and (decision := checkpoint.decision_record(begun)) is not None:
        logs.check(decision.spark_logs, begun)
