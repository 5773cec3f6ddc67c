"""Shapes of data in the local engine, in one batch and in twenty, beside DuckDB on one thread.

`python -m weir_lab.bench.local_shapes` prints the figures as JSON; see `one_thread`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from itertools import chain
from pathlib import Path

import pyarrow as pa

from weir_lab.bench.figure import Figure, tell, time_in_turns, to_json
from weir_lab.bench.shape_growth import check_equal, describe_growth, double
from weir_lab.bench.shape_peer import Peer, compare, compare_state, join_locally, time_checked
from weir_lab.bench.shape_tables import GROWING, Shape, make_dense
from weir_lab.bench.shapes import BATCHES, PATIENCE, list_shapes, rows_per_stream

# Beyond so many rows per stream, DuckDB would be what a growing shape spends its time on.
_CHECKED_ROWS = 40_000


def measure(data: Path | None, quick: bool) -> list[Figure]:
    """Every figure of the local engine, in this process; each is told on stderr as it is done."""
    pa.set_cpu_count(1)
    repeats = 3 if quick else 5
    figures = [tell(measure_shape(shape, repeats)) for shape in list_shapes(data, quick)]
    figures.append(tell([measure_state(make_dense(rows_per_stream(quick)))]))
    sizes = double(10_000, 40_000 if quick else 320_000)
    figures += [tell(measure_growth(make, sizes, repeats=3)) for make in GROWING]
    return list(chain.from_iterable(figures))


def measure_shape(shape: Shape, repeats: int) -> list[Figure]:
    """One batch and many against DuckDB, which all find the same results in every turn."""
    peer = Peer(shape, threads=1)
    counts = (1, BATCHES)
    runs = {str(count): partial(peer.time_local, shape.batches(count)) for count in counts}
    seconds = time_in_turns({"duckdb": peer.time, **runs}, repeats, PATIENCE)
    note = f"{shape.rows:,} rows, {peer.results:,} results"
    return [
        compare(f"local, {_describe(count)}", shape, seconds[str(count)], seconds["duckdb"], note)
        for count in counts
    ]


def measure_state(shape: Shape) -> Figure:
    """What the state keeps after each of many batches."""
    query, parts = shape.join(shape.tables).start(), shape.batches(BATCHES)
    kept, needed = [], []
    for number, part in enumerate(parts, start=1):
        query.process(part)
        progress = query.lastProgress["weir"]
        kept.append(sum(node["numRowsTotal"] for node in progress["state"].values()))
        needed.append(shape.count_in_windows(parts[:number], progress["watermark"]))
    return compare_state("local", shape, kept, needed)


def measure_growth(make: Callable[[int], Shape], sizes: list[int], repeats: int) -> list[Figure]:
    """The exponent with one batch and with many; at every size all find as many results."""
    shapes = {size: make(size) for size in sizes}
    figures = []
    results = {size: _count_results(shape) for size, shape in shapes.items()}
    for count in (1, BATCHES):
        runs = {str(size): partial(_time, shapes[size], count, results[size]) for size in sizes}
        seconds = time_in_turns(runs, repeats, 2 * PATIENCE)
        name = f"{shapes[sizes[0]].name}: local, {_describe(count)}"
        figures.append(describe_growth(name, {size: seconds[str(size)] for size in sizes}))
    return figures


def _count_results(shape: Shape) -> int:
    """How many results there are: after DuckDB, or where that would take long after one batch of ours."""
    rows = min(table.num_rows for table in shape.tables.values())
    if rows <= _CHECKED_ROWS:
        return Peer(shape, threads=1).results
    results: int = join_locally(shape, shape.batches(1)).num_rows
    return results


def _time(shape: Shape, count: int, results: int) -> float:
    parts = shape.batches(count)
    where = f"'{shape.name}', {shape.rows:,} rows"
    return time_checked(
        lambda: join_locally(shape, parts),
        lambda table: check_equal({_describe(count): table.num_rows, "expected": results}, where),
    )


def _describe(count: int) -> str:
    return "one batch" if count == 1 else f"{count} batches"


if __name__ == "__main__":
    folder = next((Path(argument) for argument in sys.argv[1:] if argument != "--quick"), None)
    print(to_json(measure(folder, quick="--quick" in sys.argv)))
