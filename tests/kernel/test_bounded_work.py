"""Work and memory are bounded by the rows of a window, not by the rows of a batch."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from time import process_time

import numpy as np
import pyarrow as pa
import pytest

import weir
from weir.local.query import LocalQuery

_POOLS: list[pa.MemoryPool] = []
PER_WINDOW, WINDOW = 50, 1_000_000  # rows per stream and window; microseconds


def test_ten_million_candidates_take_little_memory() -> None:
    """All 3 200 x 3 200 pairs are compared and few match; memory holds a small part of them at a time."""
    count = 3_200
    rng = np.random.default_rng(1)
    times = pa.array(np.sort(rng.integers(0, 1000, count)), pa.timestamp("us"))
    rows = [pa.table({"ts": times, "x": rng.permutation(count)}) for _ in "ab"]
    asked = weir.join(a=rows[0], b=rows[1], on="a.x + b.x = 5", within="1001 us", select="a.x AS x").start()
    with measured() as peak:
        results = sum(chunk.num_rows for chunk in asked.chunks({"a": rows[0], "b": rows[1]}))
    assert results == 6
    assert asked.last_report is not None
    assert sum(hop.comparisons for hop in asked.last_report.per_hop.values()) == count * count
    assert peak.bytes < 64 * 2**20


@pytest.mark.slow
@pytest.mark.parametrize(("streams", "windows"), [(2, 1_000), (3, 50)])
def test_a_batch_of_many_windows_costs_at_most_twice_what_as_many_batches_do(
    streams: int, windows: int
) -> None:
    rows = {name: stream(seed, windows) for seed, name in enumerate("abc"[:streams])}
    whole, results = cpu_seconds(lambda: one_batch(rows))
    cut, expected = cpu_seconds(lambda: many_batches(rows, windows))
    assert results == expected > windows
    assert whole <= 2 * cut


@pytest.mark.slow
def test_the_memory_of_a_batch_grows_no_faster_than_its_rows() -> None:
    few, many = ({name: stream(seed, windows) for seed, name in enumerate("ab")} for windows in (20, 100))
    assert peak_bytes(many) < 1.25 * 5 * peak_bytes(few)


def stream(seed: int, windows: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    count = windows * PER_WINDOW
    times = np.sort(rng.integers(0, windows * WINDOW, count))
    return pa.table({"ts": pa.array(times, pa.timestamp("us")), "k": rng.integers(0, 20, count)})


def start(rows: dict[str, pa.Table]) -> LocalQuery:
    names = sorted(rows)
    on = " AND ".join(f"{a}.k = {b}.k" for a, b in pairwise(names))
    return weir.join(on=on, within=f"{WINDOW} us", select="a.k AS k", streams=rows).start()


def one_batch(rows: dict[str, pa.Table]) -> int:
    return sum(chunk.num_rows for chunk in start(rows).chunks(rows))


def many_batches(rows: dict[str, pa.Table], windows: int) -> int:
    query, results = start(rows), 0
    edges = np.arange(windows + 1) * WINDOW
    ends = {name: np.searchsorted(table["ts"].cast(pa.int64()), edges) for name, table in rows.items()}
    for i in range(windows):
        parts = {name: (ends[name][i], ends[name][i + 1]) for name in rows}
        results += query.process(
            {name: rows[name].slice(a, b - a) for name, (a, b) in parts.items()}
        ).num_rows
    return results


def cpu_seconds(work: Callable[[], int]) -> tuple[float, int]:
    """CPU seconds of this process alone, so that other processes do not matter."""
    started = process_time()
    results = work()
    return process_time() - started, results


def peak_bytes(rows: dict[str, pa.Table]) -> int:
    """The peak memory of one batch; results are dropped as they come."""
    with measured() as peak:
        one_batch(rows)
    return peak.bytes


@dataclass
class Peak:
    """The peak memory of NumPy, Python and Arrow."""

    bytes: int = 0


@contextmanager
def measured() -> Iterator[Peak]:
    """Measure the peak; Arrow gets a pool of its own, whose peak starts at zero."""
    usual, peak = pa.default_memory_pool(), Peak()
    own = pa.proxy_memory_pool(usual)
    _POOLS.append(own)  # what it has given out must be given back to it
    pa.set_memory_pool(own)
    tracemalloc.start()
    try:
        yield peak
    finally:
        peak.bytes = own.max_memory() + tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        pa.set_memory_pool(usual)
