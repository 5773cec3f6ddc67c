"""Start and kill processes for tests, each with a process group of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DRIVER = Path(__file__).with_name("driver.py")


def end(process: subprocess.Popen[str]) -> None:
    """Kill a process and what it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


@contextlib.contextmanager
def started(*command: str, log: Path, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """A process that is gone afterwards; its errors go to a file."""
    with log.open("w") as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
            env={
                **os.environ,
                "PYSPARK_PYTHON": sys.executable,
                "PYSPARK_DRIVER_PYTHON": sys.executable,
                "SPARK_LOCAL_IP": "127.0.0.1",
                **variables,
            },
        )
    try:
        yield process
    finally:
        end(process)


@contextlib.contextmanager
def driver(folder: Path, master: str, **settings: Any) -> Iterator[subprocess.Popen[str]]:
    """The job of `driver.py`, running."""
    given = json.dumps({"folder": str(folder), "master": master, **settings})
    with started(sys.executable, str(DRIVER), given, log=folder / "errors.txt") as process:
        yield process


def drive(folder: Path, master: str = "local[2]", **settings: Any) -> int:
    """Run the job to its end, whichever; the exit code."""
    with driver(folder, master, **settings) as process:
        process.communicate(timeout=180)
        return process.returncode
