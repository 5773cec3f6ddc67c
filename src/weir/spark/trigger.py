"""When Spark begins a batch, and how long one takes from there to its end, Spark's own part included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery


def interval_of(spark: SparkSession, trigger: Mapping[str, Any]) -> float | None:
    """The seconds between two triggers; None if batches run one after the other."""
    if "processingTime" not in trigger:
        return None
    jvm: Any = spark._jvm
    made = jvm.org.apache.spark.sql.streaming.Trigger.ProcessingTime(trigger["processingTime"])
    return float(made.intervalMs()) / 1000 or None


class Triggers:
    """The part of a batch's time that lies outside our hands: Spark's before it, the commit after it."""

    def __init__(self) -> None:
        self.query: StreamingQuery | None = None
        self._own: tuple[int, float] | None = None
        self._rest = 0.0
        self._is_first = True

    def whole(self, batch: int, seconds: float) -> float:
        """The seconds of a batch from its trigger to its end, if the rest takes what it took last time."""
        last: Any = None if self.query is None else self.query._jsq.lastProgress()
        if last is not None and self._own is not None and last.batchId() == self._own[0]:
            self._rest = max(0.0, last.durationMs().get("triggerExecution") / 1000 - self._own[1])
        # Before the first batch after a start Spark makes much ready that the others need not wait for.
        self._own, self._is_first = None if self._is_first else (batch, seconds), False
        return seconds + self._rest
