"""The pieces of `weir-lab jaqpot`, and a tiny run of the whole."""

from __future__ import annotations

from csv import DictReader
from io import StringIO
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from typer.testing import CliRunner

from weir import QueryError
from weir.query.windows import RowWindow
from weir.stats.join_graph import JoinGraph
from weir_lab.cli.app import app
from weir_lab.cli.jaqpot import show
from weir_lab.jaqpot import experiment
from weir_lab.jaqpot.aims import aims
from weir_lab.jaqpot.analysis import time_analyses
from weir_lab.jaqpot.experiment import QUICK, Report, Size
from weir_lab.jaqpot.freshness import Staleness, infeasible_share, measure_covers
from weir_lab.jaqpot.loop import Loop
from weir_lab.jaqpot.pictures import draw_freshness, draw_sensors, draw_shifts, draw_throughput, draw_timed
from weir_lab.jaqpot.play import fill_stage
from weir_lab.jaqpot.policies import JAQPOT, LP, POLICIES_COMPARED, STEADY, divide
from weir_lab.jaqpot.quartiles import summarise_spreads
from weir_lab.jaqpot.sensors import GROUPS, RATE, Mark, load_readings, play_sensors
from weir_lab.jaqpot.settings import SHAPES, Setting, Shape, build_edges, build_tree, draw_any_settings
from weir_lab.jaqpot.shift import Minute
from weir_lab.jaqpot.throughput import POLICIES_TIMED, Point, forecast_table3


def lowest(shape: Shape) -> Setting:
    graph = JoinGraph.of(dict.fromkeys("ABCD", 300.0), RowWindow(200), build_edges(shape, (0.01, 0.01, 0.02)))
    return Setting(shape, 0, graph, build_tree(shape, [200, 200]), 5.0)


@pytest.mark.parametrize("shape", SHAPES)
def test_settings_repeat_and_differ(shape: Shape) -> None:
    first, again = list(islice(draw_any_settings(shape, 1), 2)), list(islice(draw_any_settings(shape, 1), 2))
    assert [s.graph.rates for s in first] == [s.graph.rates for s in again]
    assert first[0].graph.rates != first[1].graph.rates


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("policy", POLICIES_COMPARED)
def test_no_policy_is_predicted_more_than_its_budget(shape: Shape, policy: str) -> None:
    setting = lowest(shape)
    budget = 0.5 * setting.full.spent
    division = divide(policy, setting.graph, setting.tree, budget, setting.fresh_seconds(5.0))
    assert division.probes <= budget * (1 + 1e-6)
    best = divide(LP, setting.graph, setting.tree, budget)
    assert division.results <= best.results * (1 + 1e-6)


def test_for_row_windows_the_steady_program_is_the_fixed_one() -> None:
    setting = lowest("linear")
    fixed, steady = (divide(p, setting.graph, setting.tree, 1000) for p in (LP, STEADY))
    assert steady.results == pytest.approx(fixed.results)


def test_freshness_that_cannot_be_held_is_loosened() -> None:
    setting = lowest("linear")
    division = divide(JAQPOT, setting.graph, setting.tree, 300, setting.fresh_seconds(1.5))
    assert division.loosened > 1
    assert division.probes <= 300 * (1 + 1e-6)


def test_the_engine_keeps_to_a_budget_and_a_stage_can_be_begun_again() -> None:
    setting = lowest("bushy")
    division = divide(LP, setting.graph, setting.tree, 600)
    full = fill_stage(setting, 5.0, 1)
    first, _ = full.play(0.8, division.allowance)
    again, _ = full.play(0.8, division.allowance)
    assert first == again
    assert first.probes / first.seconds == pytest.approx(600, rel=0.35)
    assert 0 < first.fresh_rate <= first.all_rate


def test_covers_and_analyses() -> None:
    assert 0 <= infeasible_share(measure_covers(2)) < 1
    for timing in time_analyses(5, 3):
        assert timing.excess >= -1e-6
        assert timing.analysis_ms > 0


def test_readings_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "motes.parquet"
    motes = np.tile(np.arange(1, 11), 2_100)
    warmth = 20 + motes / 10
    pq.write_table(pa.table({"moteid": motes, "temperature": warmth}), file)
    sensed = load_readings(file)
    assert sensed.source == "motes.parquet"
    assert sensed.length == len(motes) / RATE
    first = sensed.between(0, 100)
    assert {name: table.num_rows for name, table in first.items()} == dict.fromkeys(GROUPS, 20)
    with pytest.raises(QueryError, match="no file"):
        load_readings(tmp_path / "nowhere.parquet")
    pq.write_table(pa.table({"moteid": [1]}), file)
    with pytest.raises(QueryError, match="no column 'temperature'"):
        load_readings(file)


def test_readings_as_they_were_published(tmp_path: Path) -> None:
    """Lines end early where the sensor failed, and hot ones come from dying batteries; both are left out."""
    file = tmp_path / "data.txt"
    good = [f"2004-03-0{1 + i % 9} 03:38:15.7 {i} {1 + i % 54} 19.9 37.1 45.1 2.7" for i in range(20_000)]
    bad = ["2004-03-31 03:38:15.7 2 1", "2004-03-31 03:38:15.7 2 1 122.153 -3.9 11.0 2.0"]
    file.write_text("\n".join([*bad, *good]) + "\n")
    assert len(load_readings(file).group) == len(good)


def point(shape: Shape, policy: str, share: float) -> Point:
    return Point(shape, 0, 1.5, policy, 0.6, share, 100 * share, 0.0, 60.0, 100 * share, 60.0, 1.0)


