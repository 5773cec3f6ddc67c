"""DuckDB over the tables of a shape: what weir is compared with, in time and in results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from time import perf_counter

import pyarrow as pa

from weir_lab.bench.figure import Figure, ratio, summarise
from weir_lab.bench.shape_tables import Kind, Shape

# How many times DuckDB's seconds weir may take.
AIMS: Mapping[Kind, float] = {
    "sparse": 3.0,
    "real": 3.0,
    "keys": 2.0,
    "dense": 1.5,
    "hot": 1.5,
    "burst": 1.5,
    "band": 0.2,
}
# Of these, a time that nobody waits for is fine whatever DuckDB takes.
_FINE_IF_SHORT: tuple[Kind, ...] = ("sparse", "real")
_SHORT = 0.5
# Above so many results only their number is compared.
_COMPARED = 100_000


class Peer:
    """DuckDB on the same Arrow tables as weir, with so many threads; results come back as Arrow."""

    def __init__(self, shape: Shape, threads: int) -> None:
        import duckdb

        self._connection = duckdb.connect(config={"threads": threads})
        for name, table in shape.tables.items():
            self._connection.register(name, table)
        self._shape, self._statement = shape, shape.duckdb_statement()
        expected = self.join()
        self.results: int = expected.num_rows
        self._expected = expected if self.results <= _COMPARED else None

    @property
    def compares_rows(self) -> bool:
        """True if results are few enough to be compared row by row."""
        return self._expected is not None

    def join(self) -> pa.Table:
        """The results."""
        return self._connection.sql(self._statement).to_arrow_table()

    def check(self, where: str, results: pa.Table) -> None:
        """Refuse results that are not DuckDB's: in number and, if they are few, as multisets."""
        self.check_number(where, results.num_rows)
        if self._expected is None:
            return
        self._connection.register("ours", results)
        self._connection.register("theirs", self._expected)
        differing = self._connection.sql("FROM ours EXCEPT ALL FROM theirs").to_arrow_table().num_rows
        self._connection.unregister("ours")
        if differing:
            raise RuntimeError(
                f"'{self._shape.name}' {where}: {differing:,} of {self.results:,} results are not DuckDB's"
            )

    def check_number(self, where: str, results: int) -> None:
        """Refuse another number of results than DuckDB's."""
        if results != self.results:
            raise RuntimeError(
                f"'{self._shape.name}' {where}: {results:,} results, but DuckDB has {self.results:,}"
            )

    def time(self) -> float:
        """The seconds of one run."""
        return time_checked(self.join, lambda results: self.check_number("again", results.num_rows))

    def time_local(self, parts: Sequence[Mapping[str, pa.Table]]) -> float:
        """The seconds of the local engine over some batches, whose results are then compared."""
        return time_checked(
            lambda: join_locally(self._shape, parts),
            lambda results: self.check(f"in {len(parts)} batches", results),
        )


def join_locally(shape: Shape, parts: Sequence[Mapping[str, pa.Table]]) -> pa.Table:
    """The results of the local engine over some batches, from the question to the last row."""
    query = shape.join(shape.tables).start()
    return pa.concat_tables([query.process(part) for part in parts])


def time_checked(call: Callable[[], pa.Table], check: Callable[[pa.Table], None]) -> float:
    """The seconds that a call takes; looking at what it returns does not count."""
    started = perf_counter()
    table = call()
    seconds = perf_counter() - started
    check(table)
    return seconds


def compare(name: str, shape: Shape, ours: Sequence[float], duckdb: Sequence[float], note: str) -> Figure:
    """Our seconds against DuckDB's, with the aim of the shape's kind."""
    is_short = shape.kind in _FINE_IF_SHORT and median(ours) < _SHORT
    times = f"{median(ours):.3f} s, DuckDB {median(duckdb):.3f} s"
    hint = f", under {_SHORT:g} s" if is_short else ""
    ratios = [a / b for a, b in zip(ours, duckdb, strict=True)]
    title = f"{shape.name}: {name} / DuckDB"
    return summarise(title, ratios, AIMS[shape.kind], "at most", f"{times}{hint}; {note}", is_short)


def compare_state(name: str, shape: Shape, kept: Sequence[int], needed: Sequence[int]) -> Figure:
    """The rows in the state after each batch against those that a row to come may still join."""
    title = f"{shape.name}: state rows / rows in the windows, {name}"
    return ratio(title, kept, needed, 1.2, "at most", f"{max(kept):,} rows at most")
