"""`weir-lab bench kernel`: the kernel against bare NumPy and Arrow, DuckDB and Polars, on one core."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import weir
from weir.local.query import LocalQuery
from weir_lab.bench.figure import Figure, ratio, side_by_side, to_json
from weir_lab.bench.one_thread import run_module

_SECOND = 1_000_000


def run(quick: bool = False) -> list[Figure]:
    """Measure every figure in a process of its own, where each library is held to one thread."""
    return run_module("weir_lab.bench.kernel", *(["--quick"] if quick else []))


def measure(quick: bool) -> list[Figure]:
    """Every figure, in this process; each is told on stderr as it is done."""
    pa.set_cpu_count(1)
    repeats = 3 if quick else 9
    cases: tuple[Callable[[int, bool], list[Figure]], ...] = (
        three_way,
        longer_window,
        band,
        cosine,
        residual,
        state_bytes,
        many_windows,
    )
    figures: list[Figure] = []
    for case in cases:
        for figure in case(repeats, quick):
            # On stderr, since stdout carries the figures to the process that asked.
            print(f"{figure.name}: {figure.ratio:.2f}", file=sys.stderr, flush=True)
            figures.append(figure)
    return figures


def _table(rows: int, seed: int, keys: int, span: float = 1.0, start: float = 0.0) -> pa.Table:
    """Rows with a key, two numbers and times spread evenly over `span` seconds from `start`."""
    rng = np.random.default_rng(seed)
    times = ((start + np.arange(rows) / rows * span) * _SECOND).astype("datetime64[us]")
    chosen = rng.permutation(np.arange(rows) % keys) if rows >= keys else rng.integers(0, keys, rows)
    return pa.table({"ts": times, "k": chosen, "x": rng.random(rows), "y": rng.random(rows)})


_NINE = "a.k, a.x AS ax, a.y AS ay, b.k AS bk, b.x AS bx, b.y AS byy, c.k AS ck, c.x AS cx, c.y AS cy"
_THREE_KEYS = "a.k = b.k AND b.k = c.k"


def three_way(repeats: int, quick: bool) -> list[Figure]:
    """A batch join of three streams with two million results of nine columns."""
    import duckdb
    import polars as pl

    rows, keys = (6_000, 600) if quick else (20_000, 2_000)
    a, b, c = (_table(rows, seed, keys) for seed in range(3))
    ours = weir.join(a=a, b=b, c=c, on=_THREE_KEYS, within="1 minute", select=_NINE)
    results = ours.to_arrow().num_rows
    connection = duckdb.connect(config={"threads": 1})
    for name, table in (("a", a), ("b", b), ("c", c)):
        connection.register(name, table)
    statement = f"SELECT {_NINE} FROM a, b, c WHERE {_THREE_KEYS}"
    frames = [pl.DataFrame(table.drop("ts")) for table in (a, b, c)]

    def in_polars() -> object:
        first, second, third = frames
        joined = first.join(second, on="k", suffix="_b").join(third, on="k", suffix="_c")
        return joined.with_columns(kb=pl.col("k"), kc=pl.col("k"))

    gather = _gather([a, b, c], results)
    note = f"{results:,} results"
    seconds = side_by_side(ours.to_arrow, gather, repeats)
    in_duckdb = side_by_side(lambda: connection.sql(statement).to_arrow_table(), ours.to_arrow, repeats)
    with_polars = side_by_side(in_polars, ours.to_arrow, repeats)
    return [
        ratio("three-way equi-join / gathering its columns", *seconds, 2.0, "at most", note),
        ratio("DuckDB's batch join / three-way equi-join", *in_duckdb, 1.0, "at least", "one thread each"),
        ratio("Polars' batch join / three-way equi-join", *with_polars, 1.0, "at least", "one thread each"),
    ]


def _gather(tables: list[pa.Table], results: int) -> Callable[[], object]:
    """Nothing but the output: nine columns taken at as many row numbers as there are results."""
    columns = [t.column(name).combine_chunks() for t in tables for name in ("k", "x", "y")]
    rng = np.random.default_rng(9)
    picks = [pa.array(np.sort(rng.integers(0, len(t), results))) for t in tables]
    return lambda: [pc.take(column, picks[i // 3], boundscheck=False) for i, column in enumerate(columns)]


_MATCHES = 4  # per probe


def longer_window(repeats: int, quick: bool) -> list[Figure]:
    """The same delta against a window and against one ten times as long, with as many matches per probe."""
    rows = 2_000 if quick else 10_000
    short, long = (_Steady(rows, windows, 8 * repeats + 8) for windows in (10, 100))
    seconds = side_by_side(long.step, short.step, 4 * repeats)
    return [ratio("ten times the window / the window", *seconds, 1.3, "at most", f"{rows:,} rows a delta")]


class _Steady:
    """A three-way join whose window is full; every step brings one second of rows."""

    def __init__(self, rows: int, seconds: int, steps: int) -> None:
        keys = rows * seconds // _MATCHES
        names = ("a", "b", "c")
        self._batches = [
            {name: _table(rows, 7 * t + i, keys, start=t) for i, name in enumerate(names)}
            for t in range(seconds + 2, seconds + 2 + steps)
        ]
        past = {name: _table(rows * (seconds + 2), i, keys, span=seconds + 2) for i, name in enumerate(names)}
        asked = weir.join(on=_THREE_KEYS, within=f"{seconds} seconds", select=_NINE, streams=past)
        self._query: LocalQuery = asked.start()
        self._bring(past)

    def step(self) -> None:
        """Bring the next second."""
        self._bring(self._batches.pop(0))

    def _bring(self, batch: dict[str, pa.Table]) -> None:
        """Take the results as they come and let them go: keeping them would time the memory, not the join."""
        for _ in self._query.chunks(batch):
            pass


def band(repeats: int, quick: bool) -> list[Figure]:
    """A band join over a window of 100 000 rows against a vectorised nested loop over the same rows."""
    window, delta = (20_000, 500) if quick else (100_000, 1_000)
    past, new = _table(window, 1, 1), _table(delta, 2, 1, start=1.0)
    width = 2.0 / window
    asked = weir.join(
        a=past, b=past, on=f"abs(a.x - b.x) <= {width:.9f}", within="1 minute", select="a.y AS ay, b.y AS byy"
    )
    queries = []
    for _ in range(repeats + 1):
        query = asked.start()
        query.process(a=past)
        queries.append(query)
    xs, ys = past["x"].to_numpy(), past["y"].to_numpy()
    probes, values = new["x"].to_numpy(), new["y"].to_numpy()

    def nested_loop() -> object:
        matches = [np.nonzero(np.abs(xs - probe) <= width)[0] for probe in probes]
        rows = np.concatenate(matches)
        return ys[rows], np.repeat(values, [len(f) for f in matches])

    loop, ours = side_by_side(nested_loop, lambda: queries.pop().process(b=new), repeats)
    return [ratio("nested loop / band join", loop, ours, 20.0, "at least", f"window of {window:,} rows")]


def cosine(repeats: int, quick: bool) -> list[Figure]:
    """Cosine over 512 dimensions against the bare matrix product of the same vectors."""
    window, delta, width = (4_000, 500, 512) if quick else (20_000, 1_000, 512)
    rng = np.random.default_rng(3)
    kind = pa.list_(pa.float32(), width)

    def vectors(rows: int, start: float) -> pa.Table:
        flat = rng.standard_normal(rows * width, dtype=np.float32)
        times = ((start + np.arange(rows) / rows) * _SECOND).astype("datetime64[us]")
        return pa.table({"ts": times, "v": pa.FixedSizeListArray.from_arrays(pa.array(flat), type=kind)})

    past, new = vectors(window, 0.0), vectors(delta, 1.0)
    asked = weir.join(
        a=past, b=past, on="cosine(a.v, b.v) >= 0.25", within="1 minute", select="a.ts, b.ts AS bts"
    )
    query = asked.start()
    query.process(a=past)
    query.process(b=new.slice(0, 1))
    left = new["v"].combine_chunks().flatten().to_numpy().reshape(-1, width)
    right = past["v"].combine_chunks().flatten().to_numpy().reshape(-1, width)
    product, ours = side_by_side(lambda: left @ right.T, lambda: query.process(b=new), repeats)
    return [ratio("bare matrix product / cosine join", product, ours, 0.6, "at least", f"{width} dimensions")]


_RESIDUAL = "sqrt(pow(a.x - b.x, 2) + pow(a.y - b.y, 2)) < 0.001 * (a.x + b.y)"


def residual(repeats: int, quick: bool) -> list[Figure]:
    """An expression over ten million candidate pairs against Arrow evaluating it on columns made before."""
    rows = 1_000 if quick else 3_163
    a, b = _table(rows, 1, 1), _table(rows, 2, 1)
    asked = weir.join(a=a, b=b, on=_RESIDUAL, within="1 minute", select="a.x, b.y")
    first, second = (np.repeat(np.arange(rows), rows), np.tile(np.arange(rows), rows))
    columns = [pa.array(t[name].to_numpy()[p]) for t, p in ((a, first), (b, second)) for name in ("x", "y")]
    chunk = 1 << 17

    def alone() -> object:
        return [
            _evaluate_residual(*(column.slice(start, chunk) for column in columns))
            for start in range(0, rows * rows, chunk)
        ]

    seconds = side_by_side(asked.to_arrow, alone, max(3, repeats // 2))
    return [ratio("residual join / Arrow alone", *seconds, 1.5, "at most", f"{rows * rows:,} candidates")]


def _evaluate_residual(ax: pa.Array, ay: pa.Array, bx: pa.Array, by: pa.Array) -> pa.Array:
    squares = pc.add(pc.power(pc.subtract(ax, bx), 2.0), pc.power(pc.subtract(ay, by), 2.0))
    return pc.less(pc.sqrt(squares), pc.multiply(0.001, pc.add(ax, by)))


def state_bytes(repeats: int, quick: bool) -> list[Figure]:
    """What the state takes against the Arrow bytes of the columns it must keep."""
    rows = 10_000 if quick else 100_000
    tables = {name: _table(rows, seed, rows // 10) for seed, name in enumerate(("a", "b", "c"))}
    symbols = {
        name: t.set_column(1, "k", pc.binary_join_element_wise("symbol", t["k"].cast(pa.string()), "-"))
        for name, t in tables.items()
    }
    return [
        _bytes_ratio("state bytes / Arrow bytes, integer key", tables),
        _bytes_ratio("state bytes / Arrow bytes, string key", symbols),
    ]


def _bytes_ratio(name: str, tables: dict[str, pa.Table]) -> Figure:
    query = weir.join(streams=tables, on=_THREE_KEYS, within="1 minute").start()
    query.process({stream: table.slice(0, 0) for stream, table in tables.items()})
    for _ in query.chunks({"a": tables["a"], "b": tables["b"]}):
        pass
    kept = sum(size.bytes for size in query.state.sizes().values())
    needed = sum(tables[stream].combine_chunks().nbytes for stream in ("a", "b"))
    return Figure(name, kept / needed, kept / needed, kept / needed, 1.3, "at most")


def many_windows(repeats: int, quick: bool) -> list[Figure]:
    """One batch that holds a thousand windows against the same rows in a thousand batches."""
    windows, rows = (100, 50) if quick else (1_000, 100)
    tables = {
        name: _table(windows * rows, seed, rows, span=float(windows))
        for seed, name in enumerate(("a", "b", "c"))
    }
    asked = weir.join(streams=tables, on=_THREE_KEYS, within="1 second", select=_NINE)

    def in_batches() -> None:
        query = asked.start()
        for t in range(windows):
            query.process({name: table.slice(t * rows, rows) for name, table in tables.items()})

    seconds = side_by_side(partial(asked.to_arrow), in_batches, max(1, repeats // 3))
    return [ratio(f"one batch of {windows:,} windows / {windows:,} batches", *seconds, 2.0, "at most")]


if __name__ == "__main__":
    print(to_json(measure(quick="--quick" in sys.argv)))
