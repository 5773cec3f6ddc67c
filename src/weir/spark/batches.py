"""Run the micro-batches of a streaming query, one for each call of `foreachBatch`."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from weir.kernel.plan_migration import PhysicalPlans
from weir.runtime.decide import Decider
from weir.runtime.micro_batch import MicroBatches
from weir.spark.checkpoint import CheckpointLog
from weir.spark.engine import Job, SparkEngine


class SparkBatches:
    """What `foreachBatch` calls: every call is one batch, and may be a repeat of an earlier one."""

    def __init__(self, spark: SparkSession, job: Job) -> None:
        self._sink = job.sink
        plans = PhysicalPlans(job.policy.query, (job.plan,))
        log = CheckpointLog(job.folder, job.batches_to_retain)
        self.engine = SparkEngine(spark, job)
        self.decider = Decider(job.policy, job.start, plans, log, self.engine)
        self._batches = MicroBatches[DataFrame](self.engine, log, self.decider, plans, job.on_null_time)
        self.progress = self._batches.progress

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Run one micro-batch; an error gets a note that names the batch."""
        try:
            for _ in self._batches.run(rows, batch):
                raise AssertionError("on Spark results go to the sink")
        except Exception as error:
            sink = type(self._sink).__name__
            error.add_note(f"weir: batch {batch} failed ({sink}); the next start repeats it")
            raise
