"""A standalone Spark cluster on loopback: a Master and Workers as processes of their own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from weir_lab.bench.processes import Process, end_session, list_session

_HOST = "127.0.0.1"
_PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster; each Worker leads a session, to which its executors and their Python belong."""

    master: str
    workers: tuple[int, ...]

    def processes(self) -> list[Process]:
        """The Workers and all that runs below them."""
        return [process for leader in self.workers for process in list_session(leader)]

    def executors(self) -> list[Process]:
        """The Java processes that run tasks."""
        return [process for process in self.processes() if "CoarseGrainedExecutorBackend" in process.command]


@contextmanager
def cluster(folder: Path, workers: int = 2, cores: int = 1, memory: str = "1g") -> Iterator[Cluster]:
    """A Master and its Workers, of which nothing is left afterwards; their files are in `folder`."""
    sessions: list[subprocess.Popen[bytes]] = []

    def launch(name: str, main: str, ready: str, *arguments: str) -> int:
        log = folder / f"{name}.log"
        sessions.append(_launch(log, main, "--host", _HOST, "--webui-port", "0", *arguments))
        _await(sessions[-1], log, ready)
        return sessions[-1].pid

    port = _free_port()
    master = f"spark://{_HOST}:{port}"
    try:
        launch("master", "master.Master", "New state: ALIVE", "--port", str(port))
        leaders = tuple(
            launch(
                f"worker-{number}",
                "worker.Worker",
                "Successfully registered with master",
                *("--cores", str(cores), "--memory", memory, "--work-dir", str(folder / f"work-{number}")),
                master,
            )
            for number in range(workers)
        )
        yield Cluster(master, leaders)
    finally:
        for session in reversed(sessions):
            end_session(session)


def _launch(log: Path, main: str, *arguments: str) -> subprocess.Popen[bytes]:
    home = str(Path(pyspark.__file__).parent)
    settings = {
        "SPARK_HOME": home,
        "SPARK_LOCAL_IP": _HOST,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_NO_DAEMONIZE": "1",
        "PYSPARK_PYTHON": sys.executable,
        # An executor that dies for the tenth time would take its application with it.
        "SPARK_MASTER_OPTS": "-Dspark.deploy.maxExecutorRetries=-1",
    }
    with log.open("w") as output:
        return subprocess.Popen(
            [str(Path(home) / "bin" / "spark-class"), f"org.apache.spark.deploy.{main}", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **settings},
        )


def _await(process: subprocess.Popen[bytes], log: Path, text: str) -> None:
    deadline = time.monotonic() + _PATIENCE
    while text not in log.read_text():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"no cluster: '{text}' never came in {log}:\n{log.read_text()[-2000:]}")
        time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])
