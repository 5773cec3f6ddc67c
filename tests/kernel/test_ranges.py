"""Ranges of rows and their pairs: NumPy's form against a plain scan, and the compiled form against both."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from importlib.machinery import ModuleSpec
from threading import Event
from types import ModuleType

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weir.kernel import ranges
from weir.kernel.index import KeyIndex

NEAR = st.integers(-20, 20)
FAR = st.sampled_from([-(2**62), -(2**40), -1, 0, 7, 2**40, 2**62])
NUMBER = NEAR | FAR


@pytest.fixture(params=["NumPy", "compiled"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(ranges._Steps, "made", 0)
    if request.param == "compiled":
        pytest.importorskip("numba", reason="the extra [fast] is not installed")
        ranges.use_compiled()
    yield request.param


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(NUMBER, NUMBER), min_size=1, max_size=30),
    probes=st.lists(st.tuples(NUMBER, NUMBER, NUMBER), min_size=1, max_size=20),
    bounded=st.tuples(st.booleans(), st.booleans()),
)
def test_rows_of_a_key_within_times_are_found(
    form: str,
    rows: list[tuple[int, int]],
    probes: list[tuple[int, int, int]],
    bounded: tuple[bool, bool],
) -> None:
    keys, times = np.array(sorted(rows), np.int64).reshape(-1, 2).T.copy()
    index = KeyIndex.of(keys, times)
    wanted, low, high = np.array(probes, np.int64).T.copy()
    ranks, present = index.find_ranks(wanted, None)
    bounds = low if bounded[0] else None, high if bounded[1] else None
    first, count = ranges.find_ranges(index, ranks, present, *bounds)
    driver, row = ranges.expand(first, count, 0, None)
    found = list(zip(driver.tolist(), row.tolist(), strict=True))
    assert found == [
        (i, j)
        for i, (key, least, most) in enumerate(probes)
        for j, (other, time) in enumerate(sorted(rows))
        if key == other and (not bounded[0] or least <= time) and (not bounded[1] or time <= most)
    ]


@pytest.mark.usefixtures("form")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    ranges_=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), max_size=20),
    start=st.integers(0, 5),
    is_sorted=st.booleans(),
)
def test_ranges_are_expanded_in_order(ranges_: list[tuple[int, int]], start: int, is_sorted: bool) -> None:
    low, count = np.array(ranges_, np.int64).reshape(-1, 2).T.copy()
    rows = None if is_sorted else np.arange(40)[::-1].copy()
    driver, row = ranges.expand(low, count, start, rows)
    positions = [(start + i, first + j) for i, (first, n) in enumerate(ranges_) for j in range(n)]
    expected = positions if rows is None else [(i, int(rows[j])) for i, j in positions]
    assert list(zip(driver.tolist(), row.tolist(), strict=True)) == expected


def test_a_numba_that_does_not_work_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken = ModuleType("numba")
    broken.__spec__ = ModuleSpec("numba", None)
    monkeypatch.setitem(sys.modules, "numba", broken)
    monkeypatch.setattr(ranges, "_start_loading", cache(ranges._start_loading.__wrapped__))
    monkeypatch.setattr(ranges._Steps, "made", 0)
    ranges.use_compiled()
    for _ in range(2):
        driver, row = ranges.expand(np.array([7, 3]), np.array([2, 1]), 0, None)
        assert (driver.tolist(), row.tolist()) == ([0, 0, 1], [7, 8, 3])
    (warning,) = caplog.records
    assert "Numba is installed but does not work" in warning.getMessage()


def test_the_compiled_form_waits_until_it_pays_and_no_batch_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may_end, began = Event(), Event()

    def load() -> None:
        began.set()
        assert may_end.wait(10)

    monkeypatch.setattr(ranges, "_load", load)
    monkeypatch.setattr(ranges, "_start_loading", cache(ranges._start_loading.__wrapped__))
    monkeypatch.setattr(ranges._Steps, "made", ranges._WORTH_COMPILING - 1)
    ranges.expand(np.array([0]), np.array([1]), 0, None)
    assert not began.is_set(), "the first call makes the last step that does not pay"
    ranges.expand(np.array([0]), np.array([1]), 0, None)
    assert began.wait(10) and not ranges._start_loading().done(), "the second call goes on beside it"
    may_end.set()
    assert ranges._start_loading().result() is None
