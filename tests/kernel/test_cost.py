"""Work and memory are bounded by what a window holds, not by what a batch brings."""

from __future__ import annotations

import tracemalloc
from statistics import median
from time import perf_counter

import numpy as np
import pyarrow as pa
import pytest

import weir
from weir.local import LocalQuery

WINDOWS, PER_WINDOW, WINDOW = 1_000, 50, 1_000_000


def test_ten_million_candidates_take_little_memory() -> None:
    """All 3 200 x 3 200 pairs are looked at, few match; what is in flight is a small part of them."""
    count = 3_200
    rng = np.random.default_rng(1)
    times = pa.array(np.sort(rng.integers(0, 1000, count)), pa.timestamp("us"))
    rows = [pa.table({"ts": times, "x": rng.permutation(count)}) for _ in "ab"]
    asked = weir.join(a=rows[0], b=rows[1], on="a.x + b.x = 5", within=1001, select="a.x AS x").start()
    started = perf_counter()
    tracemalloc.start()
    before = pa.total_allocated_bytes()
    found, peak = 0, 0
    for chunk in asked.chunks({"a": rows[0], "b": rows[1]}):
        found += chunk.num_rows
        peak = max(peak, pa.total_allocated_bytes() - before)
    peak += tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == 6
    assert asked.stats is not None
    assert sum(hop.comparisons for hop in asked.stats.per_hop.values()) == count * count
    assert peak < 64 * 2**20
    assert perf_counter() - started < 3


@pytest.mark.slow
@pytest.mark.parametrize("streams", [2, 3])
def test_a_batch_of_a_thousand_windows_costs_what_a_thousand_batches_do(streams: int) -> None:
    rows = {name: stream(seed) for seed, name in enumerate("abc"[:streams])}
    whole = [seconds(lambda: one_batch(rows)) for _ in range(3)]
    cut = [seconds(lambda: many_batches(rows)) for _ in range(3)]
    assert one_batch(rows) == many_batches(rows) > WINDOWS
    assert median(whole) <= 2 * median(cut)


@pytest.mark.slow
def test_the_memory_of_a_batch_of_a_thousand_windows_is_that_of_its_rows() -> None:
    few, many = ({name: stream(seed, windows) for seed, name in enumerate("ab")} for windows in (100, 1_000))
    assert peak_bytes(many) < 3 * sum(rows.nbytes for rows in many.values()) + 2 * peak_bytes(few)


def stream(seed: int, windows: int = WINDOWS) -> pa.Table:
    rng = np.random.default_rng(seed)
    count = windows * PER_WINDOW
    times = np.sort(rng.integers(0, windows * WINDOW, count))
    return pa.table({"ts": pa.array(times, pa.timestamp("us")), "k": rng.integers(0, 20, count)})


def start(rows: dict[str, pa.Table]) -> LocalQuery:
    names = sorted(rows)
    on = " AND ".join(f"{a}.k = {b}.k" for a, b in zip(names, names[1:], strict=False))
    return weir.join(on=on, within=WINDOW, select="a.k AS k", streams=rows).start()


def one_batch(rows: dict[str, pa.Table]) -> int:
    return sum(chunk.num_rows for chunk in start(rows).chunks(rows))


def many_batches(rows: dict[str, pa.Table]) -> int:
    query, found = start(rows), 0
    ends = {name: np.searchsorted(table["ts"].cast(pa.int64()), np.arange(WINDOWS + 1) * WINDOW) for name, table in rows.items()}
    for i in range(WINDOWS):
        tables = {name: table.slice(ends[name][i], ends[name][i + 1] - ends[name][i]) for name, table in rows.items()}
        found += query.process(tables).num_rows
    return found


def seconds(work: object) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started


def peak_bytes(rows: dict[str, pa.Table]) -> int:
    """The largest number of bytes that one batch holds at a time, results not counted once they are given away."""
    before, most = pa.total_allocated_bytes(), 0
    tracemalloc.start()
    for _ in start(rows).chunks(rows):
        most = max(most, pa.total_allocated_bytes() - before)
    most += tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most
