"""The watermark: which rows advance it, which streams hold it back, and which rows are late."""

from __future__ import annotations

from .timeline import Batch, Row, late, play, rows_kept, started


def test_a_row_behind_the_watermark_is_dropped_and_counted() -> None:
    """
    newest a 50, newest b 40, lateness 10  ──▶  watermark 30
    """
    query = started("ab", within=100, late=10)
    play(query, Row("a", t=50), Row("b", t=40, expect=["a50 b40"]), Row("a", t=29))
    assert late(query) == {"a": 1}
    play(query, Row("a", t=30, expect=["a30 b40"]))
    assert late(query) == {}


def test_lateness_is_judged_by_the_watermark_before_the_batch() -> None:
    query = started("ab", within=100)
    play(query, Batch([Row("a", t=50), Row("b", t=50), Row("a", t=1)], expect=["a1 b50", "a50 b50"]))
    assert late(query) == {}
    play(query, Row("a", t=49))
    assert late(query) == {"a": 1}


def test_each_stream_has_its_own_lateness() -> None:
    query = started("ab", within=100, late={"a": 0, "b": 20})
    play(query, Batch([Row("a", t=50), Row("b", t=60)], expect=["a50 b60"]), Row("b", t=39), Row("a", t=39))
    assert query.state.watermark == 40
    assert late(query) == {"a": 1}


def test_a_stream_without_rows_holds_the_watermark_back() -> None:
    query = started("ab", within=10)
    play(query, Row("a", t=1000), Row("a", t=0), Row("a", t=2000))
    assert query.state.watermark is None
    assert rows_kept(query)["a"] == 3
    play(query, Row("b", t=5, expect=["a0 b5"]))
    assert query.state.watermark == 5


def test_the_watermark_never_goes_back() -> None:
    query = started("ab", within=10)
    marks = []
    for row in (Row("a", t=50), Row("b", t=50), Row("b", t=20), Row("a", t=70), Row("b", t=60)):
        play(query, Batch([row], expect=["a50 b50"] if row == Row("b", t=50) else []))
        marks.append(query.state.watermark)
    assert marks == [None, 50, 50, 50, 60]


def test_a_row_without_a_time_is_dropped_and_counted() -> None:
    query = started("ab", within=10)
    play(query, Batch([Row("a", t=None), Row("a", t=3), Row("b", t=4)], expect=["a3 b4"]))
    assert query.last_report is not None
    assert query.last_report.counts.null_time == {"a": 1, "b": 0}
    assert query.lastProgress is not None
    assert query.lastProgress["weir"]["streams"]["a"]["numRowsNullTime"] == 1


def test_a_row_that_fails_a_filter_still_advances_the_watermark() -> None:
    query = started("ab", on="a.k = b.k AND a.k < 5", within=10)
    play(query, Row("b", t=100), Row("a", t=90, k=7))
    assert query.state.watermark == 90
    assert rows_kept(query)["a"] == 0
