"""Checkpoints as a power cut or other damage leaves them, and what the join of PAIR gives by DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

import weir
from weir.runtime.batch_events import listen

from .streams import PAIR, Feed, bag, generate, run, write_feed

_SQL = """SELECT a.k, a.v AS av, b.v AS bv, a.id AS aid, b.id AS bid FROM a JOIN b ON a.k = b.k AND a.v <= b.v
          AND abs(epoch_us(a.ts) - epoch_us(b.ts)) < 8000000"""


def answer(feed: Feed) -> Counter[tuple[Any, ...]]:
    """The join of all rows, by DuckDB."""
    with duckdb.connect() as database:
        for name, table in feed.tables().items():
            database.register(name, table)
        return bag(database.sql(_SQL).to_arrow_table())


@contextmanager
def failing(step: str, batch: int) -> Iterator[None]:
    """Let the driver fail before a step of a batch."""

    def fail(reached: str, number: int) -> None:
        if (reached, number) == (step, batch):
            raise ConnectionAbortedError("here it ends")

    stop = listen(fail)
    try:
        yield
    finally:
        stop()


def interrupted(spark: SparkSession, folder: Path, batch: int, step: str, batches: int = 4) -> Feed:
    """A query that ended before a step of a batch, with all earlier batches done and later ones to come."""
    feed = write_feed(folder / "in", generate(2, batches, 40, 5, seed=31))
    with failing(step, batch), pytest.raises(Exception, match="here it ends"):
        go_on(spark, feed, folder)
    return feed


def go_on(spark: SparkSession, feed: Feed, folder: Path) -> Any:
    """Run the query to its end."""
    return run(weir.join(**feed.frames(spark), **PAIR, partitions=2), folder / "ckpt", folder / "out")


def tear(path: Path, how: str) -> None:
    """Leave a file as a power cut may: empty, half of it, or gone."""
    data = path.read_bytes()
    path.unlink()
    if how != "gone":
        path.write_bytes(b"" if how == "empty" else data[: len(data) // 2])
