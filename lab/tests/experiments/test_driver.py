"""The pieces of `weir-lab driver`, and a tiny run of the whole."""

from __future__ import annotations

from csv import DictReader
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from weir.plan.tree import Leaf
from weir_lab.cli.app import app
from weir_lab.driver import experiment
from weir_lab.driver.arrivals import draw_times
from weir_lab.driver.course import Course, mean_early_share, mean_time_ratio
from weir_lab.driver.engine import run_on_engine
from weir_lab.driver.experiment import Size
from weir_lab.driver.play import play, play_data_set, policies, score_runs
from weir_lab.driver.settings import (
    COMPARED,
    CONSUMPTION,
    INITIAL,
    MORE,
    SETS,
    TABLE_4,
    TABLE_5,
    TIMESTAMP,
    DataSet,
    paper,
)
from weir_lab.driver.streams import count_results, count_statistics, generate, selectivity
from weir_lab.driver.table2 import compute_column, compute_table2
from weir_lab.driver.work import count_work

SMALL = [data_set.scaled(0.002) for data_set in SETS]


def quiet(_: str) -> None:
    pass


def test_table_2_comes_out_exactly() -> None:
    printed = compute_table2(quiet)
    assert len(printed) == 18
    assert all(number.is_equal for number in printed), [number for number in printed if not number.is_equal]


@pytest.mark.parametrize("data_set", SMALL, ids=lambda data_set: data_set.name)
def test_small_sets_have_the_same_rows_of_each_key(data_set: DataSet) -> None:
    streams = generate(data_set, 5)
    for name, rows, per_key in zip(data_set.streams, data_set.rows, data_set.per_key, strict=True):
        keys, counts = np.unique(streams.keys[name], return_counts=True)
        assert len(streams.keys[name]) == len(streams.times[name]) == rows
        assert set(counts[keys < data_set.shared].tolist()) == {per_key}
        assert set(counts[keys >= data_set.shared].tolist()) <= {1}
        assert (np.diff(streams.times[name]) >= 0).all() and streams.times[name][-1] < data_set.span
    alone = [set(streams.keys[name][streams.keys[name] >= data_set.shared].tolist()) for name in streams.keys]
    assert sum(map(len, alone)) == len(set().union(*alone))
    assert count_results(streams, data_set.streams) == data_set.shared * np.prod(data_set.per_key)
    # Selectivities are those of table 2 but for the smaller product.
    assert [number.computed / number.paper for number in compute_column(streams, "I-IV")[:3]] == (
        pytest.approx([500.0] * 3) if data_set.per_key[1] == 5 else pytest.approx([1e6, 5e3, 1e3])
    )


@pytest.mark.parametrize(
    "data_set", [*SMALL, *(data_set.scaled(0.01) for data_set in MORE)], ids=lambda data_set: data_set.name
)
def test_each_driver_probes_the_most_selective_first(data_set: DataSet) -> None:
    streams = generate(data_set, 1)
    for driver, order in zip(data_set.plan.inputs, data_set.plan.orders, strict=True):
        assert isinstance(driver, Leaf)
        shares = [selectivity(streams, (str(driver),), data_set.streams[i]) for i in order]
        assert shares == sorted(shares)


def test_arrivals_are_as_told() -> None:
    rng = np.random.default_rng(1)
    rows, span = 80_000, 1_000_000
    halves = {
        name: np.mean(draw_times(name, rows, span, rng) < span / 2)
        for name in ("uniform", "fast first", "slow first", "sinusoidal", "20-80", "80-20")
    }
    assert halves["20-80"] == pytest.approx(0.2, abs=0.01)
    assert halves["80-20"] == pytest.approx(0.8, abs=0.01)
    assert [halves[name] for name in ("uniform", "fast first", "sinusoidal")] == pytest.approx(
        [0.5] * 3, abs=0.01
    )
    # 1 row per 5 time units in the first eighth, then 1 per 15.
    eighths = np.histogram(draw_times("fast first", rows, span, rng), bins=8, range=(0, span))[0]
    assert eighths[0] / eighths[1] == pytest.approx(3, rel=0.05)


@pytest.mark.parametrize(
    "data_set", [SMALL[1], SMALL[5], MORE[1].scaled(0.01)], ids=lambda data_set: data_set.name
)
def test_a_tuple_at_a_time_finds_what_the_kernel_finds(data_set: DataSet) -> None:
    """In every batch, whatever the policy, and as many as were counted without joining."""
    streams = generate(data_set, 0)
    facts = count_statistics(streams)
    whole = data_set.shared * int(np.prod(data_set.per_key))
    for policy in policies(data_set):
        for ahead in (False, True):
            assert sum(course.results for course in play(streams, 10, policy, facts, ahead)) == whole
        counted = count_work(streams, 10, policy, facts)  # type: ignore[arg-type]
        assert [c.results for c in counted] == [c.results for c in play(streams, 10, policy, facts)]
    for played in run_on_engine(data_set, 10, 1, quiet):
        assert played.results == whole


