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
    manifests, decisions = checkpoint.batches("manifest"), checkpoint.batches("decision")
    if checkpoint.id is None and (manifests or decisions):
        raise damaged_state(
            f"{weir}/jobs is missing or empty, which says what the state in {weir} belongs to"
        )
    newest = max(manifests, default=-1)
    if newest < committed:
        missing = f"{weir}/manifests/{committed}-*.json is" if newest >= 0 else f"weir's state in {weir} is"
        raise damaged_state(f"{missing} missing, and Spark has finished batch {committed} in {spark}")
    if newest > committed + 1:
        raise damaged_state(
            f"{spark}/commits ends with batch {committed}, and weir's state in {weir} is that after batch "
            f"{newest}: entries of Spark's logs are missing"
        )
    record = checkpoint.manifest_record()
    if record is not None:
        logs.check(record.spark_logs, newest)
    begun = max(decisions, default=-1)
    if begun > max(committed, newest) and (decision := checkpoint.decision_record(begun)) is not None:
        logs.check(decision.spark_logs, begun)
