"""Values are gathered a bounded number of bytes at a time, however wide and uneven rows are."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weir
from weir.kernel import partial, split_partial
from weir.kernel.split_partial import cut_by_bytes
from weir.kernel.value_bytes import count_bytes
from weir.plan.tree import join as tree

_MOST = 4_000
_WIDE = 1_000
SCHEMA = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64(), "n": pa.int64(), "x": pa.string()})


@given(st.lists(st.integers(0, 20)), st.integers(1, 30))
def test_runs_are_as_long_as_their_bytes_allow(sizes: list[int], most: int) -> None:
    edges = cut_by_bytes(np.array(sizes, np.int64), most)
    runs = [sizes[first:last] for first, last in pairwise(edges)]
    assert [size for run in runs for size in run] == sizes
    assert all(sum(run) <= most or len(run) == 1 for run in runs)
    assert all(sum(run) + after[0] > most for run, after in pairwise(runs))


@pytest.mark.parametrize(
    ("values", "kind", "sizes"),
    [
        ([b"abc", None, b""], pa.binary(), [3, 0, 0]),
        (["ä", "xy"], pa.large_string(), [2, 2]),
        ([["ab", "c"], None, []], pa.list_(pa.string()), [3, 0, 0]),
        ([[("a", 1), ("bc", 2)], None], pa.map_(pa.string(), pa.int64()), [19, 0]),
        ([{"x": "abc", "y": 1}, {"x": None, "y": 2}], pa.struct({"x": pa.string(), "y": pa.int32()}), [7, 4]),
        ([1, None], pa.int16(), None),
    ],
)
def test_bytes_of_values_also_of_a_part_of_an_array(
    values: list[Any], kind: pa.DataType, sizes: list[int] | None
) -> None:
    array = pa.array([values[-1], *values], kind)
    counted = count_bytes(array.slice(1)).tolist()
    assert counted == sizes if sizes is not None else all(2 <= size <= 3 for size in counted)


def _rows(keys: list[int], wide: set[int]) -> pa.Table:
    times = pa.array(np.arange(len(keys))).cast(pa.timestamp("us"))
    texts = ["w" * _WIDE if key in wide else "n" for key in keys]
    return pa.table([times, keys, list(range(len(keys))), texts], schema=SCHEMA)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of texts that are gathered at a time, now that few may be."""
    sizes: list[int] = []

    def take(values: pa.Array, picks: Any) -> pa.Array:
        gathered = values if picks is None else values.take(pa.array(picks))
        if pa.types.is_string(values.type) and picks is not None:
            sizes.append(int(count_bytes(gathered).sum()))
        return gathered

    monkeypatch.setattr(split_partial, "BYTES", _MOST)
    monkeypatch.setattr(partial, "_take", take)
    return sizes


@pytest.mark.parametrize("residual", ["", " AND length(b.x) + a.n > 0"])
def test_the_few_wide_rows_that_join_are_gathered_some_at_a_time(residual: str, taken: list[int]) -> None:
    """Of 1,000 rows of b only the ten wide ones find partners, so the mean of all rows says nothing."""
    wide_rows = range(0, 1_000, 100)
    a = _rows([0] * 30, wide=set())
    b = _rows([0 if row in wide_rows else 7 for row in range(1_000)], wide={0})
    query = weir.join(
        streams=dict.fromkeys("ab", SCHEMA),
        on=f"a.k = b.k{residual}",
        within="1 second",
        select="a.n AS an, b.n AS bn, b.x AS x",
    ).start()
    chunks = list(query.chunks({"a": a, "b": b}))
    found = Counter(tuple(row.values()) for chunk in chunks for row in chunk.to_pylist())
    assert found == Counter((an, bn, "w" * _WIDE) for an in range(30) for bn in wide_rows)
    assert max(chunk["x"].nbytes for chunk in chunks) <= 2 * _MOST
    assert max(taken) <= _MOST


def test_few_results_do_not_gather_the_many_partials_they_come_from(taken: list[int]) -> None:
    """90 pairs of a and b, a kilobyte each, of which c leaves three."""
    query = weir.join(
        streams=dict.fromkeys("abc", SCHEMA),
        on="a.k = b.k AND b.k = c.k AND a.n = c.n",
        within="1 second",
        select="a.n AS an, b.n AS bn, b.x AS x",
        plan=tree("a", "b", "c"),
    ).start()
    query.process(b=_rows([0] * 3, wide={0}), c=_rows([0], wide=set()))
    results = query.process(a=_rows([0] * 30, wide=set()))
    assert sorted(results["bn"].to_pylist()) == [0, 1, 2]
    assert max(taken) <= _MOST
