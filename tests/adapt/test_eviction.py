from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.adapt.simulated_machine import SECOND, asked, lags_at

from weir.adapt.eviction import choose_shares
from weir.adapt.slice_summary import SliceSummary, estimate_live_rows
from weir.kernel.state_schema import derive_schemas
from weir.plan.default_plan import mjoin
from weir.runtime.memory_limit import find_clocks
from weir.stats.lag_histogram import LagHistograms

QUERY = asked()


def summarise(node: str, first: float, size: int = 100, rows: int = 10, window: float = 10) -> SliceSummary:
    """A slice of a second."""
    times = (first, first + 1, first + 1 + window)
    return SliceSummary(node, rows, size, *(round(time * SECOND) for time in times))


def at(seconds: float) -> dict[str, int]:
    return dict.fromkeys("abc", round(seconds * SECOND))


def kept(
    slices: list[SliceSummary], allowed: int, now: float, lags: LagHistograms | None = None
) -> list[bool]:
    return [share == 1 for share in choose_shares(slices, allowed, at(now), lags)]


def test_all_slices_stay_if_all_fit() -> None:
    assert kept([summarise("a", 0), summarise("a", 1)], 200, 5) == [True, True]


def test_slices_with_the_longest_lifetime_stay() -> None:
    slices = [summarise("a", 0), summarise("b", 8), summarise("c", 4)]
    assert kept(slices, 240, 9) == [False, True, True]
    assert kept(slices, 120, 9) == [False, True, False]
    assert kept(slices, 99, 9) == [False] * 3, "one alone may be too large"


def test_smaller_rows_are_worth_more_per_byte() -> None:
    assert kept([summarise("a", 4, size=300), summarise("b", 4, size=100)], 300, 5) == [False, True]


def test_rows_of_row_windows_stay() -> None:
    line = SliceSummary("a", 10, 100, 0, SECOND, None)
    assert kept([line, summarise("b", 8)], 100, 9) == [True, False]


def test_rows_without_results_to_come_by_their_lags_go_first() -> None:
    """All matches of a lie three seconds before their partners."""
    slices = [summarise("a", age, window=10) for age in (9.0 - 2, 9.0 - 5)]
    later = [summarise("b", age, window=10) for age in (9.0 - 2, 9.0 - 5)]
    assert kept([*slices, *later], 120, 9, lags_at(QUERY, 3.0)) == [True, False, False, False]


def test_the_slowest_other_stream_tells_what_a_slice_is_worth() -> None:
    """Stream c is eight seconds behind: old rows of a and b wait for it, and its own wait for nobody."""
    leaf = replace(derive_schemas(QUERY, mjoin(QUERY))["a"], streams=frozenset("a"))
    states = {name: replace(leaf, node=name, streams=frozenset(name)) for name in "abc"}
    newest = {"a": 10 * SECOND, "b": 11 * SECOND, "c": 2 * SECOND}
    clocks = find_clocks(states, newest, ())
    assert clocks == {"a": 2 * SECOND, "b": 2 * SECOND, "c": 10 * SECOND}
    slices = [summarise("a", 1, window=5), summarise("c", 1, window=5)]
    assert [share == 1 for share in choose_shares(slices, 120, clocks)] == [True, False]
    assert find_clocks(states, newest, ("c",))["a"] == 11 * SECOND, "an idle stream holds nothing up"
    assert find_clocks(states, {"a": 1, "b": 1}, ()) == {"c": 1}


def test_a_rest_of_every_slice_stays_and_rests_are_thinned_only_for_want_of_memory() -> None:
    slices = [summarise("a", first, size=1000) for first in range(8)]
    shares = choose_shares(slices, 4000, at(8))
    assert sorted(set(shares)) == [pytest.approx(1000 / 2 / 5000), 1.0] and shares.count(1.0) == 3
    rests = [replace(one, is_rest=True, bytes=100) for one in slices[:2]]
    assert choose_shares([*rests, *slices[2:]], 4000, at(8))[:2] == [1.0, 1.0]
    many = [replace(one, is_rest=True, bytes=100) for one in slices]
    shares = choose_shares([*many, *slices[2:]], 4000, at(8))
    assert shares[:8] == [0.5] * 8 and 0 < min(shares[8:]) <= 0.1


@given(
    sizes=st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.integers(0, 5000), st.booleans()), max_size=12
    ),
    allowed=st.integers(0, 30000),
    now=st.none() | st.integers(0, 30),
    aware=st.booleans(),
)
def test_no_more_bytes_than_allowed_and_no_slice_without_a_rest(
    sizes: list[tuple[str, int, int, bool]], allowed: int, now: int | None, aware: bool
) -> None:
    slices = [replace(summarise(node, first, size), is_rest=rest) for node, first, size, rest in sizes]
    lags = lags_at(QUERY, 3.0) if aware else None
    shares = choose_shares(slices, allowed, {} if now is None else at(now), lags)
    taken = sum(one.bytes * share for one, share in zip(slices, shares, strict=True))
    least = sum(one.bytes for one in slices) / 1024
    assert taken <= allowed + 2 * least and all(share > 0 for share in shares)
    part = [one for one, share in zip(slices, shares, strict=True) if share < 1 and not one.is_rest]
    whole = sum(
        one.bytes for one, share in zip(slices, shares, strict=True) if share == 1 and not one.is_rest
    )
    assert all(whole + one.bytes > allowed * 7 / 8 for one in part)


def test_live_rows() -> None:
    slices = [summarise("a", 0), summarise("a", 5), summarise("b", 0, rows=8)]
    assert estimate_live_rows(slices, None) == {"a": 20, "b": 8}
    assert estimate_live_rows(slices, round(10.5 * SECOND)) == {"a": pytest.approx(15), "b": pytest.approx(4)}
