"""A restart may change the number of partitions with every spread; results stay those of DuckDB."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import weir
from weir.plan.tree import join as tree
from weir.spark.query import SparkQuery

from .streams import LATE, Feed, add_batch, bag, finish, generate, read_bag, write_feed

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

# Of one start after the other; None: as before.
PARTITIONS = (2, 3, 1, 4, None)


@dataclass(frozen=True)
class Case:
    on: str
    names: str = "abc"
    asked: dict[str, Any] = field(default_factory=dict)
    partitions: tuple[int | None, ...] = PARTITIONS
    shown: tuple[int, ...] = (2, 3, 1, 4, 4)

    @property
    def select(self) -> str:
        return ", ".join(f"{name}.id AS {name}_id" for name in self.names)


CASES = {
    "int keys": Case("a.k = b.k AND b.k = c.k"),
    "text keys in a tree": Case("a.t = b.t AND b.t = c.t", asked={"plan": tree(tree("a", "b"), "c")}),
    "null-safe keys": Case("a.t <=> b.t AND abs(a.v - b.v) <= 2", "ab"),
    "float keys": Case("a.f = b.f AND abs(a.v - b.v) <= 2", "ab"),
    "segments": Case("abs(a.v - b.v) <= 1", "ab", {"spread": "atr"}),
    "shared": Case("a.k = b.k", "ab", {"spread": "share"}, (3, None, 2, None, None), (3, 3, 2, 2, 2)),
}


def feed_of(seed: int, batches: int) -> dict[str, list[pa.Table]]:
    """As `generate`, with keys of text, long and short, and of floats with both zeros."""
    rng = np.random.default_rng(seed)

    def widen(table: pa.Table) -> pa.Table:
        text = [None if k is None else f"key {k}" * (1 + k % 3) for k in table["k"].to_pylist()]
        floats = rng.choice([0.0, -0.0, 0.5, 1.5, 2.5, 1e300], len(table))
        return table.append_column("t", pa.array(text)).append_column("f", pa.array(floats))

    made = generate(3, batches, 40, 7, seed)
    return {name: [widen(table) for table in tables] for name, tables in made.items()}


def oracle(feed: Feed, case: Case) -> Counter[tuple[Any, ...]]:
    """All rows of a result are less than 8 seconds apart."""
    on = case.on.replace("<=>", "IS NOT DISTINCT FROM")
    near = [
        f"abs(epoch_us({one}.ts) - epoch_us({other}.ts)) < 8000000"
        for one in case.names
        for other in case.names
        if one < other
    ]
    with duckdb.connect() as connection:
        for name, table in feed.tables().items():
            connection.register(name, table)
        asked = f"SELECT {case.select} FROM {', '.join(case.names)} WHERE {on} AND {' AND '.join(near)}"
        return bag(connection.sql(asked).to_arrow_table())


def start(case: Case, frames: dict[str, DataFrame], partitions: int | None, folder: Path) -> SparkQuery:
    asked = {"on": case.on, "within": "8 seconds", "late": LATE, "select": case.select, **case.asked}
    join = weir.join(**{name: frames[name] for name in case.names}, **asked, partitions=partitions)
    writer = join.writeStream.format("parquet").trigger(availableNow=True)
    query: SparkQuery = writer.start(str(folder / "out"), checkpointLocation=str(folder / "ckpt"))
    return query


def test_the_number_of_partitions_changes_from_start_to_start(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="weir")
    batches = feed_of(31, len(PARTITIONS))
    feed = write_feed(tmp_path / "in", {name: tables[:1] for name, tables in batches.items()})
    told: dict[str, list[Any]] = {name: [] for name in CASES}
    for number in range(len(PARTITIONS)):
        if number:
            feed = add_batch(feed, {name: tables[number] for name, tables in batches.items()})
        frames = feed.frames(spark)
        with ExitStack() as running:
            queries = {}
            for name, case in CASES.items():
                queries[name] = start(case, frames, case.partitions[number], tmp_path / name)
                running.callback(queries[name].stop)
            for name, query in queries.items():
                finish(query)
                told[name].append([one["weir"] for one in query.recentProgress if one["weir"]])
    for name, case in CASES.items():
        wanted = oracle(feed, case)
        assert read_bag(tmp_path / name / "out") == wanted and wanted.total() > 300, name
        assert tuple(batches[-1]["placement"]["partitions"] for batches in told[name]) == case.shown
        # Slices are cut before the first batch with another number, and only then.
        cut = [[batch["placement"]["relocated"] for batch in batches] for batches in told[name]]
        is_cut = [before != now for before, now in pairwise((case.shown[0], *case.shown))]
        assert [first for first, *_ in cut] == [change and name != "shared" for change in is_cut], name
        assert not any(later for _, *others in cut for later in others), name
    assert "the join keeps the 3 partitions of its checkpoint; here the default is 2" in caplog.messages
