"""Real processes that die at each phase of a batch: no row is lost, none comes twice."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from .driver import TRIPLE
from .processes import drive
from .streams import expected, generate, read_bag, write_feed

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group("spark")]

KILLS = (  # (phase, batch, seconds after it)
    ("decide", 0, 0),  # before ingest
    ("build", 1, 0.06),  # during it
    ("built", 2, 0),  # slices are written
    ("moved", 3, 0),  # during the sink: one of two result files is there
    ("emitted", 4, 0),  # before the manifest
    ("committed", 5, 0),  # after the manifest, before Spark's own commit
)


def test_a_driver_killed_at_every_phase_gives_each_row_once(tmp_path: Path) -> None:
    feed = write_feed(tmp_path / "in", generate(3, len(KILLS) + 1, 40, 6, seed=11))
    for kill in KILLS:
        code = drive(tmp_path, kill=kill)
        assert code == -signal.SIGKILL, f"{kill}: {(tmp_path / 'errors.txt').read_text()[-2000:]}"
        seen = read_bag(tmp_path / "out") if list((tmp_path / "out").glob("part-*")) else {}
        assert max(seen.values(), default=1) == 1, f"duplicates are to be seen after {kill}"
    assert drive(tmp_path) == 0, (tmp_path / "errors.txt").read_text()[-2000:]
    answer = expected(feed.tables(), **TRIPLE)
    assert sum(answer.values()) > 200
    assert read_bag(tmp_path / "out") == answer
    left = [path.name for path in (tmp_path / "out").iterdir() if not path.name.startswith("part-")]
    assert not left, "files of killed attempts are left"


def test_a_task_that_fails_is_tried_again(tmp_path: Path) -> None:
    feed = write_feed(tmp_path / "in", generate(3, 2, 40, 6, seed=12))
    marker = tmp_path / "failed"
    code = drive(tmp_path, "local[2,4]", fail_once=str(marker))
    assert code == 0, (tmp_path / "errors.txt").read_text()[-2000:]
    assert marker.exists()
    answer = expected(feed.tables(), **TRIPLE)
    assert sum(answer.values()) > 50
    assert read_bag(tmp_path / "out") == answer
