"""The Spark half of `weir.testing`: rows as files, one per stream and micro-batch, and results read back."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from weir.spark.join import SparkJoin

_FIRST_MODIFIED = 1_600_000_000
_TIMEOUT_SECONDS = 300.0


def stream_files(
    spark: SparkSession,
    schemas: Mapping[str, pa.Schema],
    batches: Sequence[Mapping[str, pa.Table]],
    folder: Path,
) -> dict[str, DataFrame]:
    """Write the rows of each batch, and return streams that read one file of each in every micro-batch."""
    for name in schemas:
        (folder / "in" / name).mkdir(parents=True)
    for number, batch in enumerate(batches):
        for name, table in batch.items():
            path = folder / "in" / name / f"{number:06d}.parquet"
            pq.write_table(table, path)
            os.utime(path, (_FIRST_MODIFIED + number,) * 2)  # Spark reads files in the order of their change
    return {
        name: spark.readStream.schema(from_arrow_schema(schema, prefer_timestamp_ntz=True))
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder / "in" / name))
        for name, schema in schemas.items()
    }


def run_available(join: SparkJoin, folder: Path, progress: dict[int, dict[str, Any]]) -> None:
    """Run a join from where its checkpoint is to the end, and note the progress of each batch that ends."""
    writer = join.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(folder / "out"))
    try:
        if not query.awaitTermination(_TIMEOUT_SECONDS):
            raise TimeoutError(f"the query still runs after {_TIMEOUT_SECONDS:.0f} seconds")
    finally:
        query.stop()
        sections = {shown["batchId"]: shown["weir"] for shown in query.recentProgress}
        progress |= {number: section for number, section in sections.items() if section is not None}


def read_results(folder: Path, batch: int) -> pa.Table:
    """The results of one batch."""
    files = sorted((folder / "out").glob(f"part-*-{batch:09d}-*.parquet"))
    return pa.concat_tables([pa.table({}), *map(pq.read_table, files)], promote_options="default")
