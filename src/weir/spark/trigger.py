"""The trigger of a query: its interval, and how long a batch takes from it, Spark's own work included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery


def read_interval(spark: SparkSession, trigger: Mapping[str, Any]) -> float | None:
    """The seconds between two triggers; None if each batch starts when the last one ends."""
    if "processingTime" not in trigger:
        return None
    jvm: Any = spark._jvm
    processing_time = jvm.org.apache.spark.sql.streaming.Trigger.ProcessingTime(trigger["processingTime"])
    return float(processing_time.intervalMs()) / 1000 or None


class Triggers:
    """Estimates what Spark adds to a batch: the time before weir is called, and the commit after it."""

    def __init__(self) -> None:
        self.query: StreamingQuery | None = None
        self._last_batch: tuple[int, float] | None = None
        self._overhead = 0.0
        self._is_first = True

    def add_overhead(self, batch: int, seconds: float) -> float:
        """The seconds of a batch from its trigger to its end, if Spark takes what it took last time."""
        last: Any = None if self.query is None else self.query._jsq.lastProgress()
        if last is not None and self._last_batch is not None and last.batchId() == self._last_batch[0]:
            self._overhead = max(0.0, last.durationMs().get("triggerExecution") / 1000 - self._last_batch[1])
        # Before the first batch after a start Spark initialises much that later batches do not wait for.
        self._last_batch, self._is_first = None if self._is_first else (batch, seconds), False
        return seconds + self._overhead
