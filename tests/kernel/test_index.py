"""Ranges of rows by key and time, against a plain scan."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.kernel.index import KeyIndex

NEAR = st.integers(-20, 20)
FAR = st.sampled_from([-(2**62), -(2**40), -1, 0, 7, 2**40, 2**62])


def sort_rows(rows: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    keys, times = np.array(sorted(rows), np.int64).reshape(-1, 2).T
    return keys.copy(), times.copy()


@settings(max_examples=200, deadline=None)
@given(
    rows=st.lists(st.tuples(NEAR | FAR, NEAR | FAR), min_size=1, max_size=30),
    probes=st.lists(st.tuples(NEAR | FAR, NEAR | FAR, NEAR | FAR), min_size=1, max_size=20),
)
def test_rows_of_a_key_within_times_are_found(
    rows: list[tuple[int, int]], probes: list[tuple[int, int, int]]
) -> None:
    keys, times = sort_rows(rows)
    index = KeyIndex.of(keys, times)
    wanted, low, high = np.array(probes, np.int64).T
    ranks, present = index.find_ranks(wanted, None)
    assert present.tolist() == [key in keys for key in wanted]
    first, last = index.find_rows(ranks[present], low[present], high[present])
    for key, least, most, a, b in zip(
        wanted[present], low[present], high[present], first, np.maximum(first, last), strict=True
    ):
        expected = np.flatnonzero((keys == key) & (times >= least) & (times <= most))
        assert list(range(a, b)) == expected.tolist()


@pytest.mark.parametrize("spread", [1, 1000], ids=["lookup", "search"])
def test_keys_are_looked_up_if_they_are_near_each_other(spread: int) -> None:
    keys = np.arange(0, 50 * spread, spread)
    index = KeyIndex.of(keys, np.zeros(50, np.int64))
    assert (index.lookup is not None) == (spread == 1)
    ranks, present = index.find_ranks(np.array([-1, 0, spread, 49 * spread, 49 * spread + 1]), None)
    assert present.tolist() == [False, True, True, True, False]
    assert ranks[present].tolist() == [0, 1, 49]


def test_times_too_far_apart_for_a_code_are_counted() -> None:
    index = KeyIndex.of(np.array([1, 1, 2]), np.array([-(2**62), 2**62, 0]))
    assert index.times is not None
    first, last = index.find_rows(np.array([0, 0, 1]), np.array([0, -(2**62), 1]), np.array([2**62, 0, 9]))
    assert list(zip(first.tolist(), last.tolist(), strict=True)) == [(1, 2), (0, 1), (3, 3)]
