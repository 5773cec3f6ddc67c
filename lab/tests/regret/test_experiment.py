"""The whole experiment, as small as it gets: files, a picture, bars, and names that do not exist."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from weir.errors import QueryError
from weir_lab.cli.app import app
from weir_lab.cli.regret import describe
from weir_lab.regret.experiment import QUICK, Size, run

_SMALL = Size(12, (0.3, 1.0), 1, frozenset({"raised budget"}), (), 0, 1, 12, 0)


def test_one_scenario(tmp_path: Path) -> None:
    report = run(_SMALL, tmp_path, "raised budget", lambda _: None)
    assert {each.name for each in tmp_path.iterdir()} == {
        "bars.csv", "fixed.csv", "raised_budget_simulated.png", "regret.csv", "scenarios.csv",
    }  # fmt: skip
    assert len((tmp_path / "scenarios.csv").read_text().splitlines()) == 25
    assert {each.phase for each in report.regrets} == {"little CPU", "twice as much", "whole"}
    assert "a raised budget" in {bar.what for bar in report.bars}
    assert json.loads(json.dumps(describe(report)))["bars"][0].keys() == {"bar", "wanted", "found", "reached"}


def test_unknown_parts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="did you mean 'lag jump'"):
        run(QUICK, tmp_path, "lag jmp", lambda _: None)


def test_the_command_is_there() -> None:
    assert "--only" in CliRunner().invoke(app, ["regret", "--help"], env={"COLUMNS": "120"}).output