def test_what_is_told_and_drawn(tmp_path: Path) -> None:
    """Where JAQPOT has twice what every rival has, it is said so, and where it misses, why."""
    ahead = {policy: 0.7 if policy in (JAQPOT, LP) else 0.35 for policy in POLICIES_COMPARED}
    points = [point(shape, policy, share) for shape in SHAPES for policy, share in ahead.items()]
    timed = [point("linear", policy, 0.5 + 0.2 * (policy == STEADY)) for policy in POLICIES_TIMED]
    stale = [Staleness("linear", 0, policy, 1.5, 0.0, 9.0, 0.0, 1.0) for policy in POLICIES_COMPARED[:-1]]
    minutes = [Minute(shape, 0, p, 10, round(100 * s), 9, 1.0) for shape in SHAPES for p, s in ahead.items()]
    made = {policy: 1_200 if policy != JAQPOT else 1_500 for policy in POLICIES_COMPARED}
    marks = [
        Mark("made up", 0, 300.0, p, 4.0, round(100 * s), 9, made[p], made[p] / 1_200, 1.0, 1.0)
        for p, s in ahead.items()
    ]
    covers, timings, model = measure_covers(2), time_analyses(5, 2), forecast_table3(2, (0.6,))
    told = aims(points, model, timed, stale, covers, minutes, timings, marks)
    by = {aim.what: aim for aim in told}
    bushy = by["figure 7, bushy: times the best rival's results, mean over the resources"]
    assert bushy.reached and "LP 2.00x (2.00–2.00)" in bushy.measured
    sensed = by["figure 8: 300 probes/s, results at equal probes, against the best rival"]
    assert not sensed.reached and "off by more than 10%: JAQPOT" in sensed.measured
    linear = by["figure 7, linear: share of the saturation throughput at 60 % of its resources"]
    assert not linear.reached and "the model's own optimum" in linear.why
    assert (
        "1.40x"
        in by["windows of time, linear: the program for steady states against that for fixed ones"].measured
    )
    among = summarise_spreads(points, minutes, marks, stale)
    report = Report(
        QUICK, "made up", points, model, timed, stale, covers, minutes, timings, marks, among, told
    )
    printed = StringIO()
    show(report, Console(file=printed, width=200))
    assert "rates 300" in printed.getvalue() and "no" in printed.getvalue()
    draw_throughput(points, tmp_path / "7.png")
    draw_timed(timed, tmp_path / "7t.png")
    draw_freshness(stale, covers, tmp_path / "9.png")
    draw_shifts(minutes, tmp_path / "6.png")
    draw_sensors(marks, "made up", tmp_path / "8.png")
    assert len(list(tmp_path.glob("*.png"))) == 5


def test_the_loop_makes_up_for_what_a_forecast_gets_wrong() -> None:
    """Who makes three probes for each one he is told of ends up with what was allowed."""
    loop = Loop()
    for _ in range(30):
        loop = loop.after(allowed=100, made=3 * 100 * loop.scale)
    assert loop.spent == pytest.approx(1, abs=0.1)
    assert loop.scale == pytest.approx(1 / 3, rel=0.1)


def test_the_loop_saves_what_a_burst_took_and_forgets_a_silence() -> None:
    burst = Loop().after(100, 1_000)
    assert burst.scale < 0.5
    assert burst.after(100, 100 * burst.scale).scale <= burst.scale
    silent = Loop()
    for _ in range(9):
        silent = silent.after(100, 0)
    assert silent.scale == 4


def test_sensors_under_the_loop_spend_what_they_are_allowed() -> None:
    played = play_sensors(load_readings(None), 1, 4.0, (300.0,), lambda _: None)
    marks = list(islice(played, 4))
    assert [(mark.policy, mark.seconds) for mark in marks] == [("EqualHJ", at) for at in (1, 2, 3, 4)]
    assert marks[-1].spent == marks[-1].probes / (300 * 4) == pytest.approx(1, abs=0.15)
    assert marks[-1].results > 0


TINY = Size(
    settings=1,
    resources=(0.6,),
    timed=(),
    windows=0.05,
    factors=(),
    stale=0,
    covers=2,
    seeds=1,
    minute=0.02,
    starts=1,
    sensor_seconds=1.0,
    budgets=(300.0,),
    plans=1,
)


def test_the_command_writes_its_files_and_tells_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "QUICK", TINY)
    out = tmp_path / "out"
    done = CliRunner().invoke(app, ["jaqpot", "--quick", "--out", str(out)], catch_exceptions=False)
    assert done.exit_code == 0
    assert {file.stem for file in out.glob("*.png")} == {
        "figure6", "figure7", "figure7_time_windows", "figure8", "figure9",
    }  # fmt: skip
    rows = {file.stem: list(DictReader(StringIO(file.read_text()))) for file in out.glob("*.csv")}
    assert {(row["shape"], row["policy"]) for row in rows["figure7"]} == {
        (shape, policy) for shape in SHAPES for policy in POLICIES_COMPARED
    }
    assert {row["minute"] for row in rows["figure6"]} == {str(minute) for minute in range(1, 11)}
    for spread in rows["quartiles"]:
        assert float(spread["lower"]) <= float(spread["median"]) <= float(spread["upper"])
    shares = {(r["shape"], r["policy"]): float(r["share"]) for r in rows["figure7"]}
    told = {row["what"]: row for row in rows["aims"]}
    linear = told["figure 7, linear: share of the saturation throughput at 60 % of its resources"]
    assert f"JAQPOT {shares['linear', JAQPOT]:.0%}" in linear["measured"]
    assert sum("analysis" in what for what in told) == 4
    assert "The paper's headlines and ours" in done.stdout
    assert done.stdout.count("│ yes") + done.stdout.count("│ no ") >= len(told)
