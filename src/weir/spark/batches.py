"""What Spark calls for each batch of a streaming query."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from weir.kernel.plan_migration import PhysicalPlans
from weir.partition.resize import Resize
from weir.plan.tree import Join
from weir.query.model import Budget
from weir.runtime.decide import DecidedPlan, Decider, Policy
from weir.runtime.micro_batch import MicroBatches
from weir.shed.allowance import Allowance
from weir.spark.checkpoint_log import CheckpointLog
from weir.spark.engine import SparkEngine
from weir.spark.filesystem import open_folder
from weir.spark.job import Job
from weir.spark.memory import check_memory
from weir.spark.sinks import Sink


class SparkBatches:
    """What `foreachBatch` calls: every call is one batch, and may be a repeat of an earlier one."""

    def __init__(self, spark: SparkSession, job: Job, sink: Sink) -> None:
        self._spark, self._sink = spark, sink
        settings, query = job.settings, job.physical.query
        folder = open_folder(spark, f"{job.checkpoint}/weir")
        plans = PhysicalPlans(query, (job.physical,))
        log = CheckpointLog(folder, settings.batches_to_retain)
        self.engine = SparkEngine(spark, job, sink, folder)
        policy = Policy(query, job.driver_order, settings.idle, settings.adapt, job.scope)
        start = DecidedPlan(job.physical.plan, settings.allowance, settings.reason, job.interim_allowance)
        self._decider = Decider(policy, start, plans, log, self.engine)
        self._batches = MicroBatches[DataFrame](self.engine, log, self._decider, plans, settings.on_null_time)
        self.progress = self._batches.progress

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Run one micro-batch; what fails names its batch, and the next start repeats it."""
        try:
            for _ in self._batches.run(frame, batch):
                raise AssertionError("on Spark results go to the sink")
        except Exception as error:
            where = type(self._sink).__name__
            error.add_note(f"weir: batch {batch} failed ({where}); the next start repeats it")
            raise

    def resize(self, change: Resize) -> None:
        """Go over to another number of partitions with the next batch that is decided."""
        self.engine.resize(change, self._decider.placement)

    def replan(self, plan: Join, allowance: Allowance | None, reason: str) -> None:
        """Migrate to another plan with the next batch that is decided."""
        self._decider.replan(plan, allowance, reason)

    @property
    def budget(self) -> Budget | None:
        """What the query may use; a new one counts from the next batch on."""
        return self._decider.budget

    @budget.setter
    def budget(self, budget: Budget) -> None:
        self._decider.budget = budget
        check_memory(self._spark, budget)

    def close(self) -> None:
        """Leave no analysis behind; called when the last batch is over."""
        self._decider.close()
