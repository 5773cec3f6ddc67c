"""A running join: what it tells about itself, and rows without a time."""

from __future__ import annotations

import weakref
from functools import partial

import pyarrow as pa
import pytest

import weir
from weir.errors import QueryError
from weir.runtime.batch_events import PHASES
from weir.testing import Crash, ListSource, run

from .tables import GOOD, STATEMENT, A, B

NO_TIMES = A.set_column(0, "ts", pa.array([None, 2], A.schema.field("ts").type))


SAME_KEY = partial(weir.join, **GOOD)


def test_progress_counts_slices_and_matches() -> None:
    results = run(SAME_KEY, ListSource({"a": A.to_pylist()}, {"b": B.to_pylist()}))
    assert results.batches == ([], [{"k": 1}])
    hops = results.progress[1]["hops"].values()
    assert sum(hop["matches"] for hop in hops) == 1
    assert sum(hop["slicesVisited"] for hop in hops) == 1


def test_a_batch_that_fails_half_way_can_be_given_again() -> None:
    steps = [{"a": A.to_pylist()}, {"b": B.to_pylist()}]
    for phase in PHASES[:-1]:
        results = run(SAME_KEY, ListSource(Crash(phase), steps[0], Crash(phase), steps[1]))
        assert results.batches == ([], [{"k": 1}]), phase
        assert results.progress[1]["state"]["a"]["numRowsTotal"] == 2, phase


def test_a_join_shows_itself() -> None:
    made = weir.join(a=A, b=B, **GOOD)
    ways = "collect(), to_arrow(), to_polars() or to_pandas()"
    assert repr(made) == f"<LocalJoin of a, b [k: bigint]; run it with {ways}>"
    for_batches = weir.join(a=A, b=B.schema, **GOOD)
    assert repr(for_batches) == "<LocalJoin of a, b [k: bigint]; run it with start()>"
    query = made.start()
    query.process(a=A)
    assert repr(query) == "<LocalQuery of a, b: 1 batches done, 2 rows in state>"


def test_rows_without_a_time_are_dropped_and_counted() -> None:
    results = run(SAME_KEY, ListSource({"a": NO_TIMES.to_pylist(), "b": B.to_pylist()}))
    assert results.rows == []
    assert results.progress[0]["streams"]["a"]["numRowsNullTime"] == 1


def test_rows_without_a_time_fail_by_request() -> None:
    message = "stream 'a' has 1 row without a time .*on_null_time='drop'"
    with pytest.raises(QueryError, match=message):
        weir.join(a=NO_TIMES, b=B, on_null_time="fail", **GOOD).to_arrow()
    query = weir.sql(STATEMENT, a=A, b=B, on_null_time="fail").start()
    with pytest.raises(QueryError, match=message):
        query.process(a=NO_TIMES)
    assert query.process(a=A, b=B).num_rows == 1


def test_a_query_frees_its_state_when_it_is_dropped() -> None:
    query = weir.join(a=A, b=B, **GOOD).start()
    query.process(a=A, b=B)
    engine = weakref.ref(query._engine)
    del query
    assert engine() is None, "no cycle keeps the state until the garbage collector runs"
