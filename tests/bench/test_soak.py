from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from weir.bench.soak import Sample, figures

_STEADY = [Sample(i, 0.5, 10, 100, 6 + i % 4, 30 + i % 4, 150.0, 900.0, 300.0) for i in range(40)]


def test_a_steady_run_reaches_every_aim() -> None:
    assert all(figure.is_reached for figure in figures(_STEADY))


@pytest.mark.parametrize("grown", ["seconds", "slices", "files", "driver_mb", "jvm_mb", "workers_mb"])
def test_whatever_grows_misses_its_aim(grown: str) -> None:
    samples = [replace(s, **{grown: (1 + s.batch / 20) * getattr(s, grown)}) for s in _STEADY]
    assert sum(not figure.is_reached for figure in figures(samples)) == 1


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.xdist_group("processes")
def test_sixty_batches_leave_nothing_behind(tmp_path: Path) -> None:
    written = tmp_path / "figures.json"
    command = [
        str(Path(sys.executable).with_name("weir")),
        "bench",
        "soak",
        "--quick",
        "--json",
        str(written),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=400)
    assert ran.returncode == 0, ran.stderr[-3000:]
    time, *held = json.loads(written.read_text())
    assert [figure for figure in held if figure["ratio"] > figure["aim"]] == []
    # Other tests run beside this one, so only the quieter batches of the last quarter can tell.
    assert time["low"] <= time["aim"]
