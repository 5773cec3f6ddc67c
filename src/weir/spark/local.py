"""A Spark of this machine alone, for benchmarks: in this process, or a cluster on loopback."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession


def local_session(name: str, cores: int, settings: Mapping[str, str]) -> SparkSession:
    """A session on loopback whose workers run this very Python; `spark.master` in the settings wins."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(f"local[{cores}]").appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
