"""Write small streams as files, run joins over them, and compute the expected results."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import weir
from weir.spark.join import SparkJoin
from weir.spark.query import SparkQuery

SECOND = 1_000_000
START = 1_700_000_000 * SECOND
SCHEMA = pa.schema(
    {"ts": pa.timestamp("us", "UTC"), "k": pa.int64(), "v": pa.int64(), "id": pa.int64()},
)
LATE = "6 seconds"  # enough for all that `generate` makes


@dataclass(frozen=True)
class Feed:
    """Streams in a folder, a file per stream and batch, and the tables those files hold."""

    root: Path
    batches: Mapping[str, Sequence[pa.Table]]

    def frames(self, spark: SparkSession) -> dict[str, DataFrame]:
        """Each stream as a streaming DataFrame, one file per batch."""
        return {name: self.frame(spark, name) for name in self.batches}

    def frame(self, spark: SparkSession, name: str) -> DataFrame:
        schema = spark.read.parquet(str(self.root / name)).schema
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.root / name))

    def statics(self, spark: SparkSession) -> dict[str, DataFrame]:
        """Each stream as a static DataFrame."""
        return {name: spark.read.parquet(str(self.root / name)) for name in self.batches}

    def tables(self) -> dict[str, pa.Table]:
        """Each stream as one Arrow table."""
        return {name: pa.concat_tables(found) for name, found in self.batches.items()}


def write_feed(root: Path, batches: Mapping[str, Sequence[pa.Table]]) -> Feed:
    """Write a file per stream and batch; their times of change say in which order Spark reads them."""
    for name, tables in batches.items():
        (root / name).mkdir(parents=True)
        for number, table in enumerate(tables):
            _write_file(table, root / name, number)
    return Feed(root, batches)


def add_batch(feed: Feed, tables: Mapping[str, pa.Table]) -> Feed:
    """The feed with one more file per stream."""
    grown = {name: [*found, tables[name]] for name, found in feed.batches.items()}
    for name, found in grown.items():
        _write_file(found[-1], feed.root / name, len(found) - 1)
    return Feed(feed.root, grown)


def _write_file(table: pa.Table, folder: Path, number: int) -> None:
    """Show Spark the file only with its final time of change.

    Once Spark has seen a file as new as today, it passes over all files that are older by a week.
    """
    hidden = folder / f"_{number:04d}"
    pq.write_table(table, hidden)
    os.utime(hidden, (1_600_000_000 + number, 1_600_000_000 + number))
    hidden.rename(folder / f"{number:04d}.parquet")


def rows(seconds: Sequence[float | None], k: Sequence[Any], v: Sequence[Any] | None = None) -> pa.Table:
    """A table of rows at these seconds."""
    times = [None if s is None else START + round(s * SECOND) for s in seconds]
    count = range(len(times))
    found = {"ts": times, "k": list(k), "v": list(v or count), "id": list(count)}
    return pa.table({n: pa.array(c, SCHEMA.field(n).type) for n, c in found.items()}, SCHEMA)


def generate(streams: int, batches: int, per_batch: int, keys: int, seed: int) -> dict[str, list[pa.Table]]:
    """Streams a, b, ...: ten seconds per batch, rows in any order and up to five seconds behind."""
    rng = np.random.default_rng(seed)

    def table(number: int) -> pa.Table:
        times = START + number * 10 * SECOND + rng.integers(-5 * SECOND, 10 * SECOND, per_batch)
        columns = {
            "ts": pa.array(times, SCHEMA.field("ts").type),
            "k": pa.array(rng.integers(0, keys, per_batch), mask=rng.random(per_batch) < 0.03),
            "v": pa.array(rng.integers(0, 5, per_batch), mask=rng.random(per_batch) < 0.05),
            "id": pa.array(number * per_batch + np.arange(per_batch)),
        }
        return pa.table(columns, SCHEMA)

    return {"abcdef"[i]: [table(number) for number in range(batches)] for i in range(streams)}


def run(
    join: SparkJoin,
    checkpoint: Path,
    out: Path | None = None,
    format: str = "parquet",
    **trigger: Any,
) -> SparkQuery:
    """Run a join over all that is there."""
    writer = join.writeStream.format(format).option("checkpointLocation", str(checkpoint))
    writer = writer if out is None else writer.option("path", str(out))
    return finish(writer.trigger(**(trigger or {"availableNow": True})).start())


def finish(query: SparkQuery) -> SparkQuery:
    """Wait until a query that ends by itself has ended."""
    try:
        assert query.awaitTermination(120), "the query is still running"
    finally:
        query.stop()
    return query


def bag(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """The rows with their counts, columns in the order of their names."""
    columns = [table[name].to_pylist() for name in sorted(table.column_names)]
    return Counter(zip(*columns, strict=True))


def read_bag(out: Path, format: str = "parquet") -> Counter[tuple[Any, ...]]:
    """The rows of result files, read without Spark."""
    if format == "json":
        lines = [line for path in sorted(out.glob("part-*.json")) for line in path.read_text().splitlines()]
        found = [json.loads(line) for line in lines]
        names = sorted({name for row in found for name in row})
        return Counter(tuple(row.get(name) for name in names) for row in found)
    return bag(ds.dataset(out, format=format).to_table())


def copy_query(source: Path, target: Path) -> None:
    """Copy a checkpoint and its results, for a query that goes on apart from the first."""
    for name in ("ckpt", "out"):
        shutil.copytree(source / name, target / name)
    shutil.rmtree(target / "out" / "_weir")


def state_file(checkpoint: Path, kind: str, batch: int) -> Path:
    """The decision or manifest of a batch that counts: that of the highest epoch."""
    return max((checkpoint / "weir" / f"{kind}s").glob(f"{batch}-*.json"))


def read_state(checkpoint: Path, kind: str, batch: int) -> dict[str, Any]:
    """What the decision or manifest of a batch holds."""
    sealed = json.loads(state_file(checkpoint, kind, batch).read_text())
    content: dict[str, Any] = json.loads(sealed["body"])["content"]
    return content


def repeat_last_batch(checkpoint: Path) -> None:
    """Make Spark forget that it finished its last batch, as if it had died just before."""
    last = max(int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdigit())
    (checkpoint / "commits" / str(last)).unlink()
    (checkpoint / "commits" / f".{last}.crc").unlink(missing_ok=True)


def expected(tables: Mapping[str, pa.Table], **asked: Any) -> Counter[tuple[Any, ...]]:
    """The same join over all rows at once, in this process."""
    return bag(weir.join(**tables, **asked).to_arrow())


PAIR: dict[str, Any] = {
    "on": "a.k = b.k AND a.v <= b.v",
    "within": "8 seconds",
    "late": LATE,
    "select": "a.k, a.v AS av, b.v AS bv, a.id AS aid, b.id AS bid",
}


def pair_feed(root: Path, batches: int = 3, seed: int = 1) -> Feed:
    """Two streams whose join, as PAIR asks, has a few hundred rows."""
    return write_feed(root, generate(2, batches, 40, 5, seed))
