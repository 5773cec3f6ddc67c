"""A real cluster on this host: a Master, two Workers, and one of them killed half-way."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pyspark
import pytest

from .driver import TRIPLE
from .processes import driver, started
from .streams import expected, generate, read_bag, write_feed

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group("spark")]

SPARK_HOME = Path(pyspark.__path__[0])
BATCHES = 6


def test_a_worker_lost_half_way_loses_no_row(tmp_path: Path) -> None:
    feed = write_feed(tmp_path / "in", generate(3, BATCHES, 40, 6, seed=13))
    with ExitStack() as stack:
        port = free_port()
        master = f"spark://127.0.0.1:{port}"
        where = ["--host", "127.0.0.1", "--webui-port", "0"]
        launch(stack, tmp_path, "master.Master", *where, "--port", str(port))
        await_text(tmp_path / "master.Master.txt", "New state: ALIVE")
        limits = ["--cores", "1", "--memory", "1g"]
        workers = [
            launch(
                stack, tmp_path, "worker.Worker", *where, *limits, "--work-dir", str(tmp_path / name), master,
                name=name,
            )
            for name in ("one", "two")
        ]  # fmt: skip
        for name in ("one", "two"):
            await_text(tmp_path / f"{name}.txt", "Successfully registered with master")
        process = stack.enter_context(driver(tmp_path, master, conf=CONF))
        done = await_batches(process, 2)
        os.kill(workers[1], signal.SIGKILL)
        process.communicate(timeout=180)
        assert process.returncode == 0, (tmp_path / "errors.txt").read_text()[-3000:]
    assert 2 <= done < BATCHES, "the Worker died too late to matter"
    assert list((tmp_path / "two").glob("app-*")), "the second Worker had no part in it"
    answer = expected(feed.tables(), **TRIPLE)
    assert sum(answer.values()) > 200
    assert read_bag(tmp_path / "out") == answer


CONF = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.driver.memory": "512m",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def launch(stack: ExitStack, folder: Path, main: str, *arguments: str, name: str | None = None) -> int:
    process = stack.enter_context(
        started(
            str(SPARK_HOME / "bin" / "spark-class"),
            f"org.apache.spark.deploy.{main}",
            *arguments,
            log=folder / f"{name or main}.txt",
            SPARK_HOME=str(SPARK_HOME),
            SPARK_DAEMON_MEMORY="256m",
            SPARK_NO_DAEMONIZE="1",
        )
    )
    return process.pid


def await_text(log: Path, text: str) -> None:
    for _ in range(600):
        if text in log.read_text():
            return
        time.sleep(0.1)
    pytest.fail(f"'{text}' never came: {log.read_text()[-2000:]}")


def await_batches(process: object, wanted: int) -> int:
    """How many batches the driver says are done, once they are enough."""
    for line in process.stdout:  # type: ignore[attr-defined]
        found = re.match(r"batches (\d+)", line)
        if found and int(found[1]) >= wanted:
            return int(found[1])
    return BATCHES
