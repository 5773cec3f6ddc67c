"""Spark does what it did: decisions, manifests, results and progress of every spread, folded and lazy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from . import names
from .record import check
from .runs import BOTH, SPARK, OnSpark, Run

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

RUNS = {**BOTH, **SPARK}


@pytest.mark.parametrize(("name", "run"), RUNS.items(), ids=RUNS)
def test_spark(
    name: str, run: Run, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names.little_migration(monkeypatch, 150)
    running = OnSpark(spark, tmp_path, run)
    progress = running.start()
    check(f"spark-{name}", {"progress": progress, "results": running.results(), **running.checkpoint()})


def test_crash(spark: SparkSession, tmp_path: Path) -> None:
    """A query that dies twice in one batch, and goes on where it was."""
    running = OnSpark(spark, tmp_path, replace(BOTH["fresh"], brief=True))
    found: dict[str, Any] = {}
    for place in (names.SLICES_BUILT, names.RESULTS_EMITTED):
        with pytest.raises(Exception, match="the machine is gone"):
            running.start(dies_at=(place, 1))
        found[f"attempt {len(found) + 1}"] = {
            "results": running.results(),
            "attempt": running.checkpoint()["decisions"][-1]["attempt"],
        }
    progress = running.start()
    check(
        "spark-crash", {**found, "progress": progress, "results": running.results(), **running.checkpoint()}
    )
