"""Bad clocks and backfills: rows of the year 9999, and a stream that is four times ahead of the other.

The results must be the join of all rows that are not ahead; none may count as late.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import weir
from weir.runtime.batch_events import listen
from weir.runtime.wall_clock import use_wall_clock
from weir_lab.attack.target import compare, run_safely
from weir_lab.attack.trial import End, Trial
from weir_lab.bench.feed import START, streams

NAME = "bad clocks and backfills"
_SECOND = 1_000_000
_NAMES = ("a", "b")
_ROWS_PER_SECOND, _KEYS, _WINDOW_SECONDS, _FILES = 20, 10, 20, 8
_SLOW_SECONDS = 10
_TODAY = 1_800_000_000 * _SECOND
_YEAR_9999 = 253_370_764_800 * _SECOND
_TIME = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, slots=True)
class _Case:
    """One stream so many times as fast as the other, so many bad rows, and how long a stream may be idle."""

    faster: int
    bad_rows: int
    idle: str | None

    def describe(self) -> str:
        """The case in a few words."""
        idle = f"idle after {self.idle}" if self.idle else "never idle"
        return f"one stream {self.faster} times as fast, {self.bad_rows} rows of the year 9999, {idle}"


_CASES = tuple(
    _Case(faster, bad_rows, idle)
    for bad_rows in (0, 1, 3)
    for faster in (1, 4)
    for idle in ("3 seconds", None)
)


def attack(spark: Any, folder: Path, trials: int, seed: int) -> Iterator[Trial]:
    """Run a join over so many drawn streams."""
    rng = random.Random(seed)
    for number in range(trials):
        case = _CASES[number % len(_CASES)]
        place = folder / f"clock-{number}"
        tables = _draw(case, rng)
        _write(tables, place / "in")
        late = [0]
        error = run_safely(lambda: late.__setitem__(0, _run(spark, case, place)))  # noqa: B023 - called here
        if error is not None:
            yield Trial(NAME, case.describe(), "unclear", f"{type(error).__name__}: {error}")
            continue
        compared = compare(_answer(tables), ds.dataset(place / "out", format="parquet").to_table())
        end: End = "exact" if compared.is_exact and not late[0] else "not exact"
        yield Trial(NAME, case.describe(), end, f"{compared.describe()}, {late[0]} called late")


def _draw(case: _Case, rng: random.Random) -> dict[str, list[pa.Table]]:
    """The files of both streams: the same span for both, which the fast one has sooner."""
    random_rows = np.random.default_rng(rng.randrange(1 << 32))
    span = {"a": _SLOW_SECONDS * case.faster, "b": _SLOW_SECONDS}
    drawn = {
        name: [_rows(random_rows, number * span[name], span[name], number) for number in range(_FILES)]
        for name in _NAMES
    }
    end = _FILES * _SLOW_SECONDS
    drawn["a"] = [table if number * span["a"] < end else table[:0] for number, table in enumerate(drawn["a"])]
    for _ in range(case.bad_rows):
        stream, number = rng.choice(_NAMES), rng.randrange(1, _FILES // case.faster)
        table = drawn[stream][number]
        bad = pa.table({"ts": pa.array([_YEAR_9999]).cast(_TIME), "k": [1], "id": [-1]})
        drawn[stream][number] = pa.concat_tables([table, bad.cast(table.schema)])
    return drawn


def _rows(rng: np.random.Generator, first: int, seconds: int, number: int) -> pa.Table:
    count = seconds * _ROWS_PER_SECOND
    times = (START + first) * _SECOND + np.arange(count) * _SECOND // _ROWS_PER_SECOND
    ids = number * 1_000_000 + np.arange(count)
    return pa.table({"ts": pa.array(times).cast(_TIME), "k": rng.integers(0, _KEYS, count), "id": ids})


def _write(tables: dict[str, list[pa.Table]], folder: Path) -> None:
    for name, files in tables.items():
        (folder / name).mkdir(parents=True)
        for number, table in enumerate(files):
            path = folder / name / f"{number:04d}.parquet"
            pq.write_table(table, path)
            os.utime(path, (START + number, START + number))


def _run(spark: Any, case: _Case, place: Path) -> int:
    """Run the join; return how many rows were dropped as late."""
    frames = streams(
        spark, place / "in", files_per_trigger=1, schema="ts timestamp, k bigint, id bigint", names=_NAMES
    )
    options: dict[str, Any] = {} if case.idle is None else {"idle": case.idle}
    joined: Any = weir.join(
        streams=frames,
        on="a.k = b.k",
        within=f"{_WINDOW_SECONDS} seconds",
        select="a.id AS a, b.id AS b",
        partitions=2,
        **options,
    )
    writer = joined.writeStream.format("parquet").option("checkpointLocation", str(place / "checkpoint"))
    with _second_for_each_batch():
        query = writer.trigger(availableNow=True).start(str(place / "out"))
        query.awaitTermination()
    counted = [stream for shown in query.recentProgress for stream in shown["weir"]["streams"].values()]
    return sum(stream.get("numRowsDroppedByWatermark", 0) for stream in counted)


@contextmanager
def _second_for_each_batch() -> Iterator[None]:
    """A wall clock that goes on with the batches."""
    now = [_TODAY]

    def go_on(step: str, batch: int) -> None:
        if step == "decide":
            now[0] = _TODAY + batch * _SECOND

    stop = listen(go_on)
    try:
        with use_wall_clock(lambda: now[0]):
            yield
    finally:
        stop()


def _answer(tables: dict[str, list[pa.Table]]) -> pa.Table:
    near = f"abs(epoch_us(a.ts) - epoch_us(b.ts)) < {_WINDOW_SECONDS * _SECOND}"
    with duckdb.connect(config={"threads": 1}) as database:
        for name, files in tables.items():
            rows = pa.concat_tables(files)
            database.register(name, rows.filter(pc.less(pc.year(rows["ts"]), 3000)))
        return database.sql(
            f"SELECT a.id AS a, b.id AS b FROM a, b WHERE a.k = b.k AND {near}"
        ).to_arrow_table()
