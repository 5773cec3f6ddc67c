"""Shapes of data: tables and a question each, told apart by how rows, keys and times lie.

A shape is asked of weir and of DuckDB in the same words. Windows are the same for all streams of a shape, so
that "newest minus oldest < window" can be told to DuckDB as bounds on each pair of streams.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import weir
from weir.errors import QueryError
from weir_lab.bench.feed import START

Kind = Literal["sparse", "dense", "hot", "burst", "band", "keys", "real", "wide"]
Floats = npt.NDArray[np.float64]
_TIME = pa.timestamp("us")
_ROWS = 20_000
_LONG_SPAN = 1e6


@dataclass(frozen=True, slots=True)
class Shape:
    """A question over some tables; `window` is in seconds, `kind` says which aim it is held against."""

    name: str
    kind: Kind
    tables: Mapping[str, pa.Table]
    on: str | None
    window: float

    @property
    def select(self) -> str:
        """Every column of every stream but its time."""
        return ", ".join(
            f"{stream}.{column} AS {stream}_{column}"
            for stream, table in self.tables.items()
            for column in table.column_names
            if column != "ts"
        )

    @property
    def rows(self) -> int:
        """The rows of all streams."""
        return sum(table.num_rows for table in self.tables.values())

    @property
    def within(self) -> str:
        """The window as weir reads it."""
        return f"{round(self.window * 1000)} milliseconds"

    def join(self, streams: Mapping[str, Any]) -> Any:
        """Ask weir the question of tables or of streaming DataFrames with these columns."""
        condition = {"cross": True} if self.on is None else {"on": self.on}
        return weir.join(streams=streams, within=self.within, select=self.select, **condition)

    def duckdb_statement(self) -> str:
        """The same question in DuckDB's SQL."""
        width = f"INTERVAL {round(self.window * 1e6)} MICROSECONDS"
        pairs = [
            f"{b}.ts > {a}.ts - {width} AND {b}.ts < {a}.ts + {width}"
            for a, b in combinations(self.tables, 2)
        ]
        conditions = [*([] if self.on is None else [self.on]), *pairs]
        return f"SELECT {self.select} FROM {', '.join(self.tables)} WHERE {' AND '.join(conditions)}"

    def batches(self, count: int) -> list[dict[str, pa.Table]]:
        """Cut all tables at the same times, into batches of about as many rows."""
        times = np.sort(np.concatenate([t["ts"].cast(pa.int64()).to_numpy() for t in self.tables.values()]))
        edges = times[np.arange(1, count) * len(times) // count]
        parts: list[dict[str, pa.Table]] = [{} for _ in range(count)]
        for name, table in self.tables.items():
            cuts = [0, *np.searchsorted(table["ts"].cast(pa.int64()).to_numpy(), edges), table.num_rows]
            for part, (first, last) in zip(parts, pairwise(cuts), strict=True):
                part[name] = table.slice(first, last - first)
        return parts

    def beginning(self, share: int) -> Shape:
        """The same question of the first rows only, one of so many parts."""
        return replace(self, tables=self.batches(share)[0])

    def count_in_windows(self, parts: Sequence[Mapping[str, pa.Table]], watermark: int) -> int:
        """Count the rows of some batches that a row at the watermark (microseconds) may still join."""
        oldest = watermark - round(self.window * 1e6)
        times = [table["ts"].cast(pa.int64()) for part in parts for table in part.values()]
        return sum(pc.sum(pc.greater(column, oldest)).as_py() or 0 for column in times)


def _table(seed: int, times: Floats, keys: int, hot: float = 0.0) -> pa.Table:
    """Rows at some seconds with two keys, the first of them `hot` in that share of rows, and two numbers."""
    rng = np.random.default_rng(seed)
    rows = len(times)
    k = np.where(rng.random(rows) < hot, 0, rng.integers(0, keys, rows))
    micros = START * 1_000_000 + np.sort(times * 1e6).astype(np.int64)
    return pa.table(
        {
            "ts": pa.array(micros).cast(_TIME),
            "k": k,
            "j": rng.integers(0, keys, rows),
            "x": rng.random(rows),
            "y": rng.random(rows),
        }
    )


def _drop(tables: Mapping[str, pa.Table], *columns: str) -> dict[str, pa.Table]:
    return {name: table.drop_columns(list(columns)) for name, table in tables.items()}


def _spread_evenly(
    names: str, rows: int, span: float, keys: int, hot: float = 0.0, columns: tuple[str, ...] = ("j",)
) -> dict[str, pa.Table]:
    tables = {}
    for seed, name in enumerate(names):
        times = np.random.default_rng(100 + seed).random(rows) * span
        tables[name] = _table(seed, times, keys, hot)
    return _drop(tables, *columns)


def _equal_keys(names: str) -> str:
    return " AND ".join(f"{a}.k = {b}.k" for a, b in pairwise(names))


def make_dense(rows: int) -> Shape:
    """Windows full of rows with many results each."""
    span = rows / 1000
    return Shape("dense", "dense", _spread_evenly("abc", rows, span, 1000), _equal_keys("abc"), 10)


def _sparse(rows: int) -> Shape:
    span = _LONG_SPAN * rows / _ROWS
    return Shape("sparse", "sparse", _spread_evenly("abc", rows, span, 20), _equal_keys("abc"), 1000)


def _sparse_short(rows: int) -> Shape:
    span = _LONG_SPAN * rows / _ROWS
    tables = _spread_evenly("abc", rows, span, 5)
    return Shape("sparse, short windows", "sparse", tables, _equal_keys("abc"), 10)


def _sparse_driver(rows: int) -> Shape:
    span = 5.0 * rows
    few = _spread_evenly("a", rows, span, 100)
    many = _drop({"b": _table(7, np.random.default_rng(8).random(20 * rows) * span, 100)}, "j")
    return Shape("sparse over dense", "sparse", few | many, "a.k = b.k", 10)


def _hot_key(rows: int) -> Shape:
    tables = _spread_evenly("abc", rows, float(rows), 100, hot=0.5)
    return Shape("hot key", "hot", tables, _equal_keys("abc"), 10)


def make_text_keys(rows: int) -> Shape:
    """Windows full of rows whose keys are texts."""
    dense = make_dense(rows)
    tables = {
        name: t.set_column(1, "k", pc.binary_join_element_wise("symbol", t["k"].cast(pa.string()), "-"))
        for name, t in dense.tables.items()
    }
    return Shape("text keys", "keys", tables, dense.on, dense.window)


def _key_per_edge(rows: int) -> Shape:
    tables = _spread_evenly("abc", rows, rows / 1000, 2000, columns=())
    return Shape("key per edge", "keys", tables, "a.k = b.k AND b.j = c.j", 10)


def _band(rows: int) -> Shape:
    tables = _spread_evenly("ab", rows, rows / 1000, 10)
    return Shape("band", "band", tables, "abs(a.x - b.x) <= 0.001", 10)


def _time_only(rows: int) -> Shape:
    return Shape("time only", "sparse", _spread_evenly("abc", rows, float(rows), 10), None, 1)


def _five_streams(rows: int) -> Shape:
    tables = _spread_evenly("abcde", rows, rows / 1000, 10_000)
    return Shape("five streams", "keys", tables, _equal_keys("abcde"), 10)


def _bursts(rows: int) -> Shape:
    tables = {}
    for seed, name in enumerate("abc"):
        rng = np.random.default_rng(300 + seed)
        times = rng.integers(0, 20, rows) * 1000.0 + rng.exponential(1.0, rows)
        tables[name] = _table(seed, times, 200)
    return Shape("bursts", "burst", _drop(tables, "j"), _equal_keys("abc"), 2)


SHAPES: tuple[Callable[[int], Shape], ...] = (
    make_dense,
    _sparse,
    _sparse_short,
    _sparse_driver,
    _hot_key,
    make_text_keys,
    _key_per_edge,
    _band,
    _time_only,
    _five_streams,
    _bursts,
)
# Those whose span grows with their rows, so that an exponent can be told.
GROWING: tuple[Callable[[int], Shape], ...] = (_sparse, _sparse_short, _sparse_driver, _time_only)
_FILES = (
    "intel_lab_temp_5d_30s",
    "room_climate",
    "ulb_wsn_readings",
    "ulb_wsn_links",
    "zeek_dns",
    "zeek_ssl",
    "zeek_weird",
)


def make_shapes(rows: int) -> list[Shape]:
    """Make every shape with so many rows per stream."""
    return [make(rows) for make in SHAPES]


def read_shapes(folder: Path) -> list[Shape]:
    """Read the questions over real files; a file that is not there leaves its questions out."""
    if not folder.is_dir():
        raise QueryError(f"there is no folder '{folder}' with real data")
    shapes = [shape for reader in (_motes, _rooms, _links, _network) if (shape := reader(folder)) is not None]
    if not shapes:
        known = ", ".join(f"'{name}.parquet'" for name in _FILES)
        raise QueryError(f"the folder '{folder}' has no data for any question; those are over {known}")
    return shapes


def _read(folder: Path, name: str, columns: list[str]) -> pa.Table | None:
    file = folder / f"{name}.parquet"
    if not file.exists():
        return None
    table = pq.read_table(file, columns=["ts", *columns])
    return table.set_column(0, "ts", table["ts"].cast(_TIME)).sort_by("ts")


def _motes(folder: Path) -> Shape | None:
    """Three motes of one lab whose temperatures agree in the same half minute, over five days."""
    readings = _read(folder, "intel_lab_temp_5d_30s", ["moteid", "temperature"])
    if readings is None:
        return None
    tables = {name: _where(readings, "moteid", mote) for mote, name in enumerate("abc", start=1)}
    on = "abs(a.temperature - b.temperature) <= 0.2 AND abs(b.temperature - c.temperature) <= 0.2"
    return Shape("real: motes", "real", tables, on, 30)


def _rooms(folder: Path) -> Shape | None:
    """Three nodes of one room that see it equally occupied within two seconds, over 22 days."""
    readings = _read(folder, "room_climate", ["location", "node", "occupants", "temperature"])
    if readings is None:
        return None
    room = _where(readings, "location", "A")
    tables = {name: _where(room, "node", node) for node, name in enumerate("abc", start=1)}
    return Shape("real: rooms", "real", tables, "a.occupants = b.occupants AND b.occupants = c.occupants", 2)


def _links(folder: Path) -> Shape | None:
    """Who read what and heard whom: a chain with another key on each edge, over 18 days.

    Nodes are heard some twenty seconds before they are read, so shorter windows hold next to no results.
    """
    readings = _read(folder, "ulb_wsn_readings", ["run", "node", "seq", "temperature"])
    heard = _read(folder, "ulb_wsn_links", ["node", "src_node", "packet"])
    if readings is None or heard is None:
        return None
    tables = {"r": readings, "l": heard, "s": readings}
    return Shape("real: links", "real", tables, "r.node = l.node AND l.src_node = s.node", 22)


def _network(folder: Path) -> Shape | None:
    """Lookups, encrypted sessions and oddities of one client within a tenth of a second."""
    dns = _read(folder, "zeek_dns", ["orig_h", "query"])
    ssl = _read(folder, "zeek_ssl", ["orig_h", "resp_h"])
    weird = _read(folder, "zeek_weird", ["orig_h", "name"])
    if dns is None or ssl is None or weird is None:
        return None
    tables = {"d": dns, "s": ssl, "w": weird}
    return Shape("real: network", "real", tables, "d.orig_h = s.orig_h AND s.orig_h = w.orig_h", 0.1)


def _where(table: pa.Table, column: str, value: object) -> pa.Table:
    return table.filter(pc.equal(table[column], value))
