"""The job whose processes are killed: attacked queries, side by side in one driver.

Run as `python -m weir_lab.attack.job SETTINGS`, a JSON object: `folders` of the queries, their `kind` and
`format`, the `master` of Spark, whether to end with the rows that are there (`once`), and with `kill` the
batch in which the driver dies, with each query at another of PLACES.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from weir.runtime.batch_events import PHASES, listen
from weir.spark.filesystem import LocalFolder
from weir_lab.attack.target import Target
from weir_lab.bench.processes import end_session
from weir_lab.bench.session import session

STARTED = "started"
# Every step, before which a query stops, and in the midst of publishing: the first of its files is there.
PLACES = (*PHASES, "moved")
_SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    # Both executors can be lost over and over while one task waits for them.
    "spark.task.maxFailures": "16",
    "spark.stage.maxConsecutiveAttempts": "16",
    "spark.sql.streaming.minBatchesToRetain": "4",
    "spark.sql.streaming.pollingDelay": "50ms",
}
_MEETING_SECONDS = 120.0
_INTO_BUILD_SECONDS = 0.06  # soon enough to meet its tasks


@contextmanager
def job(log: Path, settings: dict[str, Any]) -> Iterator[subprocess.Popen[str]]:
    """The job in a session of its own, of which nothing is left at the end."""
    with log.open("a") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "weir_lab.attack.job", json.dumps(settings)],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        end_session(process)
        if process.stdout is not None:
            process.stdout.close()


def wait_for_end(process: subprocess.Popen[str], seconds: float) -> int | None:
    """Wait for the end of the job; return its code, None if it goes on for longer than that."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def main(settings: dict[str, Any]) -> None:
    """Run the queries until they end, or the driver is killed."""
    spark = session("weir-lab bench attack", **{"spark.master": settings["master"], **_SETTINGS})
    targets = [Target(Path(name), settings["kind"], settings["format"]) for name in settings["folders"]]
    if settings.get("kill") is not None:
        _die_everywhere(settings["kill"])
    queries = [target.start(spark, once=settings["once"]) for target in targets]
    print(STARTED, flush=True)
    with ThreadPoolExecutor(len(targets)) as pool:
        list(pool.map(Target.attend, targets, queries))


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _die_everywhere(batch: int) -> None:
    """One query stops at each place of a batch, whichever comes first; when all have stopped, all die."""
    free, taking = set(PLACES), threading.Lock()
    barrier = threading.Barrier(len(PLACES), _die)
    publishing = threading.local()
    move = LocalFolder.move

    def take(place: str) -> bool:
        with taking:
            is_free = place in free
            free.discard(place)
        return is_free

    def notice(step: str, number: int) -> None:
        if number != batch:
            return
        if step == "build" and take(step):
            threading.Timer(_INTO_BUILD_SECONDS, barrier.wait, (_MEETING_SECONDS,)).start()
        elif step != "build" and take(step):
            barrier.wait(_MEETING_SECONDS)
        elif step == "publish":
            publishing.stops = take("moved")

    def move_and_stop(folder: LocalFolder, source: str, target: str) -> None:
        move(folder, source, target)
        if getattr(publishing, "stops", False):
            barrier.wait(_MEETING_SECONDS)

    listen(notice)
    setattr(LocalFolder, "move", move_and_stop)  # noqa: B010 - nothing else stops a sink half-way


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
