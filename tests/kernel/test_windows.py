"""Which rows join: the edges of time windows, row windows and time bounds."""

from __future__ import annotations

import pytest

import weir
from weir.plan.tree import Join, Leaf, join
from weir.query.windows import RowWindow

from .timeline import Batch, Row, play, rows_kept, started

PLANS = ["mjoin", "bjtree", join("c", join("b", "a")), join(join("a", "c"), "b")]


def test_a_window_ends_just_before_its_length() -> None:
    """
    a's window of 10:   [7 ........ 16] 17
    b                            16  joins, 17 does not
    """
    play(
        started("ab", within=10),
        Row("a", t=7),
        Row("b", t=16, expect=["a7 b16"]),
        Row("b", t=17),
    )


def test_a_row_behind_the_newest_joins_later_rows_inside_its_own_window() -> None:
    play(
        started("ab", within={"a": 5, "b": 100}, late=100),
        Row("b", t=50),
        Row("a", t=46, expect=["a46 b50"]),
        Row("a", t=45),
        Row("a", t=149, expect=["a149 b50"]),
        Row("a", t=150),
    )


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_the_earliest_deadline_of_three_streams_decides(plan: object) -> None:
    """
    a, window 20   [0 ................. 19]
    b, window 5           [8 .. 12]
    c, window 9        [6 ....... 14]
                                12 joins, 13 is past b's deadline
    """
    play(
        started("abc", within={"a": 20, "b": 5, "c": 9}, plan=plan, late=100),
        Row("a", t=0),
        Row("b", t=8),
        Row("c", t=13),
        Row("c", t=12, expect=["a0 b8 c12"]),
        Row("c", t=6, expect=["a0 b8 c6"]),
        Row("b", t=15, expect=["a0 b15 c12", "a0 b15 c13"]),
        Row("a", t=22),
    )


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_two_rows_that_fit_a_third_need_not_fit_each_other(plan: object) -> None:
    play(
        started("abc", within={"a": 4, "b": 100, "c": 100}, plan=plan, late=100),
        Batch([Row("a", t=0), Row("c", t=5)]),
        Row("b", t=2),
        Row("c", t=3, expect=["a0 b2 c3"]),
    )


def test_bounds_are_inclusive_and_may_be_shifted() -> None:
    play(
        started(
            "ab",
            on="a.k = b.k AND b.ts BETWEEN a.ts + INTERVAL 2 MICROSECONDS AND a.ts + INTERVAL 4 MICROSECONDS",
            late=100,
        ),
        Row("a", t=10),
        Batch([Row("b", t=t) for t in range(10, 16)], expect=["a10 b12", "a10 b13", "a10 b14"]),
    )


def test_negative_retention_keeps_a_row_only_until_the_watermark_has_passed_its_partners() -> None:
    """a meets only rows of b that are at least 3 older.

    Once the watermark has left those behind, a row of a need not be kept, though it is not late itself.
    Until then it is: its partner, though older, may come after it.
    """
    query = started(
        "ab",
        on="a.k = b.k AND a.ts BETWEEN b.ts + INTERVAL 3 MICROSECONDS AND b.ts + INTERVAL 5 MICROSECONDS",
    )
    play(
        query,
        Batch([Row("b", t=10), Row("b", t=12), Row("b", t=30)]),
        Row("a", t=13, expect=["a13 b10"]),
        Row("a", t=15, expect=["a15 b10", "a15 b12"]),
    )
    assert rows_kept(query) == {"a": 0, "b": 3}
    play(query, Row("a", t=40), Row("b", t=37, expect=["a40 b37"]))


def test_bounds_reach_through_a_third_stream() -> None:
    """a to b at most 2, b to c at most 3: a's rows are kept for 5, though nothing ties a to c."""
    query = started(
        "abc",
        on="""b.ts BETWEEN a.ts AND a.ts + INTERVAL 2 MICROSECONDS
              AND c.ts BETWEEN b.ts AND b.ts + INTERVAL 3 MICROSECONDS""",
    )
    play(
        query,
        Batch([Row("a", t=10), Row("b", t=12)]),
        Batch([Row("a", t=16), Row("b", t=16)]),
        Row("c", t=15, expect=["a10 b12 c15"]),
    )
    assert rows_kept(query) == {"a": 2, "b": 2, "c": 1}
    play(query, Row("c", t=16, expect=["a16 b16 c16"]), Row("c", t=16, expect=["a16 b16 c16"]))
    assert rows_kept(query) == {"a": 1, "b": 1, "c": 2}


@pytest.mark.parametrize("plan", ["mjoin", "bjtree", join("b", "a")], ids=str)
def test_a_row_window_holds_the_last_rows(plan: object) -> None:
    """The window of two rows of a: a1 leaves when a3 comes, however little time has passed."""
    play(
        started("ab", within={"a": weir.rows(2), "b": 100}, plan=plan),
        Row("a", t=1),
        Row("a", t=2),
        Row("b", t=2, expect=["a1 b2", "a2 b2"]),
        Row("a", t=3, expect=["a3 b2"]),
        Row("b", t=4, expect=["a2 b4", "a3 b4"]),
    )


def test_within_a_batch_a_row_window_moves_in_the_order_of_time() -> None:
    """
    a, window 1 row     1 ──────▶ 5
    b                       3         7
    """
    play(
        started("ab", within={"a": weir.rows(1), "b": 100}),
        Batch(
            [Row("a", t=5), Row("b", t=7), Row("a", t=1), Row("b", t=3)],
            expect=["a1 b3", "a5 b3", "a5 b7"],
        ),
    )


def test_a_row_that_joins_nothing_still_counts_in_a_row_window() -> None:
    """a2 has no key and joins with nothing, yet it pushes a1 out of a window of one row."""
    play(
        started("ab", within={"a": weir.rows(1), "b": 100}),
        Row("a", t=1),
        Row("a", t=2, k=None),
        Row("b", t=3),
    )


def test_a_row_without_a_key_makes_no_output_that_counts_in_a_row_window() -> None:
    """a3 has no key for the root to match, which its leaf knows: (a3 b4) never pushes (a1 b2) out."""
    two = ((1,), (0,))
    plan = Join((Join((Leaf("a"), Leaf("b")), two, RowWindow(1)), Leaf("c")), two)
    play(
        started(
            "abc",
            on="a.ts < b.ts AND b.ts < a.ts + INTERVAL 2 MICROSECONDS AND a.k = c.k",
            within=100,
            plan=plan,
        ),
        Batch([Row("a", t=1), Row("b", t=2)]),
        Row("c", t=2, expect=["a1 b2 c2"]),
        Batch([Row("a", t=3, k=None), Row("b", t=4)]),
        Row("c", t=5, expect=["a1 b2 c5"]),
    )
