"""The rows of a scenario are what it says, and the truth is what another engine finds in them."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from weir.errors import QueryError
from weir_lab.regret.machine import RealMachine
from weir_lab.regret.play import budget_of, find_truth
from weir_lab.regret.scenarios import SETTLING, Phase, Scenario, list_scenarios
from weir_lab.regret.streams import SCHEMA, SECOND, WINDOW, Delta, Shape, condition, draw_second

_SHAPE = Shape(dict.fromkeys("abc", 20.0), keys=10)
_LAGGED = Shape(dict.fromkeys("abc", 20.0), keys=4, lags={"a": 0.0, "b": 1.0, "c": 2.0})


def _seconds(rows: pa.Table) -> np.ndarray:
    return rows["ts"].cast(pa.int64()).to_numpy() / SECOND


def _whole(feed: list[Delta], name: str) -> pa.Table:
    return pa.concat_tables([SCHEMA.empty_table(), *(delta[name] for delta in feed)])


def test_rows_are_a_function_of_the_seed() -> None:
    once, again, other = (draw_second(_SHAPE, 3, seed) for seed in (1, 1, 2))
    assert once["b"].equals(again["b"]) and not once["b"].equals(other["b"])
    assert {name: table.num_rows for name, table in once.items()} == dict.fromkeys("abc", 20)
    assert ((_seconds(once["a"]) >= 3) & (_seconds(once["a"]) < 4)).all()


def test_hot_keys_and_rows_without_partners() -> None:
    shape = Shape({"a": 2000.0, "b": 2000.0}, keys=10, skew=1.0, misses={"b": 0.7})
    rows = draw_second(shape, 0, 1)
    counts = np.bincount(rows["a"]["k"].to_numpy(), minlength=10)
    assert counts[0] == pytest.approx(2 * counts[1], rel=0.2) and counts[1] > counts[9]
    assert (rows["b"]["k"].to_numpy() < 0).mean() == pytest.approx(0.7, abs=0.05)
    assert (rows["a"]["k"].to_numpy() >= 0).all()


def test_a_stream_that_was_held_up_catches_up_in_order() -> None:
    phases = (
        Phase("calm", 4, _SHAPE),
        Phase("held", 6, _SHAPE, held="c"),
        Phase("after", 12, _SHAPE),
    )
    feed = Scenario("held", "c", phases).feed(1)
    assert [delta["c"].num_rows for delta in feed] == [20] * 4 + [0] * 6 + [60, 60, 60, 20] + [20] * 8
    times = _seconds(_whole(feed, "c"))
    assert (np.diff(times) >= 0).all() and len(times) == 20 * 22
    assert [delta["a"].num_rows for delta in feed] == [20] * 22


def test_late_rows_come_a_second_late_and_none_is_lost() -> None:
    phases = (Phase("late", 5, _SHAPE, late=0.5), Phase("after", 2, _SHAPE))
    feed = Scenario("late", "rows", phases, late="2 seconds").feed(1)
    assert _whole(feed, "a").num_rows == 20 * 7
    delays = [number - int(second) for number, delta in enumerate(feed) for second in _seconds(delta["a"])]
    assert set(delays) == {0, 1} and 0.2 < np.mean(delays) < 0.5


def test_a_ramp_grows_to_its_end() -> None:
    ramp = Phase("ramp", 5, _SHAPE, ramp=3.0)
    assert [round(ramp.shape_at(batch).rates["a"]) for batch in range(5)] == [20, 26, 35, 46, 60]


@pytest.mark.parametrize(("shape", "lagged"), [(_SHAPE, False), (_LAGGED, True)])
def test_the_truth_is_that_of_duckdb(shape: Shape, lagged: bool) -> None:
    phases = (Phase("calm", 8, shape), Phase("late", 4, shape, late=0.3))
    scenario = Scenario("tiny", "late rows", phases, lagged=lagged, late="2 seconds")
    truth = find_truth(scenario, RealMachine(), 1)
    spread = "epoch_us(greatest(a.ts, b.ts, c.ts)) - epoch_us(least(a.ts, b.ts, c.ts))"
    on = f"{condition(('a', 'b', 'c'), lagged)} AND {spread} <= {WINDOW * SECOND}"
    with duckdb.connect() as oracle:
        for name in "abc":
            oracle.register(name, _whole(scenario.feed(1), name))
        ((expected,),) = oracle.execute(f"SELECT count(*) FROM a, b, c WHERE {on}").fetchall()
    assert sum(batch.results for batch in truth.exact) == expected > 500


def test_budgets_are_multiples_of_the_exact_cost() -> None:
    scenario = Scenario("two", "budget", (Phase("x", 12, _SHAPE, 0.5), Phase("y", 2, _SHAPE, memory=2.0)))
    truth = find_truth(scenario, RealMachine(), 1)
    assert budget_of(scenario, truth, 11).cpu == pytest.approx(0.5 * truth.cpu)
    assert budget_of(scenario, truth, 12).cpu is None
    assert budget_of(scenario, truth, 12).bytes == 2 * truth.bytes


def test_a_phase_is_steady_from_its_third_window_on() -> None:
    scenario = next(each for each in list_scenarios(20) if each.name == "ramp")
    steady = [scenario.is_steady(batch) for batch in range(scenario.batches)]
    assert steady == [False] * SETTLING + [True] * 10 + [False] * 20 + [False] * SETTLING + [True] * 10


def test_every_scenario_of_the_issue_is_there() -> None:
    names = [scenario.name for scenario in list_scenarios(16)]
    assert len(names) == len(set(names)) == 12


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(QueryError, match="one batch or more"):
        Phase("none", 0, _SHAPE)
    with pytest.raises(QueryError, match="stream 'z'"):
        Phase("held", 1, _SHAPE, held="z")
    with pytest.raises(QueryError, match="the same streams"):
        Scenario("two", "", (Phase("x", 1, _SHAPE), Phase("y", 1, Shape({"a": 1.0}, 1))))
