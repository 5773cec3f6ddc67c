"""The job that `weir bench crash` kills: a join of files to parquet, in a process of its own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import weir
from weir.bench.feed import streams
from weir.bench.session import session

STARTED = "started"
ON = "a.k = b.k AND b.k = c.k"
WITHIN = "3 seconds"
SELECT = "a.k, a.x AS ax, b.x AS bx, c.x AS cx"


def main(folder: Path, once: bool) -> None:
    """Join until killed, or with `once` until all files are done."""
    # A task whose worker died is tried again, as on a cluster; plain local mode gives up at once.
    spark = session("weir bench crash", **{"spark.master": "local[2,4]", "spark.driver.memory": "1g"})
    spark.conf.set("spark.sql.streaming.minBatchesToRetain", "4")
    spark.conf.set("spark.sql.streaming.pollingDelay", "50ms")
    query = _start(spark, folder, once)
    print(STARTED, flush=True)
    query.awaitTermination()


def _start(spark: Any, folder: Path, once: bool) -> Any:
    joined: Any = weir.join(
        streams=streams(spark, folder / "in", files_per_trigger=1), on=ON, within=WITHIN, select=SELECT
    )
    writer = joined.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    trigger: dict[str, Any] = {"availableNow": True} if once else {"processingTime": "0 seconds"}
    return writer.trigger(**trigger).start(str(folder / "out"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), once="--once" in sys.argv)
