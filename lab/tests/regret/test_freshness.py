"""Freshness is judged by its definition, and the engine in one process is held against it."""

import pytest

from weir_lab.regret import freshness
from weir_lab.regret.bars import freshness_bar
from weir_lab.regret.freshness import CLOCKS, Batch, Clock, FreshRun, Row, judge, measure_freshness


def test_by_each_clock_a_row_arrives_with_its_batch() -> None:
    """By event time all rows are fresh; by day, the first row of a came two pauses before that of c."""
    feed = [
        {"a": [Row(1, 40, 0)], "b": [], "c": []},
        {"a": [Row(2, 41, 0)], "b": [Row(3, 41, 0)], "c": []},
        {"a": [], "b": [], "c": [Row(4, 41, 0)]},
        {"a": [], "b": [], "c": [Row(5, 42, 0)]},
    ]
    by_event, by_wall = judge(feed, "event"), judge(feed, "wall")
    assert by_event == [Batch([], 0), Batch([], 0), Batch([(1, 3, 4), (2, 3, 4)], 0),
                        Batch([(1, 3, 5), (2, 3, 5)], 0)]  # fmt: skip
    # Rows of a may be two hours old, and each pause is a little longer than one.
    assert by_wall == [Batch([], 0), Batch([], 0), Batch([(2, 3, 4)], 1), Batch([], 2)]


@pytest.mark.parametrize("clock", CLOCKS)
def test_one_process_gives_what_the_definition_says(clock: Clock) -> None:
    bar = freshness_bar(measure_freshness(clock, 5))
    assert bar.reached, bar.measured


def test_a_batch_that_differs_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = judge(freshness.draw_feed(5, 1), "event")
    monkeypatch.setattr(freshness, "judge", lambda *_: wanted)
    monkeypatch.setitem(freshness._WINDOWS, "b", 4)  # shorter than in the truth
    run = measure_freshness("event", 5)
    assert run.equal < 5 and not freshness_bar(run).reached


def test_a_comparison_of_nothing_proves_nothing() -> None:
    assert freshness_bar(FreshRun("Spark", "wall", 5, 5, 9, 9)).reached
    assert not freshness_bar(FreshRun("Spark", "wall", 5, 5, 9, 0)).reached
    assert not freshness_bar(FreshRun("Spark", "wall", 5, 5, 0, 9)).reached
