"""A running join: what it tells about itself, and rows without a time."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import weir
from weir.errors import QueryError

from .tables import GOOD, STATEMENT, A, B

NO_TIMES = A.set_column(0, "ts", pa.array([None, 2], A.schema.field("ts").type))


def test_progress_counts_slices_and_matches() -> None:
    query = weir.join(a=A.schema, b=B.schema, **GOOD).start()
    query.process(a=A)
    query.process(b=B)
    assert query.lastProgress is not None
    hops = query.lastProgress["weir"]["hops"].values()
    assert sum(hop["matches"] for hop in hops) == 1
    assert sum(hop["slicesVisited"] for hop in hops) == 1
    assert json.loads(json.dumps(query.lastProgress)) == query.lastProgress


def test_a_join_shows_itself() -> None:
    made = weir.join(a=A, b=B, **GOOD)
    assert repr(made) == "<LocalJoin of a, b: k>"
    query = made.start()
    query.process(a=A)
    assert repr(query) == "<LocalQuery of a, b: 1 batches done, 2 rows in state>"


def test_rows_without_a_time_are_dropped_and_counted() -> None:
    query = weir.join(a=A, b=B, **GOOD).start()
    assert query.process(a=NO_TIMES, b=B).num_rows == 0
    assert query.lastProgress is not None
    assert query.lastProgress["weir"]["streams"]["a"]["numRowsNullTime"] == 1


def test_rows_without_a_time_fail_by_request() -> None:
    message = "stream 'a' has 1 row without a time .*on_null_time='drop'"
    with pytest.raises(QueryError, match=message):
        weir.join(a=NO_TIMES, b=B, on_null_time="fail", **GOOD).to_arrow()
    query = weir.sql(STATEMENT, a=A, b=B, on_null_time="fail").start()
    with pytest.raises(QueryError, match=message):
        query.process(a=NO_TIMES)
    assert query.process(a=A, b=B).num_rows == 1
