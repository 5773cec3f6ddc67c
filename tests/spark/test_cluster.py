"""A real cluster on this host: a Master, two Workers, and one of them killed half-way."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from weir.bench.cluster import cluster

from .driver import TRIPLE
from .processes import driver
from .streams import expected, generate, read_bag, write_feed

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group("spark")]

BATCHES = 6
CONF = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.driver.memory": "512m",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
}


def test_a_worker_lost_half_way_loses_no_row(tmp_path: Path) -> None:
    feed = write_feed(tmp_path / "in", generate(3, BATCHES, 40, 6, seed=13))
    with cluster(tmp_path) as running, driver(tmp_path, running.master, conf=CONF) as process:
        done = await_batches(process, 2)
        os.kill(running.workers[1], signal.SIGKILL)
        process.communicate(timeout=180)
        assert process.returncode == 0, (tmp_path / "errors.txt").read_text()[-3000:]
    assert 2 <= done < BATCHES, "the Worker died too late to matter"
    assert list((tmp_path / "work-1").glob("app-*")), "the second Worker had no part in it"
    answer = expected(feed.tables(), **TRIPLE)
    assert sum(answer.values()) > 200
    assert read_bag(tmp_path / "out") == answer


def await_batches(process: subprocess.Popen[str], wanted: int) -> int:
    """How many batches the driver says are done, once they are enough."""
    assert process.stdout is not None
    for line in process.stdout:
        found = re.match(r"batches (\d+)", line)
        if found and int(found[1]) >= wanted:
            return int(found[1])
    return BATCHES
