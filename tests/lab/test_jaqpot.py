"""The pieces of `weir lab jaqpot`; the whole takes a minute and is left to the command."""

from __future__ import annotations

from io import StringIO
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from weir import QueryError
from weir.cli.jaqpot import show
from weir.lab.jaqpot.aims import aims
from weir.lab.jaqpot.analysis import analyses
from weir.lab.jaqpot.divide import JAQPOT, LP, POLICIES_COMPARED, STEADY, divide
from weir.lab.jaqpot.experiment import QUICK, Report
from weir.lab.jaqpot.freshness import Staleness, infeasible, spent
from weir.lab.jaqpot.pictures import draw_freshness, draw_sensors, draw_shifts, draw_throughput, draw_timed
from weir.lab.jaqpot.play import staged
from weir.lab.jaqpot.sensors import GROUPS, RATE, Mark, readings
from weir.lab.jaqpot.settings import SHAPES, Setting, Shape, drawn, edges, tree
from weir.lab.jaqpot.shift import Minute
from weir.lab.jaqpot.throughput import POLICIES_TIMED, Point
from weir.query import RowWindow
from weir.stats import JoinGraph


def lowest(shape: Shape) -> Setting:
    graph = JoinGraph.of(dict.fromkeys("ABCD", 300.0), RowWindow(200), edges(shape, (0.01, 0.01, 0.02)))
    return Setting(shape, 0, graph, tree(shape, [200, 200]), 5.0)


@pytest.mark.parametrize("shape", SHAPES)
def test_settings_repeat_and_differ(shape: Shape) -> None:
    one, again = list(islice(drawn(shape, 1), 2)), list(islice(drawn(shape, 1), 2))
    assert [s.graph.rates for s in one] == [s.graph.rates for s in again]
    assert one[0].graph.rates != one[1].graph.rates


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("policy", POLICIES_COMPARED)
def test_no_policy_is_foretold_more_than_its_budget(shape: Shape, policy: str) -> None:
    setting = lowest(shape)
    budget = 0.5 * setting.full.spent
    found = divide(policy, setting.graph, setting.tree, budget, setting.fresh_seconds(5.0))
    assert found.probes <= budget * (1 + 1e-6)
    best = divide(LP, setting.graph, setting.tree, budget)
    assert found.results <= best.results * (1 + 1e-6)


def test_for_row_windows_the_steady_program_is_the_fixed_one() -> None:
    setting = lowest("linear")
    fixed, steady = (divide(p, setting.graph, setting.tree, 1000) for p in (LP, STEADY))
    assert steady.results == pytest.approx(fixed.results)


def test_freshness_that_cannot_be_held_is_loosened() -> None:
    setting = lowest("linear")
    found = divide(JAQPOT, setting.graph, setting.tree, 300, setting.fresh_seconds(1.5))
    assert found.loosened > 1
    assert found.probes <= 300 * (1 + 1e-6)


def test_the_engine_keeps_to_a_budget_and_a_stage_can_be_begun_again() -> None:
    setting = lowest("bushy")
    division = divide(LP, setting.graph, setting.tree, 600)
    _, full = staged(setting, 5.0, 1).play(0.8)
    one, _ = full.play(0.8, division.allowance)
    again, _ = full.play(0.8, division.allowance)
    assert one == again
    assert one.probes / one.seconds == pytest.approx(600, rel=0.35)
    assert 0 < one.fresh_rate <= one.all_rate


def test_covers_and_analyses() -> None:
    assert 0 <= infeasible(spent(2)) < 1
    for one in analyses(5, 3):
        assert one.excess >= -1e-6
        assert one.analysis_ms > 0


def test_readings_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "motes.parquet"
    motes = np.tile(np.arange(1, 11), 2_100)
    warmth = 20 + motes / 10
    pq.write_table(pa.table({"moteid": motes, "temperature": warmth}), file)
    found = readings(file)
    assert found.source == "motes.parquet"
    assert found.length == len(motes) / RATE
    first = found.between(0, 100)
    assert {name: table.num_rows for name, table in first.items()} == dict.fromkeys(GROUPS, 20)
    with pytest.raises(QueryError, match="no file"):
        readings(tmp_path / "nowhere.parquet")
    pq.write_table(pa.table({"moteid": [1]}), file)
    with pytest.raises(QueryError, match="no column 'temperature'"):
        readings(file)


def test_readings_as_they_were_published(tmp_path: Path) -> None:
    """Lines end early where the sensor failed, and hot ones come from dying batteries; both are left out."""
    file = tmp_path / "data.txt"
    good = [f"2004-03-0{1 + i % 9} 03:38:15.7 {i} {1 + i % 54} 19.9 37.1 45.1 2.7" for i in range(20_000)]
    bad = ["2004-03-31 03:38:15.7 2 1", "2004-03-31 03:38:15.7 2 1 122.153 -3.9 11.0 2.0"]
    file.write_text("\n".join([*bad, *good]) + "\n")
    assert len(readings(file).group) == len(good)


def point(shape: Shape, policy: str, share: float) -> Point:
    return Point(shape, 0, 1.5, policy, 0.6, share, share, 100 * share, 0.0, 60.0, 100 * share, 60.0, 1.0)


def test_what_is_told_and_drawn(tmp_path: Path) -> None:
    """Where JAQPOT has twice what every rival has, it is said so, and where it misses, why."""
    ahead = {policy: 0.7 if policy in (JAQPOT, LP) else 0.35 for policy in POLICIES_COMPARED}
    points = [point(shape, policy, share) for shape in SHAPES for policy, share in ahead.items()]
    timed = [point("linear", policy, 0.5 + 0.2 * (policy == STEADY)) for policy in POLICIES_TIMED]
    stale = [Staleness("linear", 0, policy, 1.5, 0.0, 9.0, 0.0, 1.0) for policy in POLICIES_COMPARED[:-1]]
    minutes = [Minute(shape, 0, p, 10, round(100 * s), 9, 1.0) for shape in SHAPES for p, s in ahead.items()]
    marks = [Mark("made up", 0, 300.0, p, 4.0, round(100 * s), 9, 9, 1.0) for p, s in ahead.items()]
    covers, timings = spent(2), analyses(5, 2)
    told = aims(points, timed, stale, covers, minutes, timings, marks)
    by = {aim.what: aim for aim in told}
    bushy = by["figure 7, bushy: times the best rival's results, mean over the resources"]
    assert bushy.reached and "LP 2.00x" in bushy.found
    linear = by["figure 7, linear: share of the saturation throughput at 60 % of its resources"]
    assert not linear.reached and "foretells" in linear.why
    assert (
        "1.40x"
        in by["windows of time, linear: the program for steady states against that for fixed ones"].found
    )
    report = Report(QUICK, "made up", points, timed, stale, covers, minutes, timings, marks, told)
    printed = StringIO()
    show(report, Console(file=printed, width=200))
    assert "rates 300" in printed.getvalue() and "no" in printed.getvalue()
    draw_throughput(points, tmp_path / "7.png")
    draw_timed(timed, tmp_path / "7t.png")
    draw_freshness(stale, covers, tmp_path / "9.png")
    draw_shifts(minutes, tmp_path / "6.png")
    draw_sensors(marks, "made up", tmp_path / "8.png")
    assert len(list(tmp_path.glob("*.png"))) == 5
