"""A costly predicate is asked once for each combination of rows it reads, and the join stays the same."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import weir

Rows = list[tuple[int, int]]

rows = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4)), max_size=10)
# So wide that few pairs are asked at a time.
_PADDING = "." * 300_000


def table(found: Rows) -> pa.Table:
    return pa.table(
        {
            "ts": pa.array([1_000_000 * t for t, _ in found], pa.timestamp("us")),
            "v": pa.array([v for _, v in found], pa.int64()),
            "wide": pa.array([_PADDING] * len(found), pa.string()),
        }
    )


def chain(streams: dict[str, Any], similar: Any) -> Any:
    return weir.join(
        streams=streams,
        on=" AND ".join(f"similar({x}.v, {y}.v, {x}.wide, {y}.wide)" for x, y in pairwise(streams)),
        within="5 seconds",
        late="20 seconds",
        select=", ".join(f"{name}.v AS {name}" for name in streams),
        functions={"similar": weir.udf(similar)},
    )


@settings(max_examples=20, deadline=None)
@given(a=rows, b=rows, c=rows, d=rows, batches=st.integers(1, 3))
def test_the_join_is_the_one_by_brute_force(a: Rows, b: Rows, c: Rows, d: Rows, batches: int) -> None:
    def similar(x: pa.Array, y: pa.Array, *_: pa.Array) -> Any:
        return np.abs(x.to_numpy() - y.to_numpy()) <= 1

    streams = {"a": a, "b": b, "c": c, "d": d}
    query = chain({name: table([]).schema for name in streams}, similar).start()
    found: Counter[tuple[int, ...]] = Counter()
    for batch in range(batches):
        out = query.process({name: table(given[batch::batches]) for name, given in streams.items()})
        found.update(zip(*(out[name].to_pylist() for name in streams), strict=True))
    wanted = Counter(
        (p[1], q[1], r[1], s[1])
        for p in a
        for q in b
        for r in c
        for s in d
        if max(abs(p[1] - q[1]), abs(q[1] - r[1]), abs(r[1] - s[1])) <= 1
        and max(p[0], q[0], r[0], s[0]) - min(p[0], q[0], r[0], s[0]) < 5
    )
    assert found == wanted


def test_partials_that_repeat_a_row_do_not_ask_again() -> None:
    asked = 0

    def similar(x: pa.Array, *_: pa.Array) -> Any:
        nonlocal asked
        asked += len(x)
        return np.ones(len(x), np.bool_)

    join = chain({name: table([(1, 0)] * 20) for name in "abc"}, similar)
    assert join.to_arrow().num_rows == 20**3
    assert asked == 2 * 20**2
