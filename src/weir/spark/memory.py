"""Whether Spark has as much memory as a budget allows."""

from __future__ import annotations

import logging

from pyspark.sql import SparkSession

from weir.options import check_budget
from weir.plan.explain import format_bytes
from weir.query.model import Budget
from weir.spark.routing import is_one_host
from weir.units import format_size

_LOG = logging.getLogger("weir")


def check_memory(spark: SparkSession, budget: Budget | None) -> None:
    """Refuse more memory than this machine has; on a cluster, warn if it may not be there."""
    if is_one_host(spark.sparkContext.master or ""):
        check_budget(budget)
        return
    # State is files, which the executors' hosts keep in memory beside the heaps. What the hosts have Spark
    # does not tell, only what it gave to the executors that are there now: more than that may be right.
    there = _of_executors(spark)
    if budget is not None and budget.bytes is not None and 0 < there < budget.bytes:
        _LOG.warning(
            "a budget's memory of %s is more than the executors were given, %s; state that their hosts "
            "cannot keep in memory is read from files, which is slower: give it less, or add executors",
            format_size(budget.bytes),
            format_bytes(there),
        )


def _of_executors(spark: SparkSession) -> int:
    """The heaps of all executors; zero before the first has come."""
    context = spark.sparkContext._jsc.sc()
    # Of those that it knows one is the driver.
    return (len(context.statusTracker().getExecutorInfos()) - 1) * int(context.executorMemory()) << 20
