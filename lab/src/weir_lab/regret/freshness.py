"""`fresh=` beside a brute force over all combinations of rows, batch by batch, by event and wall clock.

A row arrives at the clock of the batch that brought it: by event time the newest one before the batch, for
the first batch after it; or the time of day. A result is stale if a row of it arrived too long before its
batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

import weir
from weir.testing import Collected, ListSource, Wait
from weir.testing import run as run_job

Clock = Literal["event", "wall"]
CLOCKS: tuple[Clock, ...] = ("event", "wall")
_START = datetime(2024, 1, 1, tzinfo=UTC)
# Seconds: c is behind, and rows are out of order; an hour of the day passes between two batches.
_LAGS = {"a": 0, "b": 3, "c": 7}
_WINDOWS = {"a": 8, "b": 6, "c": 9}
_HOUR = 3600
_FRESH: Mapping[Clock, Mapping[str, int]] = {
    "event": {"a": 8, "c": 9},
    "wall": {"a": 2 * _HOUR, "c": 3 * _HOUR},
}
# A little more, as the system's clock goes on as well while batches run.
_PAUSE = _HOUR + 60
_STEP, _ROWS, _KEYS = 3, 4, 3


class Row(NamedTuple):
    """A row of some stream, with its event time in seconds."""

    id: int
    time: int
    key: int


class Batch(NamedTuple):
    """What a batch gives: the ids of the rows of each result, sorted, and how many results were stale."""

    results: list[tuple[int, ...]]
    stale: int


Feed = Sequence[Mapping[str, Sequence[Row]]]


@dataclass(frozen=True, slots=True)
class FreshRun:
    """Generated streams on one engine by one clock: how many batches gave what the definition says."""

    engine: str
    clock: Clock
    batches: int
    equal: int
    results: int
    stale: int


def measure_freshness(clock: Clock, batches: int, seed: int = 1, spark: Any = None) -> FreshRun:
    """Run generated streams in this process, or on a session of Spark, and compare every batch."""
    feed = draw_feed(batches, seed)
    wanted, given = judge(feed, clock), _run(feed, clock, spark)
    return FreshRun(
        engine="one process" if spark is None else "Spark",
        clock=clock,
        batches=batches,
        equal=sum(told == true for told, true in zip(given, wanted, strict=True)),
        results=sum(len(each.results) for each in wanted),
        stale=sum(each.stale for each in wanted),
    )


def draw_feed(batches: int, seed: int) -> Feed:
    """Draw the rows of every batch."""
    random, ids = Random(seed), iter(range(batches * _ROWS * len(_LAGS)))

    def draw(name: str, number: int) -> list[Row]:
        times = (20 + _STEP * number - _LAGS[name] + random.randint(-6, 2) for _ in range(_ROWS))
        return [Row(next(ids), time, random.randrange(_KEYS)) for time in times]

    return [{name: draw(name, number) for name in _LAGS} for number in range(batches)]


def judge(feed: Feed, clock: Clock) -> list[Batch]:
    """What each batch gives by the definition."""
    arrivals = _find_clocks(feed, clock)
    rows = {name: [(row, n) for n, batch in enumerate(feed) for row in batch[name]] for name in _WINDOWS}
    found: list[Batch] = [Batch([], 0) for _ in feed]
    for combination in product(*rows.values()):
        if len({row.key for row, _ in combination}) > 1:
            continue
        latest, last = max(row.time for row, _ in combination), max(brought for _, brought in combination)
        named = dict(zip(rows, combination, strict=True))
        if any(latest - named[name][0].time >= length for name, length in _WINDOWS.items()):
            continue
        ages = {name: arrivals[last] - arrivals[brought] for name, (_, brought) in named.items()}
        if any(ages[name] > fresh for name, fresh in _FRESH[clock].items()):
            found[last] = found[last]._replace(stale=found[last].stale + 1)
        else:
            found[last].results.append(tuple(row.id for row, _ in combination))
    return [Batch(sorted(each.results), each.stale) for each in found]


def _find_clocks(feed: Feed, clock: Clock) -> list[int]:
    if clock == "wall":
        return [number * _PAUSE for number in range(len(feed))]
    newest = [max(row.time for rows in batch.values() for row in rows) for batch in feed]
    return [max(newest[: max(number, 1)]) for number in range(len(feed))]


def _run(feed: Feed, clock: Clock, spark: Any) -> list[Batch]:
    def join(**streams: Any) -> Any:
        return weir.join(
            **streams,
            on="a.k = b.k AND b.k = c.k",
            within=_write_seconds(_WINDOWS),
            late=f"{_HOUR} seconds",
            fresh=_write_seconds(_FRESH[clock]),
            clock=clock,
            select="a.id AS a, b.id AS b, c.id AS c",
        )

    source = _to_source(feed)
    if spark is None:
        return _read(run_job(join, source))
    with TemporaryDirectory() as folder:
        return _read(run_job(join, source, spark, Path(folder)))


def _write_seconds(lengths: Mapping[str, int]) -> dict[str, str]:
    return {name: f"{length} seconds" for name, length in lengths.items()}


def _to_source(feed: Feed) -> ListSource:
    steps: list[Any] = []
    for number, batch in enumerate(feed):
        steps += [Wait(f"{_PAUSE} seconds")] if number else []
        steps.append({name: [_to_values(row) for row in rows] for name, rows in batch.items()})
    return ListSource(*steps)


def _to_values(row: Row) -> dict[str, Any]:
    return {"ts": _START + timedelta(seconds=row.time), "k": row.key, "id": row.id}


def _read(done: Collected) -> list[Batch]:
    return [
        Batch(sorted(tuple(row.values()) for row in rows), told["numRowsStale"])
        for rows, told in zip(done.batches, done.progress, strict=True)
    ]
