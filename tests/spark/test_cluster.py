"""Kill one of two workers of a real cluster on this host."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from weir_lab.bench.cluster import cluster

from . import spreads
from .processes import driver
from .streams import read_bag, write_feed

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group("processes")]

BATCHES = 4
CONF = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.driver.memory": "512m",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
}
KINDS = {"hash": ("equality",), "share": ("python",), "psp": ("cosine",), "atr": ("band",)}


def test_a_worker_lost_half_way_loses_no_row_of_any_spread(tmp_path: Path) -> None:
    """They run at once, so that one kill hits them all, `share` and `psp` while they look for pairs."""
    cases = {spread: spreads.case(kinds, 3, BATCHES, seed=13) for spread, kinds in KINDS.items()}
    write_feed(tmp_path / "in", spreads.batches_of(cases["hash"]))
    joins = {spread: {**spreads.asked(case), "spread": spread} for spread, case in cases.items()}
    with (
        cluster(tmp_path) as running,
        driver(tmp_path, running.master, conf=CONF, joins=joins, meet=BATCHES // 2) as process,
    ):
        assert process.stdout is not None and process.stdout.readline() == "met\n", told(tmp_path)
        os.kill(running.workers[1], signal.SIGKILL)
        process.communicate(timeout=180)
        assert process.returncode == 0, told(tmp_path)
    assert list((tmp_path / "work-1").glob("app-*")), "the second Worker had no part in it"
    for spread, case in cases.items():
        wanted, admitted = spreads.by_duckdb(case)
        assert sum(wanted.values()) > 200 and any(sum(late.values()) for late in admitted.late)
        assert read_bag(tmp_path / spread / "out") == wanted, spread


def told(folder: Path) -> str:
    return (folder / "errors.txt").read_text()[-3000:]
