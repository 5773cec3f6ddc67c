"""The pieces of `weir lab jaqpot`; the whole takes a minute and is left to the command."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weir import QueryError
from weir.lab.jaqpot.analysis import analyses
from weir.lab.jaqpot.divide import JAQPOT, LP, POLICIES_COMPARED, STEADY, divide
from weir.lab.jaqpot.freshness import infeasible, spent
from weir.lab.jaqpot.play import staged
from weir.lab.jaqpot.sensors import GROUPS, RATE, readings
from weir.lab.jaqpot.settings import SHAPES, Setting, Shape, edges, settings, tree
from weir.query import RowWindow
from weir.stats import JoinGraph


def lowest(shape: Shape) -> Setting:
    graph = JoinGraph.of(dict.fromkeys("ABCD", 300.0), RowWindow(200), edges(shape, (0.01, 0.01, 0.02)))
    return Setting(shape, 0, graph, tree(shape, [200, 200]), 5.0)


@pytest.mark.parametrize("shape", SHAPES)
def test_settings_repeat_and_differ(shape: Shape) -> None:
    one, again = settings(shape, 2), settings(shape, 2)
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