@pytest.mark.parametrize("data_set", [SMALL[0], SMALL[4]], ids=lambda data_set: data_set.name)
def test_counted_work_is_the_kernels(data_set: DataSet) -> None:
    streams = generate(data_set, 0)
    counted = count_work(streams, 10, data_set.streams, count_statistics(streams))
    fixed = next(run_on_engine(data_set, 10, 1, quiet))
    # The kernel does not probe for a delta while some state is still empty; after the first fifth none is.
    assert fixed.work == np.mean([course.spent for course in counted[2:]])


def test_orders_differ_in_work_by_little() -> None:
    streams = generate(SETS[0].scaled(0.01), 0)
    facts = count_statistics(streams)
    work = {
        order: sum(c.spent for c in count_work(streams, 10, order, facts))
        for order in permutations(streams.data_set.streams)
    }
    least = sum(c.spent for c in count_work(streams, 10, "least-work", facts))
    assert max(work.values()) < 1.05 * min(work.values())
    assert least == min(work.values())


def test_courses() -> None:
    slow, quick = Course(((1.0, 0), (2.0, 30), (4.0, 40))), Course(((1.0, 40), (2.0, 40)))
    assert slow.share(2.0) == 0.75 and slow.share(1.5) == 0.375 and slow.share(9.0) == 1.0
    assert quick.moment == 0.5
    listed = [slow] * 10, [quick] * 10
    assert mean_time_ratio(listed[1], listed[0]) == 0.5
    assert mean_early_share(listed[1], listed[0]) == 1.0 and mean_early_share(listed[0], listed[1]) == 0.0
    # Batches without results say nothing of when they come.
    assert mean_early_share([slow] * 9 + [Course(())], [slow] * 10) == 0.75


def test_the_papers_tables() -> None:
    assert paper(TABLE_4, "V", INITIAL, "1M") == 0.5
    assert paper(TABLE_4, "V", CONSUMPTION, "0.1M") == 0.863
    assert paper(TABLE_5, "I", CONSUMPTION, "1M") is None
    assert all(len(column) in (2, 6) for table in (TABLE_4, TABLE_5) for column in table.values())


def test_scores_are_beside_timestamp() -> None:
    cells = score_runs(play_data_set(SMALL[4], (10,), 2, False, quiet))
    assert [score.policy for score in cells] == list(COMPARED)
    for score in cells:
        assert (
            score.time_least <= score.time <= score.time_most and 0 <= score.early_least <= score.early <= 1
        )
        assert score.policy != TIMESTAMP or score.time == 1


TINY = Size(
    part=0.001,
    uneven_part=0.005,
    repeats=1,
    ahead=1,
    whole=False,
    more_part=0.003,
    more_repeats=1,
    engine_part=0.002,
    engine_repeats=1,
    endless_keys=60,
    endless_batches=4,
)


def test_the_command_writes_its_files_and_tells_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "QUICK", TINY)
    out = tmp_path / "out"
    done = CliRunner().invoke(app, ["driver", "--quick", "--out", str(out)], catch_exceptions=False)
    assert done.exit_code == 0
    assert {file.stem for file in out.glob("*.png")} == {
        "figure5", "figure6", "figure7", "figure8", "work", "streams", "engine",
    }  # fmt: skip
    assert {file.stem for file in out.glob("*.csv")} >= {
        "table2",
        "table4_5",
        "figure5",
        "figure8",
        "work",
        "aims",
    }
    with (out / "table4_5.csv").open() as file:
        cells = list(DictReader(file))
    # Both sizes of batches, told beforehand and not; five policies for I-IV and six for V-VI.
    assert len(cells) == 2 * 2 * (4 * 5 + 2 * 6)
    with (out / "aims.csv").open() as file:
        told = {row["what"]: row for row in DictReader(file)}
    assert told["table 2, counted over the keys of all rows"]["reached"] == "True"
    for word in ("Table 4", "Table 5", "The paper's headlines", "need 10^5"):
        assert word in done.output


def test_a_whole_run_tells_its_size_too() -> None:
    names = (TIMESTAMP, INITIAL)
    small = replace(SMALL[4], name="V")
    assert {run.policy for run in play_data_set(small, (10,), 1, False, quiet, names)} == set(names)
