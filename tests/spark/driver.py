"""A job in a process of its own, for tests that kill it: three streams of files into parquet files.

Run as `python driver.py SETTINGS`, where SETTINGS is a JSON object: `folder`, `master`, `conf`,
and if wanted `kill` = [phase, batch, seconds to wait], `fail_once` = a file that is made when a function
fails for the first time.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

import weir
from weir.spark import listen
from weir.spark.folder import LocalFolder

TRIPLE: dict[str, Any] = {
    "on": "a.k = b.k AND b.k = c.k AND a.v <= c.v",
    "within": "8 seconds",
    "late": "6 seconds",
    "select": "a.k, a.id AS aid, b.id AS bid, c.id AS cid, c.v",
}
STREAMS = "abc"


class FailOnce:
    """True for all rows, but the first call anywhere fails."""

    def __init__(self, marker: str) -> None:
        self._marker = marker

    def __call__(self, values: pa.Array) -> pa.Array:
        try:
            Path(self._marker).touch(exist_ok=False)
        except FileExistsError:
            return pa.array([True] * len(values))
        raise ConnectionError("the first call fails")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_at(phase: str, batch: int, wait: float) -> None:
    """Die at a phase of a batch, or some time after it; at "moved", when its first result file is visible."""

    def check(reached: str, number: int) -> None:
        if (phase, reached, number) == ("moved", "emit", batch):
            die_after_a_move()
        elif (reached, number) == (phase, batch):
            threading.Timer(wait, die).start() if wait else die()

    listen(check)


def die_after_a_move() -> None:
    move = LocalFolder.move

    def last(folder: LocalFolder, source: str, target: str) -> None:
        move(folder, source, target)
        die()

    LocalFolder.move = last  # type: ignore[method-assign] # nothing else stops a sink half-way for sure


def session(master: str, conf: dict[str, str]) -> SparkSession:
    builder = SparkSession.builder.master(master).appName("weir driver")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        **conf,
    }.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main(settings: dict[str, Any]) -> None:
    folder = Path(settings["folder"])
    spark = session(settings["master"], settings.get("conf", {}))
    sources = {name: str(folder / "in" / name) for name in STREAMS}
    frames = {
        name: spark.readStream.schema(spark.read.parquet(path).schema)
        .option("maxFilesPerTrigger", 1)
        .parquet(path)
        for name, path in sources.items()
    }
    asked = dict(TRIPLE)
    if "fail_once" in settings:
        asked["on"] += " AND sure(a.v, b.v)"
        once = FailOnce(settings["fail_once"])
        asked["functions"] = {"sure": weir.udf(lambda mine, theirs: once(mine))}
    if "kill" in settings:
        kill_at(*settings["kill"])
    join = weir.join(**frames, **asked, partitions=2)
    writer = join.writeStream.format("parquet").option("path", str(folder / "out"))
    writer = writer.option("checkpointLocation", str(folder / "ckpt")).trigger(availableNow=True)
    query = writer.start()
    while not query.awaitTermination(0.2):
        print("batches", len(query.recentProgress), flush=True)
    print("done", time.monotonic(), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
