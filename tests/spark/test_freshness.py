"""`fresh=` on Spark gives what its definition says, row by row, and what one process gives."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.oracle.freshness import FreshCase, Judged, Row, judge

import weir
from weir.testing import Collected, Crash, ListSource, Wait
from weir.testing import run as run_job

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

START = datetime(2024, 1, 1, tzinfo=UTC)
HOUR = 3600
# The time of day goes on by an hour, or a little more, from batch to batch.
WAIT, LATE = HOUR + 60, 12


def make_case(clock: str, batches: int = 5) -> FreshCase:
    """Three streams of which one lags behind, with late rows."""
    random, ids = Random(2), iter(range(1000))
    lags = {"a": 0, "b": 3, "c": 7}

    def rows(name: str, number: int) -> list[Row]:
        times = (20 + 3 * number - lags[name] + random.randint(-6, 2) for _ in range(4))
        return [Row(next(ids), time, random.randint(0, 2)) for time in times]

    by_event, by_wall = {"a": 8, "c": 9}, {"a": 2 * HOUR, "c": 3 * HOUR}
    return FreshCase(
        batches=tuple({name: rows(name, number) for name in lags} for number in range(batches)),
        windows={"a": 8, "b": 6, "c": 9},
        late=LATE,
        fresh=by_event if clock == "event" else by_wall,
        clock=clock,
        walls=tuple(number * WAIT for number in range(batches)),
    )


def to_source(case: FreshCase) -> ListSource:
    """The batches, with a crash in one: it is repeated when time has gone on, by the clock that it had."""
    steps: list[Any] = []
    for number, batch in enumerate(case.batches):
        steps += [Wait(f"{WAIT} seconds")] if number else []
        steps += [Crash("sync_results")] if number == len(case.batches) - 2 else []
        steps.append(
            {
                name: [
                    {"ts": START + timedelta(seconds=row.time), "k": row.key, "id": row.id} for row in rows
                ]
                for name, rows in batch.items()
            }
        )
    return ListSource(*steps)


def to_judged(done: Collected, clock: str) -> list[Judged]:
    """What each batch gave; seconds of the system's clock pass too, but they are few."""
    unit = WAIT if clock == "wall" else 1
    return [
        Judged(
            Counter(tuple(row.values()) for row in rows),
            told["numRowsStale"],
            None if told["oldestAge"] is None else told["oldestAge"] // 1_000_000 // unit * unit,
        )
        for rows, told in zip(done.batches, done.progress, strict=True)
    ]


@pytest.mark.parametrize("clock", ["event", "wall"])
def test_both_engines_give_what_the_definition_says(clock: Any, spark: SparkSession, tmp_path: Path) -> None:
    case = make_case(clock)
    source, wanted = to_source(case), judge(case)
    assert sum(each.stale for each in wanted) >= 10 <= sum(each.results.total() for each in wanted)

    def job(**streams: Any) -> Any:
        return weir.join(
            **streams,
            on="a.k = b.k AND b.k = c.k",
            within={name: f"{length} seconds" for name, length in case.windows.items()},
            late=f"{LATE} seconds",
            fresh={name: f"{length} seconds" for name, length in case.fresh.items()},
            clock=clock,
            select="a.id AS a, b.id AS b, c.id AS c",
        )

    assert to_judged(run_job(job, source), clock) == wanted
    assert to_judged(run_job(job, source, spark, tmp_path), clock) == wanted
