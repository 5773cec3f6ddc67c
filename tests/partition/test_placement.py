"""Placement: every time has one partition, loads are level, and a change of partitions settles."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import groupby
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.codec import from_json, to_json
from weir.errors import QueryError
from weir.partition.placement import (
    ArrivalForecast,
    Placement,
    StoredSlice,
    assign_future_cells,
    balance_slices,
    change_partitions,
    place_by_time,
)

SECOND = 1_000_000
WINDOW = 10 * SECOND
NOW = 1_700_000_000 * SECOND


@st.composite
def placements(draw: st.DrawFn) -> tuple[Placement, list[StoredSlice], ArrivalForecast]:
    """A placement as some batches have left it, what is held, and what is to come."""
    partitions = draw(st.integers(1, 7))
    placement = place_by_time(draw(st.integers(1, 10**8)), partitions)
    newest = NOW + draw(st.integers(-(10**9), 10**9))
    forecast = ArrivalForecast(
        newest,
        newest - draw(st.integers(0, 10**8)),
        draw(st.floats(0, 1, allow_subnormal=False)),
        draw(st.integers(0, 10**8)),
    )
    ends = st.none() | st.integers(newest - 10**7, newest + 10**8)
    held = draw(st.lists(st.builds(StoredSlice, st.integers(0, 9), st.integers(0, 10**5), ends), max_size=20))
    return placement, held, forecast


@settings(deadline=None)
@given(placements(), st.lists(st.integers(-(2**52), 2**52), max_size=20))
def test_every_time_has_one_home_and_known_times_keep_theirs(
    case: tuple[Placement, list[StoredSlice], ArrivalForecast], times: list[int]
) -> None:
    before, held, forecast = case
    after = assign_future_cells(before, held, forecast)
    assert len(after.homes) == len(before.homes) and after.cell == before.cell
    assert all(0 <= after.partition_at(time) < after.partitions for time in times)
    back = min(forecast.newest - forecast.oldest, (len(after.homes) // 2 - 1) * after.cell)
    for time in (forecast.newest, forecast.newest - back // 2, forecast.newest - back):
        assert after.partition_at(time) == before.partition_at(time), "rows of one slice stay together"


@settings(deadline=None)
@given(placements(), st.integers(1, 9), st.integers(0, 10**7))
def test_another_number_of_partitions_keeps_the_homes_that_remain(
    case: tuple[Placement, list[StoredSlice], ArrivalForecast], partitions: int, back: int
) -> None:
    before, _, forecast = case
    shortest = before.cell * len(before.homes) // 2
    after = change_partitions(before, shortest, partitions, forecast.newest)
    start = (forecast.newest - min(back, shortest)) // after.cell * after.cell
    assert after.partition_at(start) == before.partition_at(start) % partitions


@settings(deadline=None)
@given(placements())
def test_new_slices_go_to_the_least_loaded(
    case: tuple[Placement, list[StoredSlice], ArrivalForecast],
) -> None:
    """While nothing dies, the rows to come make loads as equal as slices can, or go to the least loaded."""
    before, held, forecast = case
    held = [StoredSlice(stored.partition % before.partitions, stored.rows, None) for stored in held]
    forecast = ArrivalForecast(forecast.newest, forecast.newest, max(forecast.rate, 1e-3), 2**60)
    after = assign_future_cells(before, held, forecast)
    first, ring = forecast.newest // after.cell + 1, len(after.homes)
    loads = dict.fromkeys(range(after.partitions), 0.0)
    for stored in held:
        loads[stored.partition] += stored.rows
    runs = [
        (home, len(list(run)))
        for home, run in groupby(after.homes[n % ring] for n in range(first, first + ring - 1))
    ]
    assert loads[runs[0][0]] == min(loads.values())
    for home, cells in runs:
        loads[home] += forecast.rate * after.cell * cells
    if after.partitions > 1:
        longest = forecast.rate * after.cell * max(cells for _, cells in runs)
        taken = [loads[home] for home, _ in runs]
        assert max(taken) - min(loads.values()) <= longest * 1.01 + 1


def test_slices_are_shorter_while_more_rows_come() -> None:
    before = place_by_time(WINDOW, 4)
    held = [StoredSlice(n, 1000, None) for n in range(4)]

    def usual(rate: float) -> int:
        after = assign_future_cells(before, held, ArrivalForecast(NOW, NOW, rate, WINDOW))
        first = NOW // after.cell + 1
        ring = len(after.homes)
        runs = [
            len(list(run)) for _, run in groupby(after.homes[(first + i) % ring] for i in range(ring - 1))
        ]
        return sorted(runs)[len(runs) // 2]

    steady = 4000 / WINDOW
    assert usual(4 * steady) < usual(2 * steady) < usual(steady) < usual(steady / 4)
    assert usual(steady / 1000) == usual(steady / 8), "a partition has four slices of a window at least"


@given(
    st.lists(st.builds(StoredSlice, st.integers(0, 6), st.integers(0, 1000), st.integers(0, 20))),
    st.integers(1, 6),
)
def test_what_is_levelled_stays_level_while_rows_die(held: list[StoredSlice], partitions: int) -> None:
    homes = balance_slices(held, partitions)
    most = max((stored.rows for stored in held), default=0)
    for now in range(21):
        loads = dict.fromkeys(range(partitions), 0)
        for home, stored in zip(homes, held, strict=True):
            loads[home] += stored.rows if stored.until is not None and stored.until > now else 0
        assert max(loads.values()) - min(loads.values()) <= most


class Play:
    """Rows that come at a pace, and where they lie; a slice dies as a whole."""

    def __init__(self, partitions: int, batch: float) -> None:
        self.placement = place_by_time(WINDOW, partitions)
        self.held: list[StoredSlice] = []
        self.now, self._batch, self._rate = NOW, int(batch * SECOND), 0.0

    def run(self, rows: int) -> None:
        forecast = ArrivalForecast(self.now, self.now, self._rate, WINDOW)
        self.placement = assign_future_cells(self.placement, self.held, forecast)
        chunk = WINDOW // 8
        came: Counter[tuple[int, int]] = Counter()
        for i in range(rows):
            time = self.now + 1 + i * self._batch // rows
            came[self.placement.partition_at(time), time // chunk] += 1
        self.now += self._batch
        self._rate = rows / self._batch
        self.held += [StoredSlice(home, n, (part + 1) * chunk + WINDOW) for (home, part), n in came.items()]
        self.held = [stored for stored in self.held if (stored.until or 0) > self.now]

    def resize(self, partitions: int, aggressive: bool) -> None:
        self.placement = change_partitions(self.placement, WINDOW, partitions, self.now)
        if aggressive:
            homes = balance_slices(self.held, partitions)
            self.held = [
                replace(stored, partition=home) for home, stored in zip(homes, self.held, strict=True)
            ]

    @property
    def ratio(self) -> float:
        """The most rows of a partition over the fewest of those that there shall be."""
        loads = Counter(dict.fromkeys(range(self.placement.partitions), 0))
        for stored in self.held:
            loads[stored.partition] += stored.rows
        least = min(loads[n] for n in range(self.placement.partitions))
        return max(loads.values()) / least if least else inf


@pytest.mark.parametrize("batch", [1.0, 4.0, 15.0])
@pytest.mark.parametrize("partitions", [2, 3, 4])
def test_partitions_stay_level_while_rates_change(partitions: int, batch: float) -> None:
    play = Play(partitions, batch)
    for number in range(60):
        play.run(int(batch * (200 if number % 20 < 10 else 800)))
        assert number * batch < 12 or number % 10 < 3 or play.ratio < 1.3, number


@pytest.mark.parametrize("aggressive", [False, True])
def test_a_change_of_partitions_settles(aggressive: bool) -> None:
    """Passively within a window, aggressively at once."""
    play = Play(2, batch=1.0)
    for _ in range(20):
        play.run(400)
    for partitions in (4, 3):
        play.resize(partitions, aggressive)
        settled = 0
        for number in range(20):
            play.run(400)
            settled = number + 1 if play.ratio > 1.25 else settled
        assert settled <= (1 if aggressive else 12)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"spread": "share", "partitions": 0}, "at least one node"),
        ({"spread": "psp", "partitions": 2}, "cells of time"),
        ({"spread": "share", "partitions": 2, "cell": 5, "homes": (0, 1)}, "cells of time"),
        ({"spread": "psp", "partitions": 2, "cell": 5, "homes": (0, 2)}, "one of the 2 partitions"),
    ],
)
def test_placements_that_cannot_be(given: dict[str, object], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        Placement(**given)  # type: ignore[arg-type]


def test_a_placement_survives_json() -> None:
    placement = place_by_time(WINDOW, 3)
    assert from_json(Placement, to_json(placement)) == placement
