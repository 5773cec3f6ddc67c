"""An expensive predicate is evaluated once per combination of rows it reads; results stay the same."""

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
# So wide that few pairs are evaluated at a time.
_PADDING = "." * 300_000


def table(values: Rows) -> pa.Table:
    return pa.table(
        {
            "ts": pa.array([1_000_000 * t for t, _ in values], pa.timestamp("us")),
            "v": pa.array([v for _, v in values], pa.int64()),
            "wide": pa.array([_PADDING] * len(values), pa.string()),
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
def test_results_equal_a_nested_loop(a: Rows, b: Rows, c: Rows, d: Rows, batches: int) -> None:
    def similar(x: pa.Array, y: pa.Array, *_: pa.Array) -> Any:
        return np.abs(x.to_numpy() - y.to_numpy()) <= 1

    streams = {"a": a, "b": b, "c": c, "d": d}
    query = chain({name: table([]).schema for name in streams}, similar).start()
    results: Counter[tuple[int, ...]] = Counter()
    for batch in range(batches):
        out = query.process({name: table(given[batch::batches]) for name, given in streams.items()})
        results.update(zip(*(out[name].to_pylist() for name in streams), strict=True))
    expected = Counter(
        (p[1], q[1], r[1], s[1])
        for p in a
        for q in b
        for r in c
        for s in d
        if max(abs(p[1] - q[1]), abs(q[1] - r[1]), abs(r[1] - s[1])) <= 1
        and max(p[0], q[0], r[0], s[0]) - min(p[0], q[0], r[0], s[0]) < 5
    )
    assert results == expected


def test_partials_that_repeat_a_row_are_not_evaluated_again() -> None:
    evaluated = 0

    def similar(x: pa.Array, *_: pa.Array) -> Any:
        nonlocal evaluated
        evaluated += len(x)
        return np.ones(len(x), np.bool_)

    join = chain({name: table([(1, 0)] * 20) for name in "abc"}, similar)
    assert join.to_arrow().num_rows == 20**3
    assert evaluated == 2 * 20**2
