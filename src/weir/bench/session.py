"""The Spark that the benchmarks run on: local, two cores, quiet."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from weir.errors import QueryError

CORES = 2
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
HDFS_BACKED = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"

_SETTINGS: Mapping[str, Any] = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": str(CORES),
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "6g",
    "spark.ui.showConsoleProgress": "false",
    # Queries take turns: one that waits must not spend its time looking for files.
    "spark.sql.streaming.pollingDelay": "1s",
    # A batch without rows would clean up between two that are measured, out of sight.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}


def session(name: str, **settings: str) -> Any:
    """A SparkSession of two cores with the web page off."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise QueryError("this benchmark needs Spark: pip install 'weir[spark]'") from None
    builder = SparkSession.builder.master(f"local[{CORES}]").appName(name)
    for key, value in {**_SETTINGS, **settings}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
