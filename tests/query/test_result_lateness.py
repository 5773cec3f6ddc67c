"""No later result is further behind earlier ones than `result_lateness` says, batch after batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weir
from weir.local.query import LocalQuery
from weir.query.model import Query
from weir.query.result_lateness import result_lateness
from weir.runtime.decide import DecidedPlan, Policy

SCHEMA = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64()})
Rows = Mapping[str, Sequence[int]]  # the times of each stream's rows in a batch


def table(times: Sequence[int]) -> pa.Table:
    return pa.table([pa.array(times, SCHEMA.field("ts").type), [1] * len(times)], schema=SCHEMA)


def run(join: Any, batches: Sequence[Rows], idle: int | None = None) -> list[dict[str, list[int]]]:
    """The times of each stream in the results of each batch; the wall clock goes on by 5 µs a batch."""
    policy = Policy(join.query, "auto", idle, wall_clock=count(step=5).__next__)
    running = LocalQuery(policy, DecidedPlan(join.planned.plan))
    found = []
    for batch in batches:
        results = running.process({name: table(times) for name, times in batch.items()})
        found.append({name: results[name].cast(pa.int64()).to_pylist() for name in join.query.names})
    return found


def define(names: str, on: str = "", **options: Any) -> Any:
    keys = " AND ".join(f"{names[0]}.k = {name}.k" for name in names[1:])
    select = ", ".join(f"{name}.ts AS {name}" for name in names)
    schemas = dict.fromkeys(names, SCHEMA)
    return weir.join(**schemas, on=f"{keys} AND {on}" if on else keys, select=select, **options)


def furthest_back(found: Sequence[Mapping[str, Sequence[int]]], name: str) -> int | None:
    """How far a result of a later batch lies behind one of an earlier batch, at most."""
    newest, furthest = None, None
    for times in (batch[name] for batch in found if batch[name]):
        if newest is not None:
            furthest = max(newest - min(times), furthest or 0)
        newest = max(times) if newest is None else max(newest, *times)
    return furthest


def lateness(query: Query) -> dict[str, int | None]:
    return {name: result_lateness(query, name) for name in query.names}


def micros(count: int) -> str:
    return f"{count} microseconds"


# Streams, one more condition, windows, lateness in µs; to plan one takes longer than to run it.
JOINS = (
    ("ab", "", (10, 10), (0, 5)),
    ("ab", "", (3, 12), (8, 0)),
    ("ab", "b.ts >= a.ts - INTERVAL 2 MICROSECONDS", (6, 9), (4, 1)),
    ("ab", "b.ts >= a.ts + INTERVAL 3 MICROSECONDS", (8, 8), (0, 0)),
    ("abc", "", (5, 5, 5), (2, 2, 2)),
    ("abc", "", (2, 12, 6), (0, 7, 3)),
    ("abc", "c.ts <= a.ts + INTERVAL 1 MICROSECOND", (7, 4, 9), (5, 0, 6)),
)


@cache
def defined(number: int) -> Any:
    names, on, within, late = JOINS[number]
    return define(
        names,
        on,
        within=dict(zip(names, map(micros, within), strict=True)),
        late=dict(zip(names, map(micros, late), strict=True)),
    )


@st.composite
def cases(draw: st.DrawFn, number: int) -> tuple[Any, list[Rows], int | None]:
    join = defined(number)
    # Times go on with the batches, and now and then far back: the watermark decides what is late.
    step, times = draw(st.integers(1, 12)), st.lists(st.integers(-25, 12), max_size=4)
    batches = [
        {name: [100 + number * step + t for t in draw(times)] for name in join.query.names}
        for number in range(draw(st.integers(2, 6)))
    ]
    return join, batches, draw(st.none() | st.integers(1, 15))


def test_no_later_result_is_further_behind() -> None:
    tally: Counter[bool] = Counter()

    @settings(max_examples=12)
    @given(st.data())
    def check(number: int, data: st.DataObject) -> None:
        join, batches, idle = data.draw(cases(number))
        found = run(join, batches, idle)
        for name, limit in lateness(join.query).items():
            furthest = furthest_back(found, name)
            tally[furthest is not None] += 1
            assert limit is not None
            assert furthest is None or furthest <= limit

    for number in range(len(JOINS)):
        check(number)
    assert tally[True] > 0.3 * tally.total(), "too few cases have results in more than one batch"


def test_the_limit_is_reached() -> None:
    """Windows of 10 (rows are less than 10 apart), b may be 5 late: a goes back by (9 + 5) + 9,
    and b, whose own newest row is 5 late or a's at most 9 earlier, by 9 + 9."""
    join = define("ab", within=micros(10), late={"a": "0 seconds", "b": micros(5)})
    assert lateness(join.query) == {"a": 23, "b": 18}
    # After batch 0 the watermark is 91 - 5: batch 1 brings a row of b at 86, which joins a's row at 77.
    found = run(join, [{"a": [77, 100], "b": [91]}, {"a": [], "b": [86]}])
    assert found == [{"a": [100], "b": [91]}, {"a": [77], "b": [86]}]
    assert furthest_back(found, "a") == 23


def test_time_bounds_are_tighter_than_windows() -> None:
    join = define("ab", "b.ts BETWEEN a.ts AND a.ts + INTERVAL 4 MICROSECONDS", late=micros(2))
    # a is never later than b, so a's newest row has been reached by b: (0 + 2) + 4.
    assert lateness(join.query) == {"a": 6, "b": 6}


def test_results_of_one_batch_may_lie_apart_without_limit() -> None:
    """Why a batch has to be read as a whole: its late rows are judged by the watermark before it."""
    join = define("ab", within=micros(10))
    assert run(join, [{"a": [0, 10**9], "b": [0, 10**9]}])[0]["a"] == [0, 10**9]


@pytest.mark.parametrize("within", [weir.rows(3), {"a": weir.rows(3), "b": "5 seconds"}])
def test_windows_that_count_rows_have_no_limit(within: Any) -> None:
    join = define("ab", within=within)
    assert set(lateness(join.query).values()) == {None}
