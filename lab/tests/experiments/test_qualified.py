"""The pieces of `weir-lab qualified`, and a tiny run of the whole."""

from __future__ import annotations

from csv import DictReader
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from weir import QueryError
from weir.plan.space import Space
from weir_lab.cli import qualified as cli
from weir_lab.qualified.compare import (
    EXHAUSTIVE,
    OURS,
    PAPER,
    PLAIN,
    compare,
    count_disagreements,
    find_misses,
    score_outcomes,
)
from weir_lab.qualified.experiment import Size, run
from weir_lab.qualified.overload import build_scenes, play
from weir_lab.qualified.settings import draw_settings, printed_ranges, qualified_share, tune_ranges


@pytest.mark.parametrize("streams", [3, 7, 20])
def test_settings_are_connected_and_repeat(streams: int) -> None:
    for setting, again in zip(
        draw_settings("printed", printed_ranges(streams), 5),
        draw_settings("printed", printed_ranges(streams), 5),
        strict=True,
    ):
        assert setting == again
        space = Space(setting.graph)
        assert space.component(1, space.everything) == space.everything
        assert all(1 <= rate <= 100 for rate in setting.graph.rates.values())


@pytest.mark.parametrize("streams", [4, 9])
def test_tuned_ranges_leave_some_settings_with_a_plan_and_some_without(streams: int) -> None:
    assert 0.3 <= qualified_share(draw_settings("tuned", tune_ranges(streams, 20), 40)) <= 0.7


def test_the_printed_ranges_leave_little_beyond_three_streams() -> None:
    shares = [qualified_share(draw_settings("printed", printed_ranges(n), 30)) for n in (3, 5, 8)]
    assert shares[0] > 0.7
    assert shares[1] < 0.3
    assert shares[2] < 0.1


@pytest.mark.parametrize("design", ["tuned", "between"])
def test_our_two_layers_find_whatever_the_exhaustive_search_finds(design: str) -> None:
    drawn = draw_settings(design, tune_ranges(6, 12), 12)  # type: ignore[arg-type]
    outcomes = compare(design, 6, drawn, seconds=30)  # type: ignore[arg-type]
    by_name = {score.algorithm: score for score in score_outcomes(outcomes)}
    assert by_name[OURS].solved == by_name[EXHAUSTIVE].solved == by_name[PLAIN].solved > 0
    assert by_name[EXHAUSTIVE].exact == by_name[EXHAUSTIVE].tried == 12
    assert by_name[PAPER].percentage is not None
    assert all(outcome.algorithm == PAPER for outcome in find_misses(outcomes))
    assert count_disagreements(drawn[:4]) == 0


def test_scenes_end_as_the_figures_do() -> None:
    ends = {
        scene.name: {run.plan.kind: run.last for run in play(scene)}
        for scene in build_scenes(windows=1.2)
        if scene.name in ("set 1", "set 2, rare AB", "set 3")
    }
    assert ends["set 1"]["mjoin"].results == ends["set 1"]["bjtree"].results
    assert ends["set 1"]["mjoin"].state < ends["set 1"]["bjtree"].state
    rare = ends["set 2, rare AB"]
    assert rare["mjoin"].queued > 10 * rare["bjtree"].queued
    assert ends["set 3"]["bjtree"].stopped
    assert not ends["set 3"]["mjoin"].stopped


def test_a_tiny_run_writes_its_files_and_tells_them(tmp_path: Path) -> None:
    size = Size((3, 5), settings=3, seconds=1, windows=0.25, tuning=4, unlimited=1)
    told: list[str] = []
    report = run(size, tmp_path / "out", told.append)
    assert told
    pictures = {file.name for file in (tmp_path / "out").glob("*.png")}
    assert {
        "set1.png",
        "set2_rareAB.png",
        "set4_short.png",
        "figure13_tuned.png",
        "figure14_between.png",
    } <= pictures
    with (tmp_path / "out" / "ticks.csv").open() as file:
        rows = list(DictReader(file))
    assert {row["scene"] for row in rows} == {scene.name for scene, _ in report.scenes}
    text = StringIO()
    cli.show(report, Console(file=text, width=200))
    assert "cannot arise" in text.getvalue()
    assert "all need about 36 s a second" in text.getvalue()


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(QueryError, match="not a folder"):
        cli.qualified(True, tmp_path / "file", Console(file=StringIO()))
