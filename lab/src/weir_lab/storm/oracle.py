"""Oracle: the exact join, computed by DuckDB over the files that were fed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from weir_lab.storm.feeder import file_of
from weir_lab.storm.streams import ON, PER_TICK, SELECT, STREAMS, WINDOW


def compute_expected(source: Path, ticks: range, interval: float) -> pa.Table:
    """Compute the ids of all results whose rows came within some ticks."""
    import duckdb  # only who checks needs it

    tables = {
        name: pa.concat_tables([pq.read_table(source / name / file_of(tick)) for tick in ticks])
        for name in STREAMS
    }
    latest = f"greatest({', '.join(f'{name}.ts' for name in STREAMS)})"
    width = f"INTERVAL {round(WINDOW * interval * 1e6)} MICROSECONDS"
    inside = " AND ".join(f"{latest} - {name}.ts < {width}" for name in STREAMS)
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return connection.sql(
            f"SELECT {SELECT} FROM {', '.join(STREAMS)} WHERE {ON} AND {inside}"
        ).to_arrow_table()


def read_emitted(out: Path) -> pa.Table:
    """Read the output as a user does: every file that is not hidden."""
    files = sorted(file for file in out.glob("*.parquet") if not file.name.startswith(("_", ".")))
    empty = pa.schema([(name, pa.int64()) for name in STREAMS]).empty_table()
    return pa.concat_tables([empty, *(pq.read_table(file).cast(empty.schema) for file in files)])


def select_ticks(results: pa.Table, ticks: range) -> pa.Table:
    """Select the results whose rows all came within some ticks."""
    kept = pa.scalar(True)
    for name in STREAMS:
        column = results.column(name)
        low, high = ticks.start * PER_TICK, ticks.stop * PER_TICK
        kept = pc.and_(kept, pc.and_(pc.greater_equal(column, low), pc.less(column, high)))
    return results.filter(kept)


def count_by_tick(results: pa.Table, ticks: int) -> list[int]:
    """Count the results that each tick completed."""
    newest = np.max([results.column(name).to_numpy() for name in STREAMS], axis=0, initial=0) // PER_TICK
    return np.bincount(newest.astype(np.int64), minlength=ticks).tolist() if len(results) else [0] * ticks


@dataclass(frozen=True, slots=True)
class Compared:
    """Counts of results of some ticks: exact, missing, repeated and wrong ones."""

    results: int
    missing: int
    twice: int
    wrong: int

    @property
    def is_exact(self) -> bool:
        """True if every result is there once and nothing else, and there were some."""
        return bool(self.results) and not (self.missing or self.twice or self.wrong)

    def describe(self) -> str:
        """The comparison in a few words."""
        return (
            f"{self.results:,} results, {self.missing:,} missing, {self.twice:,} twice, {self.wrong:,} wrong"
        )


def compare(results: pa.Table, wanted: pa.Table) -> Compared:
    """Compare two tables of ids; the exact one repeats no row."""
    seen, exact = _rows(results), set(_rows(wanted))
    once = set(seen)
    return Compared(len(exact), len(exact - once), len(seen) - len(once), len(once - exact))


def _rows(table: pa.Table) -> Sequence[tuple[int, ...]]:
    return list(zip(*(table.column(name).to_pylist() for name in STREAMS), strict=True))
