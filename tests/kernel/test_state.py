"""A state keeps rows that may still join, in few slices."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import weir
from weir.kernel.slice import ROWS
from weir.plan.tree import join

from .timeline import Batch, Row, play, rows_kept, started

WINDOW = 160  # microseconds


def both(t: int, k: int) -> Batch:
    return Batch([Row("a", t=t, k=k), Row("b", t=t, k=-k - 1)])


def test_state_shrinks_as_the_watermark_moves() -> None:
    query = started("ab", within=WINDOW)
    play(query, *(both(t, t) for t in range(0, WINDOW, 4)))
    full = rows_kept(query)
    assert full == {"a": 40, "b": 40}
    play(query, both(WINDOW + WINDOW // 2, 1), both(WINDOW + WINDOW // 2, 2))
    half = rows_kept(query)
    assert 20 <= half["a"] <= 26
    play(query, both(10 * WINDOW, 1))
    assert rows_kept(query) == {"a": 1, "b": 1}


def test_the_state_of_a_long_run_stays_that_of_one_window() -> None:
    query = started("ab", within=WINDOW)
    most = 0
    for t in range(0, 20 * WINDOW, 8):
        play(query, both(t, t))
        most = max(most, *rows_kept(query).values())
    assert most <= WINDOW // 8 * 1.5


def test_a_partial_is_kept_until_its_deadline() -> None:
    """
    a, window 10   [0 .. 9]
    b, window 50     [5 ............. 54]     the pair (a0 b5) is dead at 10, b5 itself at 55
    """
    query = started("abc", within={"a": 10, "b": 50, "c": 50}, plan=join(join("a", "b"), "c"))
    play(query, Batch([Row("a", t=0), Row("b", t=5)]), Row("c", t=8, expect=["a0 b5 c8"]))
    assert rows_kept(query)["(a b)"] == 1
    play(query, Batch([Row(name, t=30, k=9) for name in "abc"], expect=["a30 b30 c30"]))
    kept = rows_kept(query)
    assert (kept["(a b)"], kept["a"], kept["b"]) == (1, 1, 2)


@pytest.mark.parametrize("plan", ["mjoin", "bjtree"])
def test_many_small_batches_leave_few_slices(plan: str) -> None:
    query = started("abc", within=WINDOW, plan=plan)
    most = 0
    for t in range(200):
        play(query, Batch([Row(name, t=t, k=t) for name in "abc"], expect=[f"a{t} b{t} c{t}"]))
        most = max(most, *(size.slices for size in query.state.sizes().values()))
    assert most <= 40


def test_a_row_window_keeps_little_more_than_its_rows() -> None:
    query = started("ab", within=weir.rows(32))
    for t in range(200):
        play(query, both(t, t))
    assert all(32 <= kept <= 40 for kept in rows_kept(query).values())
    assert all(size.slices <= 40 for size in query.state.sizes().values())


def test_sizes_count_rows_bytes_and_slices() -> None:
    query = started("ab", within=WINDOW)
    play(query, both(1, 1))
    size = query.state.sizes()["a"]
    assert (size.rows, size.slices) == (1, 1)
    assert size.bytes > 0
    assert query.lastProgress is not None
    assert query.lastProgress["weir"]["state"]["a"]["numRowsTotal"] == 1


@pytest.mark.parametrize("batches", [1, 20])
def test_a_sparse_stream_has_few_slices(batches: int) -> None:
    """10,000 rows that lie a hundred windows apart: slices are cut by rows, not by time."""
    rows = 10_000
    times = pa.array(np.arange(rows) * 100 * WINDOW)
    table = pa.table({"ts": times.cast(pa.timestamp("us")), "k": np.arange(rows) % 7})
    query = weir.join(a=table, b=table, on="a.k = b.k", within=f"{WINDOW} us", select="a.k").start()
    results = 0
    for first in range(0, rows, rows // batches):
        part = table.slice(first, rows // batches)
        results += query.process(a=part, b=part).num_rows
        assert all(size.slices <= 4 for size in query.state.sizes().values())
    assert results == rows
    # What the last watermark has made dead leaves with the next batch.
    query.process(a=table.slice(rows - 1), b=table.slice(rows - 1))
    assert all(size.rows <= rows // batches for size in query.state.sizes().values())


def test_a_dense_stream_has_slices_shorter_than_its_window() -> None:
    rows = 40 * ROWS
    times = pa.array(np.arange(rows) * 2 * WINDOW // rows)
    table = pa.table({"ts": times.cast(pa.timestamp("us")), "k": np.arange(rows)})
    query = weir.join(a=table, b=table, on="a.k = b.k", within=f"{WINDOW} us", select="a.k").start()
    assert query.process(a=table, b=table).num_rows == rows
    for kept in query.state.of("a"):
        first, last = kept.cells
        assert first == last and kept.rows >= ROWS


def test_a_memory_budget_bounds_the_bytes_of_a_slice() -> None:
    rows = 20_000
    table = pa.table({"ts": pa.array(np.arange(rows)).cast(pa.timestamp("us")), "k": np.arange(rows)})
    budget = weir.Budget(memory=str(32 * 10_000))
    query = weir.join(
        a=table, b=table, on="a.k = b.k", within="1 second", select="a.k", budget=budget, adapt=True
    ).start()
    query.process(a=table, b=table)
    entries = query.manifest.entries
    assert entries and max(entry.bytes for entry in entries) <= 32 * 10_000 / 8
