"""Kill real drivers at each phase of a batch: no result is lost or duplicated."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from .driver import PLACES, TRIPLE
from .processes import drive
from .streams import expected, generate, read_bag, read_state, write_feed

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group("processes")]

# Batches, with the number of partitions: with nothing before, and with state that is cut again before it.
KILLS = {0: 2, 1: 3}
LAST_PARTITIONS = 4
# As many queries in one driver as there are places, each stopped at another place when it dies.
NAMES = [f"query {number}" for number in range(len(PLACES))]


def joins(partitions: int) -> dict[str, Any]:
    return {name: {**TRIPLE, "partitions": partitions} for name in NAMES}


def test_a_driver_killed_at_every_phase_gives_each_row_once(tmp_path: Path) -> None:
    feed = write_feed(tmp_path / "in", generate(3, max(KILLS) + 2, 40, 6, seed=11))
    for batch, partitions in KILLS.items():
        assert drive(tmp_path, joins=joins(partitions), kill=batch) == -signal.SIGKILL, errors(tmp_path)
        written = [list((tmp_path / name / "out").glob(f"part-*-{batch:09d}-*")) for name in NAMES]
        assert sorted(map(len, written)) == [0, 0, 0, 0, 1, *[partitions] * 3], "not one at each place"
        for name in NAMES:
            out = tmp_path / name / "out"
            seen = read_bag(out) if list(out.glob("part-*")) else {}
            assert max(seen.values(), default=1) == 1, f"duplicates are to be seen in {name} after {batch}"
    assert drive(tmp_path, joins=joins(LAST_PARTITIONS)) == 0, errors(tmp_path)
    answer = expected(feed.tables(), **TRIPLE)
    assert sum(answer.values()) > 200
    for name in NAMES:
        assert read_bag(tmp_path / name / "out") == answer
        left = [p.name for p in (tmp_path / name / "out").iterdir() if not p.name.startswith("part-")]
        assert left == ["_weir"], "files of killed attempts are left"
    # A batch is repeated with the number with which it began; two of the queries died before it began.
    for batch, partitions in KILLS.items():
        decisions = [read_state(tmp_path / name / "ckpt", "decision", batch) for name in NAMES]
        repeated = Counter(decision["decision"]["placement"]["partitions"] for decision in decisions)
        assert repeated == {partitions: len(NAMES) - 2, KILLS.get(batch + 1, LAST_PARTITIONS): 2}


def test_a_task_that_fails_is_tried_again(tmp_path: Path) -> None:
    feed = write_feed(tmp_path / "in", generate(3, 2, 40, 6, seed=12))
    marker = tmp_path / "failed"
    code = drive(tmp_path, "local[2,4]", fail_once=str(marker))
    assert code == 0, errors(tmp_path)
    assert marker.exists()
    answer = expected(feed.tables(), **TRIPLE)
    assert sum(answer.values()) > 50
    assert read_bag(tmp_path / "out") == answer


def errors(folder: Path) -> str:
    return (folder / "errors.txt").read_text()[-2000:]
