from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.adapt.simulated_machine import SECOND, asked, lags_at

from weir.adapt.eviction import choose_kept
from weir.adapt.slice_summary import SliceSummary, estimate_live_rows, estimate_loss

QUERY = asked()


def summarise(node: str, first: float, size: int = 100, rows: int = 10, window: float = 10) -> SliceSummary:
    """A slice of a second."""
    times = (first, first + 1, first + 1 + window)
    return SliceSummary(node, rows, size, *(round(time * SECOND) for time in times))


def test_all_slices_stay_if_all_fit() -> None:
    assert choose_kept([summarise("a", 0), summarise("a", 1)], 200, 5 * SECOND) == [True, True]


def test_slices_with_the_longest_lifetime_stay() -> None:
    slices = [summarise("a", 0), summarise("b", 8), summarise("c", 4)]
    assert choose_kept(slices, 200, 9 * SECOND) == [False, True, True]
    assert choose_kept(slices, 100, 9 * SECOND) == [False, True, False]
    assert choose_kept(slices, 99, 9 * SECOND) == [False] * 3, "one alone may be too large"


def test_smaller_rows_are_worth_more_per_byte() -> None:
    assert choose_kept([summarise("a", 4, size=300), summarise("b", 4, size=100)], 300, 5 * SECOND) == [
        False,
        True,
    ]


def test_rows_of_row_windows_stay() -> None:
    line = SliceSummary("a", 10, 100, 0, SECOND, None)
    assert choose_kept([line, summarise("b", 8)], 100, 9 * SECOND) == [True, False]


def test_rows_without_results_to_come_by_their_lags_go_first() -> None:
    """All matches of a lie three seconds before their partners."""
    slices = [summarise("a", age, window=10) for age in (9.0 - 2, 9.0 - 5)]
    later = [summarise("b", age, window=10) for age in (9.0 - 2, 9.0 - 5)]
    lags = lags_at(QUERY, 3.0)
    assert choose_kept([*slices, *later], 100, 9 * SECOND, lags) == [True, False, False, False]


@given(
    sizes=st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.integers(0, 500)), max_size=12),
    allowed=st.integers(0, 3000),
    now=st.none() | st.integers(0, 30 * SECOND),
    aware=st.booleans(),
)
def test_no_more_bytes_than_allowed_and_no_slice_that_fits_evicted(
    sizes: list[tuple[str, int, int]], allowed: int, now: int | None, aware: bool
) -> None:
    slices = [summarise(node, first, size) for node, first, size in sizes]
    kept = choose_kept(slices, allowed, now, lags_at(QUERY, 3.0) if aware else None)
    taken = sum(one.bytes for one, stays in zip(slices, kept, strict=True) if stays)
    assert taken <= allowed
    assert all(taken + one.bytes > allowed for one, stays in zip(slices, kept, strict=True) if not stays)


def test_live_rows_and_lost_results() -> None:
    slices = [summarise("a", 0), summarise("a", 5), summarise("b", 0, rows=8)]
    assert estimate_live_rows(slices, None) == {"a": 20, "b": 8}
    assert estimate_live_rows(slices, round(10.5 * SECOND)) == {"a": pytest.approx(15), "b": pytest.approx(4)}
    evicted = [summarise("b", 5, rows=12)]
    assert estimate_loss(evicted, slices, round(10.5 * SECOND)) == {"b": pytest.approx(12 / 16)}
    assert estimate_loss(evicted, slices, 99 * SECOND) == {}


def test_evicted_rows_without_results_to_come_are_no_loss() -> None:
    """Results are three seconds apart: only younger rows of `a` are still worth something."""
    old = SliceSummary("a", 10, 100, 0, SECOND, 10 * SECOND)
    young = SliceSummary("a", 10, 100, 7 * SECOND, 8 * SECOND, 17 * SECOND)
    now, lags = 9 * SECOND, lags_at(QUERY, 3.0)
    assert estimate_loss([old], [young], now)["a"] == pytest.approx(0.5)
    assert estimate_loss([old], [young], now, lags)["a"] < 0.05
    assert estimate_loss([young], [old], now, lags)["a"] > 0.95
