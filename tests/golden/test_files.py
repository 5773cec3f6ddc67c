"""Every golden file belongs to a run, and all of them stay small enough to read."""

from __future__ import annotations

from .record import FOLDER
from .runs import BOTH, LOCAL, SPARK
from .test_recommendations import STORIES, file_name


def test_every_file_has_its_run() -> None:
    runs = {f"local-{name}" for name in (*BOTH, *LOCAL)} | {f"spark-{name}" for name in (*BOTH, *SPARK)}
    runs |= {"spark-crash", "explain", "explain-spark"} | {file_name(name) for name in STORIES}
    assert {path.stem for path in FOLDER.glob("*.json")} == runs
    assert sum(path.stat().st_size for path in FOLDER.glob("*.json")) < 400_000
