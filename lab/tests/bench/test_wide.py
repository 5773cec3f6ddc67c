"""`weir-lab bench wide`: exact numbers of results, a small run, and what a failed process reports."""

from __future__ import annotations

from subprocess import CalledProcessError

import pytest

from weir_lab.bench import wide
from weir_lab.bench.shape_peer import Peer
from weir_lab.bench.wide_job import measure_locally
from weir_lab.bench.wide_shapes import WideShape, cross, few_wide, hot_key, megabytes


@pytest.mark.parametrize("made", [hot_key(20), cross(60, 7), megabytes(2), few_wide(200)])
def test_the_exact_number_is_duckdbs(made: WideShape) -> None:
    assert Peer(made.shape, threads=1).results == made.results > 0


def test_a_small_run_reaches_its_aims() -> None:
    exact, memory = measure_locally(few_wide(400))
    assert exact.is_reached and memory.is_reached
    assert exact.note.startswith("40 results")


def test_another_number_of_results_is_refused() -> None:
    made = hot_key(20)
    with pytest.raises(RuntimeError, match="different numbers of results"):
        measure_locally(WideShape(made.shape, made.results + 1))


def test_a_process_that_dies_misses_its_aim(monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*arguments: str) -> None:
        raise CalledProcessError(-9, "python")

    monkeypatch.setattr(wide, "run_module", die)
    monkeypatch.setattr(wide, "check_java", lambda: None)
    figures = wide.run(quick=True)
    assert len(figures) == 16
    assert not any(figure.is_reached for figure in figures)
