"""The pieces of `weir-lab psp`, and a tiny run of the whole."""

from __future__ import annotations

from csv import DictReader
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from weir.partition.ring_cost import best_length, latency
from weir_lab.cli.app import app
from weir_lab.cli.psp import show
from weir_lab.psp import experiment
from weir_lab.psp.adaptation import count_settling_seconds
from weir_lab.psp.experiment import Report, Size
from weir_lab.psp.lengths import HEAVY, play_long_rings, with_join_cost, with_streams
from weir_lab.psp.play import play_alone, play_atr, play_ctr, play_ring
from weir_lab.psp.settings import MACHINE, RATE, WINDOW, Setting, arrivals
from weir_lab.ring.model import bandwidth_needed, central_work, equal_steps

TINY = Size(
    nodes=(4, 14, 19),
    ring_seconds=0.3,
    routed=(4, 19),
    segments=(10.0,),
    atr_seconds=4.0,
    copies=(2,),
    ctr_seconds=0.5,
    calm=1,
    busy=8,
    rows=2,
    long=(10, 100),
    many=(2, 4),
)


def silent(_: str) -> None:
    pass


def test_arrivals_repeat_and_have_their_rates() -> None:
    rates = [(-5.0, 50.0), (5.0, 100.0), (15.0, 0.0)]
    rows = arrivals(3, rates, seed=4)
    assert rows == arrivals(3, rates, seed=4) != arrivals(3, rates, seed=5)
    assert [row.number for row in rows] == list(range(len(rows)))
    assert sum(row.time < 5 for row in rows) == pytest.approx(1500, rel=0.1)
    assert sum(row.time >= 5 for row in rows) == pytest.approx(3000, rel=0.1)


def test_four_nodes_can_carry_the_heaviest_setting_and_its_best_ring_is_near_14() -> None:
    steps = equal_steps(3, RATE, WINDOW, 0.5)
    assert 3 * RATE * central_work(steps, MACHINE) < 4
    assert 12 <= best_length(steps, MACHINE).nodes <= 15
    assert bandwidth_needed(steps, MACHINE, 14) < MACHINE.bandwidth


def test_a_ring_alone_is_near_equation_5() -> None:
    # Results come out all along, equation 5 has the end: about half of it where work counts.
    for nodes in (2, 6, 12):
        point = play_alone(Setting(selectivity=0.5), nodes, 3)
        assert 0.4 < point.response / latency(equal_steps(3, RATE, WINDOW, 0.5), MACHINE, nodes) < 1


def test_schemes_hold_what_they_should() -> None:
    ring, interleaved = (play_ring(Setting(), 6, 0.5, interleave) for interleave in (1, 4))
    assert ring.state == pytest.approx(1500, rel=0.1)
    assert ring.state <= interleaved.state < 1.05 * ring.state
    atr, ctr = play_atr(Setting(), 6, 10.0, 3.0), play_ctr(Setting(), 6, 3, 0.5)
    assert atr.state > 1.2 * ring.state
    assert ctr.state == pytest.approx(3 * ring.state, rel=0.1)


def test_many_streams_and_many_nodes() -> None:
    assert play_alone(with_streams(9), 4, 1).results > 100
    short, long = (
        ring.response for ring in play_long_rings((100, 1000), 1, silent) if ring.join == "0.15 µs"
    )
    assert long > 5 * short
    assert with_join_cost(HEAVY).join == pytest.approx(15e-6)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Path]:
    out = tmp_path_factory.mktemp("psp")
    return experiment.run(TINY, out, silent), out


def test_a_run_writes_figures_and_pictures(tiny: tuple[Report, Path]) -> None:
    report, out = tiny
    assert sorted(file.name for file in out.iterdir()) == [
        "aims.csv",
        "best_length.csv",
        "beyond.png",
        "figure8ab.csv",
        "figure8af.png",
        "figure8cd.csv",
        "figure8ef.csv",
        "figure8gh.csv",
        "figure8gh.png",
        "long_rings.csv",
        "ways.csv",
    ]
    rows = list(DictReader(StringIO((out / "figure8ab.csv").read_text())))
    assert len(rows) == len(report.rings) == 3 * 3 * 2
    assert all(float(row["response"]) > 0 for row in rows)


def test_a_run_says_what_the_paper_says_and_what_we_found(tiny: tuple[Report, Path]) -> None:
    console = Console(file=StringIO(), width=240)
    show(tiny[0], console)
    told = console.file.getvalue()  # type: ignore[attr-defined]
    assert "T_j = 0.15 µs, T_s = 1 µs, T_n = 40 µs" in told
    for aim in tiny[0].aims:
        assert aim.measured
        assert aim.reached or aim.why, aim.what
    assert "rises with the selectivity" in told


def test_the_best_length_is_about_as_predicted(tiny: tuple[Report, Path]) -> None:
    for length in tiny[0].lengths:
        assert abs(length.best - length.predicted) <= max(2, 0.3 * length.predicted)
        assert length.response_predicted <= 1.15 * length.response_best


def test_a_ring_that_follows_the_rate_stays_quick(tiny: tuple[Report, Path]) -> None:
    seconds = tiny[0].seconds
    last = {second.way: second for second in seconds if second.second == 8}
    assert last["passive"].response < 0.2 * last["none"].response
    assert last["aggressive"].nodes > last["none"].nodes == 4
    assert count_settling_seconds(seconds, "passive", 9, 17) > count_settling_seconds(
        seconds, "aggressive", 9, 17
    )


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(app, ["psp", "--quick", "--out", str(tmp_path / "file")])
    assert result.exit_code != 0
    assert "it is not a folder" in str(result.exception)
