"""A Spark of this machine alone, for benchmarks: in this process, or a cluster on loopback."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined] # not in the stubs

if TYPE_CHECKING:
    import pyarrow as pa


def register_predicate(spark: SparkSession, name: str, function: Callable[..., pa.Array]) -> None:
    """Let Spark's SQL call a function of Arrow arrays that is true or false."""
    spark.udf.register(name, arrow_udf(function, "boolean"))


def local_session(name: str, cores: int, settings: Mapping[str, str]) -> SparkSession:
    """A quiet session on loopback whose workers run this very Python; what the settings say wins."""
    usual = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "false",
        # A batch without rows would clean up between two that are measured, out of sight.
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    }
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(f"local[{cores}]").appName(name)
    for key, value in {**usual, **settings}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
