"""The rows that `weir-lab bench peers` gives to every engine, and the right answer to its query."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from weir_lab.bench.feed import START, STREAMS, Feed
from weir_lab.bench.peer_job import THREADS, batch_join
from weir_lab.bench.spark import SELECT, WINDOW_SECONDS

MILLISECOND = 1_000
_SECOND = 1_000_000
# The same for the same rows in any order.
_CHECKSUM = "sum(hash(k, ax, bx, cx))"


@dataclass(frozen=True, slots=True)
class Truth:
    """The number of results, of those whose last row is of the start, and a checksum of all of them."""

    results: int
    at_start: int
    checksum: int


def prepare(feed: Feed, seconds: int, warm: int, folder: Path) -> Truth:
    """Write the rows, as one folder for each stream and merged for Flink, and find the right answer."""
    feed.write(folder / "source", range(seconds))
    _write_merged(feed, range(seconds), folder / "merged")
    return _find_truth(folder / "source", warm)


def merge_second(feed: Feed, number: int) -> pa.Table:
    """One second of all streams in the order of their times, with the number of the stream."""
    tables = [
        pa.table({"stream_id": pa.repeat(pa.scalar(i, pa.int32()), len(rows)), **_columns(rows)})
        for i, rows in enumerate(feed.second(stream, number) for stream in STREAMS)
    ]
    return pa.concat_tables(tables).sort_by("ms")


def _columns(rows: pa.Table) -> dict[str, Any]:
    return {"ms": pc.divide(rows["ts"].cast(pa.int64()), MILLISECOND), "k": rows["k"], "x": rows["x"]}


def _write_merged(feed: Feed, seconds: range, folder: Path) -> None:
    folder.mkdir()
    first, *others = (merge_second(feed, number) for number in seconds)
    with pq.ParquetWriter(folder / "rows.parquet", first.schema) as writer:
        for table in (first, *others):
            writer.write_table(table)


def _find_truth(source: Path, warm: int) -> Truth:
    """What DuckDB finds in the files."""
    select = f"{SELECT}, greatest(a.ts, b.ts, c.ts) < make_timestamptz({(START + warm) * _SECOND}) AS early"
    results, at_start, checksum = _fetch(
        f"SELECT count(*), count(*) FILTER (early), {_CHECKSUM} "
        f"FROM ({batch_join(str(source), select, WINDOW_SECONDS)})"
    )
    return Truth(results, at_start, checksum)


def _fetch(statement: str) -> tuple[Any, ...]:
    import duckdb

    connection = duckdb.connect(config={"threads": THREADS})
    connection.execute("SET enable_progress_bar = false")
    (row,) = connection.execute(statement).fetchall()
    return tuple(row)


def check_output(name: str, truth: Truth, out: Path) -> None:
    """Refuse written results that are not the right ones, as a multiset."""
    results, checksum = _fetch(f"SELECT count(*), {_CHECKSUM} FROM read_parquet('{out}/**/*.parquet')")
    if (results, checksum) != (truth.results, truth.checksum):
        raise RuntimeError(f"{name} wrote {results:,} results that are not the right {truth.results:,}")
