"""Difference constraints: windows and time bounds, closed over shortest paths."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.errors import QueryError
from weir.query.windows import Bounds, RowWindow, TimeBound, TimeWindow, Window, close_bounds, tighten

NAMES = ("a", "b", "c")
LARGEST = 3
# Times of a solution that attains a bound can be chosen within the sum of two edges of each kind.
GRID = np.array(list(product(range(4 * LARGEST + 1), repeat=len(NAMES))))

bounds_between = st.builds(
    lambda pair, limit: TimeBound(pair[0], pair[1], limit),
    st.sampled_from([(i, j) for i in NAMES for j in NAMES if i != j]),
    st.integers(-LARGEST, LARGEST),
)
windows_of = st.one_of(st.none(), st.integers(1, LARGEST + 1).map(TimeWindow), st.just(RowWindow(2)))


def solutions(windows: list[Window | None], bounds: list[TimeBound]) -> np.ndarray:
    """Every choice of small times that the definition of a join allows."""
    allowed = np.ones(len(GRID), dtype=bool)
    latest = GRID.max(axis=1)
    for i, window in enumerate(windows):
        if isinstance(window, TimeWindow):
            allowed &= latest - GRID[:, i] < window.microseconds
    for bound in bounds:
        gap = GRID[:, NAMES.index(bound.later)] - GRID[:, NAMES.index(bound.earlier)]
        allowed &= gap <= bound.microseconds
    return GRID[allowed]


@settings(max_examples=300, deadline=None)
@given(st.lists(windows_of, min_size=3, max_size=3), st.lists(bounds_between, max_size=6))
def test_closure_is_what_a_search_over_all_times_finds(
    windows: list[Window | None], bounds: list[TimeBound]
) -> None:
    times = solutions(windows, bounds)
    try:
        closed = tighten(NAMES, windows, bounds)
    except QueryError as error:
        assert "contradict" in str(error)
        assert len(times) == 0
        return
    assert len(times) > 0
    for i, j in product(range(len(NAMES)), repeat=2):
        largest, upper = (times[:, j] - times[:, i]).max(), closed.upper[i][j]
        assert largest == upper if upper is not None else largest > 2 * LARGEST


def test_windows_alone() -> None:
    closed = close_bounds(NAMES, [TimeWindow(10), TimeWindow(20), TimeWindow(5)], [])
    assert closed.upper == ((0, 9, 9), (19, 0, 19), (4, 4, 0))
    assert [closed.retention(i) for i in range(3)] == [10, 20, 5]


def test_bounds_shorten_windows_through_other_streams() -> None:
    closed = close_bounds(NAMES, [TimeWindow(100)] * 3, [TimeBound("a", "b", 3), TimeBound("b", "c", 4)])
    assert closed.upper[0] == (0, 3, 7)
    assert closed.retention(0) == 8


def test_the_retention_of_a_stream_that_is_never_earlier_is_negative() -> None:
    closed = close_bounds(("a", "b"), [None, None], [TimeBound("b", "a", -5), TimeBound("a", "b", 9)])
    assert [closed.retention(i) for i in range(2)] == [10, -4]


def test_row_windows_bound_no_time() -> None:
    closed = close_bounds(("a", "b"), [RowWindow(3), RowWindow(4)], [])
    assert closed.upper == ((0, None), (None, 0))
    assert closed.retention(0) is None


def test_a_stream_left_unbounded_is_named() -> None:
    with pytest.raises(QueryError, match=r"stream 'b' is unbounded.*row of 'a' may be.*within="):
        close_bounds(("a", "b"), [TimeWindow(5), None], [])
    with pytest.raises(QueryError, match=r"stream 'a' is unbounded.*row of 'c' may be"):
        close_bounds(NAMES, [None] * 3, [TimeBound("a", "b", 5), TimeBound("b", "a", 5)])


@pytest.mark.parametrize(
    ("windows", "bounds", "fragments"),
    [
        (
            [None] * 3,
            [TimeBound("a", "b", -1_000_000), TimeBound("b", "a", 999_999)],
            ["of 'a', 'b' contradict", "b - a <= -1 second", "a - b < 1 second"],
        ),
        (
            [None] * 3,
            [TimeBound("a", "b", -1), TimeBound("b", "c", -1), TimeBound("c", "a", 1)],
            ["of 'a', 'b', 'c' contradict", "a - c <= 1 microsecond"],
        ),
        (
            [TimeWindow(5)] * 3,
            [TimeBound("b", "c", -5)],
            ["of 'b', 'c' contradict", "b - c <= 4 microseconds"],
        ),
    ],
)
def test_contradictions_name_the_streams(
    windows: list[Window | None], bounds: list[TimeBound], fragments: list[str]
) -> None:
    with pytest.raises(QueryError) as error:
        close_bounds(NAMES, windows, bounds)
    assert all(fragment in str(error.value) for fragment in fragments), str(error.value)


def test_bounds_that_add_up_to_more_than_times_can_hold_are_refused() -> None:
    long = 2**60
    with pytest.raises(QueryError, match=r"the sum of the time bounds, c - a <= \d+ days.*is too long"):
        close_bounds(
            NAMES,
            [None] * 3,
            [
                TimeBound("a", "b", long),
                TimeBound("b", "c", long),
                TimeBound("b", "a", 0),
                TimeBound("c", "b", 0),
            ],
        )


def test_bounds_cannot_be_built_wrong() -> None:
    with pytest.raises(ValueError, match="2 rows and columns"):
        Bounds(("a", "b"), ((0,),))
    with pytest.raises(ValueError, match="distance zero"):
        Bounds(("a",), ((1,),))
    with pytest.raises(ValueError, match="two different streams"):
        TimeBound("a", "a", 1)
