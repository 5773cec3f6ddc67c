"""The `weir-lab bench` command: what it prints, and how it ends."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from weir.errors import QueryError
from weir_lab.bench import kernel
from weir_lab.bench.figure import Figure
from weir_lab.cli.app import app
from weir_lab.cli.bench import report


def run(*args: str) -> str:
    result = CliRunner().invoke(app, args, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


class TestBench:
    FIGURES = (
        Figure("three-way / bare NumPy", 1.234, 1.1, 1.5, 2.0, "at most", "2,000,000 results"),
        Figure("band / DuckDB", 0.5, 0.4, 0.6, 3.0, "at least"),
    )

    def test_prints_the_figures_as_a_table(self) -> None:
        screen = StringIO()
        report(self.FIGURES, None, Console(file=screen, width=120))
        assert re.search(r"three-way.*1\.23.*1\.10 – 1\.50.*at most 2.*yes.*2,000,000", screen.getvalue())
        assert re.search(r"band.*0\.50.*at least 3.*no", screen.getvalue())

    def test_writes_the_figures_as_json(self, tmp_path: Path) -> None:
        report(self.FIGURES, tmp_path / "figures.json", Console(file=StringIO()))
        assert [entry["reached"] for entry in json.loads((tmp_path / "figures.json").read_text())] == [
            True,
            False,
        ]

    def test_the_command_hands_its_options_on(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        asked: list[bool] = []

        def measure(quick: bool) -> list[Figure]:
            asked.append(quick)
            return list(self.FIGURES)

        monkeypatch.setattr("weir_lab.bench.kernel.run", measure)
        assert "three-way" in run("bench", "kernel", "--quick", "--json", str(tmp_path / "figures.json"))
        assert asked == [True]
        assert (tmp_path / "figures.json").exists()

    def test_shapes_hands_the_folder_on(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        asked: list[tuple[Path | None, bool]] = []

        def measure(data: Path | None, quick: bool) -> list[Figure]:
            asked.append((data, quick))
            return list(self.FIGURES)

        monkeypatch.setattr("weir_lab.bench.shapes.run", measure)
        assert "three-way" in run("bench", "shapes", "--data", str(tmp_path))
        assert asked == [(tmp_path, False)]

    def test_batches_hands_its_options_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("weir_lab.bench.batches.run", lambda quick: list(self.FIGURES[: 1 + quick]))
        assert "band" in run("bench", "batches", "--quick")

    def test_a_file_that_cannot_be_written_stops_it_before_it_runs(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        def measure(quick: bool) -> list[Figure]:
            raise AssertionError("the benchmark ran")

        monkeypatch.setattr("weir_lab.bench.kernel.run", measure)
        with pytest.raises(QueryError, match=r"cannot write .*there is no folder '.*nowhere'"):
            run("bench", "kernel", "--json", str(tmp_path / "nowhere" / "figures.json"))
        with pytest.raises(QueryError, match="it is a folder"):
            run("bench", "kernel", "--json", str(tmp_path))

    def test_tells_each_figure_as_it_is_done(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr("pyarrow.set_cpu_count", lambda count: None)
        for case in ("three_way", "longer_window", "band", "cosine", "residual", "many_windows"):
            monkeypatch.setattr(kernel, case, lambda repeats, quick: list(self.FIGURES[:1]))
        figures = kernel.measure(quick=True)
        told = capsys.readouterr()
        assert told.out == ""
        assert len(told.err.splitlines()) == len(figures) == 8
        assert told.err.startswith("three-way / bare NumPy: 1.23\n")
