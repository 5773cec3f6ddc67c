"""Run a lane of `weir-lab storm` as a process that may be killed; write a line of JSON per batch."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import weir
from weir_lab.spark_session import local_session
from weir_lab.storm.feeder import file_of
from weir_lab.storm.join_options import join_options
from weir_lab.storm.record import count_ticks_until
from weir_lab.storm.setup import CORES, CPU, OWN, PROGRESS, STOP, Setup
from weir_lab.storm.spark_joins import chain_joins
from weir_lab.storm.streams import SCHEMA, STREAMS

_LOOK = 0.1
_SETTINGS = {"spark.driver.memory": "3g", "spark.sql.streaming.minBatchesToRetain": "4"}


def main(folder: Path) -> None:
    """Run until the stop file appears or the parent process is gone."""
    setup, parent = Setup.read(folder), os.getppid()
    spark = local_session("weir-lab storm", CORES, _SETTINGS)
    query = _start(spark, setup, folder)
    seen, is_halved = -1, False
    with (folder / PROGRESS).open("a") as lines:
        while not (folder / STOP).exists() and os.getppid() == parent and query.isActive:
            if setup.halved is not None and not is_halved and _has_come(folder, setup.halved):
                is_halved = True
                query.budget = weir.Budget(cpu=CPU, memory=setup.allowed(setup.halved))
            last = query.lastProgress
            if last is not None and last["batchId"] > seen and last["numInputRows"]:
                seen = last["batchId"]
                print(json.dumps(_told(last, setup)), file=lines, flush=True)
            time.sleep(_LOOK)
    failed = query.exception()
    query.stop()
    spark.stop()
    if failed is not None:
        raise SystemExit(str(failed))


def _has_come(folder: Path, tick: int) -> bool:
    return (folder / "in" / STREAMS[0] / file_of(tick)).exists()


def _told(progress: Mapping[str, Any], setup: Setup) -> dict[str, Any]:
    newest = (progress.get("weir") or {}).get("newest")
    # The rows of a batch tell under which budget it was decided, whenever that is read.
    tick = count_ticks_until(min(newest.values()), setup.interval) - 1 if newest else 0
    told = json.loads(json.dumps(progress, default=str))
    return {**told, "budget": setup.allowed(tick), "load": os.getloadavg()[0]}


def _start(spark: Any, setup: Setup, folder: Path) -> Any:
    frames = {}
    for name in STREAMS:
        (folder / "in" / name).mkdir(parents=True, exist_ok=True)
        frames[name] = spark.readStream.schema(SCHEMA).parquet(str(folder / "in" / name))
    asked: Any = (
        chain_joins(frames, setup.interval)
        if setup.lane == OWN
        else weir.join(**join_options(setup), streams=frames)
    )
    writer = asked.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    # Before there is a clock, batches follow each other.
    trigger = writer.trigger(processingTime=f"{round(1000 * setup.interval)} milliseconds")
    return trigger.start(str(folder / "out"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
