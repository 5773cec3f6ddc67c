"""The job that `weir-lab bench crash` and `power_cut` kill: a join of files to parquet, in a process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import weir
from weir.options import Durability
from weir_lab.bench.feed import streams
from weir_lab.bench.session import session

STARTED = "started"
ON = "a.k = b.k AND b.k = c.k"
WITHIN = "3 seconds"
SELECT = "a.k, a.x AS ax, b.x AS bx, c.x AS cx"


_SETTINGS = {
    "spark.driver.memory": "512m",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    # Both executors can be lost over and over while one task waits for them.
    "spark.task.maxFailures": "16",
    "spark.stage.maxConsecutiveAttempts": "16",
}


def main(folder: Path, master: str, once: bool, durability: Durability) -> None:
    """Join until killed, or with `once` until all files are done."""
    spark = session("weir-lab bench crash", **{"spark.master": master, **_SETTINGS})
    spark.conf.set("spark.sql.streaming.minBatchesToRetain", "4")
    spark.conf.set("spark.sql.streaming.pollingDelay", "50ms")
    query = _start(spark, folder, once, durability)
    print(STARTED, flush=True)
    query.awaitTermination()


def _start(spark: Any, folder: Path, once: bool, durability: Durability) -> Any:
    joined: Any = weir.join(
        streams=streams(spark, folder / "in", files_per_trigger=1),
        on=ON,
        within=WITHIN,
        select=SELECT,
        durability=durability,
    )
    writer = joined.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    trigger: dict[str, Any] = {"availableNow": True} if once else {"processingTime": "0 seconds"}
    return writer.trigger(**trigger).start(str(folder / "out"))


if __name__ == "__main__":
    durability: Durability = "process" if "--unsynced" in sys.argv else "power"
    main(Path(sys.argv[1]), sys.argv[2], "--once" in sys.argv, durability)
