"""Checks before a query starts: memory for its budget, and workers that reach the checkpoint."""

from __future__ import annotations

import logging
import os
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from pyspark import inheritable_thread_target
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from weir.errors import QueryError
from weir.options import check_budget
from weir.plan.explain import format_bytes
from weir.query.model import Budget
from weir.spark.failure import find_own_error
from weir.spark.filesystem import Folder
from weir.spark.routing import is_one_host
from weir.spark.worker_files import AccessTask, local_path
from weir.units import format_size

_LOG = logging.getLogger("weir")


def check_memory(spark: SparkSession, budget: Budget | None) -> None:
    """Refuse a budget beyond this machine's memory; on a cluster, warn if executors may lack it."""
    if is_one_host(spark.sparkContext.master or ""):
        check_budget(budget)
        return
    # State is files in the page cache of the executors' hosts, beside the heaps. Spark does not tell the
    # memory of hosts, only the heaps of the executors that run now, so a larger budget may be right.
    context = spark.sparkContext._jsc.sc()
    executors = len(context.statusTracker().getExecutorInfos()) - 1  # the driver is listed too
    available = executors * int(context.executorMemory()) << 20
    if budget is not None and budget.bytes is not None and 0 < available < budget.bytes:
        _LOG.warning(
            "a budget's memory of %s is more than the executors were given, %s; state that their hosts "
            "cannot keep in memory is read from files, which is slower: give it less, or add executors",
            format_size(budget.bytes),
            format_bytes(available),
        )


def use_own_python(spark: SparkSession) -> None:
    """On one host, let workers run the driver's Python, unless the user has chosen one.

    Spark would take the `python3` of the PATH, which is another if no virtual environment is activated.
    """
    context = spark.sparkContext
    chosen = "PYSPARK_PYTHON" in os.environ or context.getConf().get("spark.pyspark.python")
    if not chosen and context.pythonExec == "python3" and is_one_host(context.master or ""):
        context.pythonExec = sys.executable


class WorkerCheck:
    """Checks the driver, and by `check_workers` in a thread the workers, whose start takes seconds."""

    def __init__(self, spark: SparkSession, folder: Folder) -> None:
        try:
            folder.write("slices/.keep", b"")
        except OSError as error:
            raise QueryError(f"the checkpoint {folder.uri} cannot be written: {error}") from error
        executor = ThreadPoolExecutor(1, "weir-worker-check")
        check = inheritable_thread_target(spark)(partial(check_workers, spark, folder))
        self._done = executor.submit(check)
        executor.shutdown(wait=False)

    def wait(self) -> None:
        """Wait for the end of the check, and raise the error that it ended with."""
        self._done.result()


def check_workers(spark: SparkSession, folder: Folder) -> None:
    """Write a file of the checkpoint in a task, and read it there and on the driver."""
    name = f"slices/.probe-{uuid.uuid4().hex[:8]}"
    try:
        task = AccessTask(f"{folder.uri}/{name}")
        rows = spark.range(0, 1, 1, 1).mapInArrow(task, "read binary").collect()
    except PySparkException as error:
        if (own := find_own_error(error)) is not None:
            raise own from None
        lines = str(error).strip().splitlines()
        cause = next((line for line in reversed(lines) if "Error" in line or "MISMATCH" in line), lines[0])
        raise QueryError(
            f"the workers cannot run this query or write its checkpoint {folder.uri}: {cause.strip()}; "
            "each needs the driver's Python version with weir, pyarrow and numpy, and access to that path; "
            f"set PYSPARK_PYTHON to such a Python, like {sys.executable}"
        ) from error
    written = folder.read(name)
    folder.delete(name)
    if not rows or bytes(rows[0].read) != b"weir" or written != b"weir":
        where = "is on this host only" if local_path(folder.uri) else "is not the same for all"
        raise QueryError(
            f"the checkpoint {folder.uri} {where}: what a worker writes there, the driver cannot read; "
            "use a path that the driver and all workers share"
        )
