"""The Spark that the benchmarks run on: local, two cores, quiet."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import Any

from weir.errors import QueryError
from weir_lab.spark_session import local_session

CORES = 2
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
HDFS_BACKED = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"

_SETTINGS: Mapping[str, Any] = {
    "spark.driver.memory": "6g",
    # Queries take turns: one that waits must not spend its time looking for files.
    "spark.sql.streaming.pollingDelay": "1s",
}


def session(name: str, **settings: str) -> Any:
    """A SparkSession of two cores with the web page off."""
    return local_session(name, CORES, {**_SETTINGS, **settings})


def check_java() -> None:
    """Refuse to begin what ends on Spark where Spark cannot start."""
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        raise QueryError("Spark needs Java 17 or later on the PATH or in JAVA_HOME, and there is none")
