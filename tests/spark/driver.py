"""A job in a process of its own, for tests that kill it: three streams of files into parquet files.

Run as `python driver.py SETTINGS`, where SETTINGS is a JSON object: `folder`, `master`, `conf`,
and if wanted `fail_once` = a file that is made when a function fails for the first time, `joins` = what to
ask for instead, several joins at once, each in a folder of its own name, `meet` = the batch at which those
wait for each other and say so, `kill` = the batch in which they die, one at each of PLACES, `hang` = the
batch whose results are never written, `insist` = start when another driver has, and again while that runs,
`pause` = the batch whose manifest is not renamed until there is a file `go`.
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
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

import weir
from weir.runtime.batch_events import listen
from weir.spark import checkpoint_lock
from weir.spark.filesystem import LocalFolder
from weir.spark.query import SparkQuery

TRIPLE: dict[str, Any] = {
    "on": "a.k = b.k AND b.k = c.k AND a.v <= c.v",
    "within": "8 seconds",
    "late": "6 seconds",
    "select": "a.k, a.id AS aid, b.id AS bid, c.id AS cid, c.v",
}
STREAMS = "abc"
# Where a batch may be when its driver dies.
PLACES = (
    "vacuum",  # before anything
    "decide",  # before the decision
    "build",  # during it
    "sync_batch",  # slices are written
    "moved",  # during the step "publish": the first of its result files is there
    "sync_results",  # before the manifest is written
    "commit",  # before it is renamed
    "spark_commit",  # after the manifest, before Spark's own commit
)


def functions() -> dict[str, Any]:
    """A user's function, which workers need not import: the sum leaves 2 when divided by 5."""

    def near(one: pa.Array, other: pa.Array) -> pa.Array:
        total = pc.add(one, other)
        return pc.equal(pc.subtract(total, pc.multiply(pc.divide(total, 5), 5)), 2)

    return {"near": weir.udf(near)}


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


def die_everywhere(batch: int) -> None:
    """One query stops at each place of a batch, whichever comes first; when all have stopped, all die."""
    free, taking = set(PLACES), threading.Lock()
    barrier = threading.Barrier(len(PLACES))
    emitting = threading.local()
    move = LocalFolder.move

    def take(place: str) -> bool:
        with taking:
            is_free = place in free
            free.discard(place)
        return is_free

    def stop() -> None:
        barrier.wait(120)
        threading.Event().wait()

    def check(reached: str, number: int) -> None:
        if number != batch:
            return
        if reached == "publish":
            emitting.stops = take("moved")
        elif take(reached):
            if reached == "build":
                barrier.wait(120)
                threading.Timer(0.06, die).start()  # soon enough to meet its tasks
            else:
                stop()

    def move_and_stop(folder: LocalFolder, source: str, target: str) -> None:
        move(folder, source, target)
        if getattr(emitting, "stops", False):
            stop()

    listen(check)
    LocalFolder.move = move_and_stop  # type: ignore[method-assign] # nothing else stops a sink half-way


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


def meet(queries: int, batch: int) -> None:
    """All queries wait for each other before they publish a batch."""
    barrier = threading.Barrier(queries, lambda: print("met", flush=True))

    def wait(reached: str, number: int) -> None:
        if (reached, number) == ("publish", batch):
            barrier.wait(120)

    listen(wait)


def hang(batch: int) -> None:
    """Say that the batch is about to publish, and go no further."""

    def wait(reached: str, number: int) -> None:
        if (reached, number) == ("publish", batch):
            print("hangs", flush=True)
            threading.Event().wait()

    listen(wait)


def pause(batch: int, go: Path) -> None:
    """Say that the manifest of a batch is about to be renamed, and wait for a file."""
    move = LocalFolder.move

    def wait_and_move(folder: LocalFolder, source: str, target: str) -> None:
        if target.startswith(f"manifests/{batch}-"):
            print("pauses", flush=True)
            while not go.exists():
                time.sleep(0.05)
        move(folder, source, target)

    LocalFolder.move = wait_and_move  # type: ignore[method-assign] # the pause falls after the last check


def frames(spark: SparkSession, folder: Path) -> dict[str, DataFrame]:
    sources = {name: str(folder / "in" / name) for name in STREAMS}
    return {
        name: spark.readStream.schema(spark.read.parquet(path).schema)
        .option("maxFilesPerTrigger", 1)
        .parquet(path)
        for name, path in sources.items()
    }


def start(given: dict[str, DataFrame], asked: dict[str, Any], folder: Path) -> SparkQuery:
    join = weir.join(**given, **{"partitions": 2, **asked})
    writer = join.writeStream.format("parquet").option("path", str(folder / "out"))
    return writer.option("checkpointLocation", str(folder / "ckpt")).trigger(availableNow=True).start()


def insist(given: dict[str, DataFrame], asked: dict[str, Any], folder: Path) -> SparkQuery:
    """After another driver's first results, start again while it runs, with little patience each time."""
    checkpoint_lock._PATIENCE_SECONDS = 0.5
    while not list((folder / "out").glob("part-*")):
        time.sleep(0.1)
    while True:
        try:
            return start(given, asked, folder)
        except weir.QueryError as error:
            print(error, flush=True)


def main(settings: dict[str, Any]) -> None:
    folder = Path(settings["folder"])
    spark = session(settings["master"], settings.get("conf", {}))
    asked = dict(TRIPLE)
    if "fail_once" in settings:
        asked["on"] += " AND sure(a.v, b.v)"
        once = FailOnce(settings["fail_once"])
        asked["functions"] = {"sure": weir.udf(lambda mine, theirs: once(mine))}
    if "kill" in settings:
        die_everywhere(settings["kill"])
    if "meet" in settings:
        meet(len(settings["joins"]), settings["meet"])
    joins = {name: {**one, "functions": functions()} for name, one in settings.get("joins", {}).items()}
    given = frames(spark, folder)
    if "hang" in settings:
        hang(settings["hang"])
    if "pause" in settings:
        pause(settings["pause"], folder / "go")
    begin = insist if "insist" in settings else start
    queries = [begin(given, one, folder / name) for name, one in (joins or {"": asked}).items()]
    for query in queries:
        try:
            query.awaitTermination()
        except weir.QueryError as error:
            print(type(error).__name__, error, flush=True)
            raise
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
