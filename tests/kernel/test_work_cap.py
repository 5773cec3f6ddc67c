"""A capped path: its runs, its order, the rows left over, and how far it may go beyond its part."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weir
from weir.kernel.decision import Decision
from weir.kernel.partial import Partial
from weir.kernel.physical_plan import compile_plan
from weir.kernel.slice import Slice
from weir.kernel.work_cap import _FEWEST_ROWS, _MOST_ROWS, divide_cap, divide_rows
from weir.local.query import LocalQuery
from weir.plan.tree import join as tree
from weir.query.build import build_query
from weir.query.options import QueryOptions
from weir.stats.hop import HopStats

SECOND = 1_000_000
ROW = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64()})
QUERY = build_query(
    dict.fromkeys("abc", ROW), QueryOptions(on="a.k = b.k AND b.k = c.k", within="10 seconds")
)


def draw_rows(seed: int, count: int, keys: int = 1, start: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    times = rng.integers(start * SECOND, (start + 2) * SECOND, count)
    return pa.table([pa.array(times).cast(pa.timestamp("us")), rng.integers(0, keys, count)], schema=ROW)


def start(cap: int | None, seed: int = 0) -> LocalQuery:
    rows = {name: draw_rows(seed, 2) for name in "ab"}
    query = weir.join(streams=rows, on="a.k = b.k", within="10 seconds", time="ts").start()
    decide = query._decider._decide
    query._decider._decide = lambda *given: replace(decide(*given), work_cap=cap)  # type: ignore[method-assign]
    return query


@cache
def stored_slices() -> tuple[Slice, ...]:
    query = start(None)
    query.process(a=draw_rows(1, 3000, keys=7))
    return query.state.of("a")


def stored_rows(count: int) -> list[Partial]:
    """Rows spread over slices, which are sorted by key."""
    rows, left = [], count
    for stored in stored_slices():
        taken = min(stored.rows, left)
        rows.append(Partial.of(stored).pick(np.linspace(0, stored.rows - 1, taken).astype(np.intp)))
        left -= taken
    return [partial for partial in rows if partial.rows]


@given(
    costs=st.lists(st.integers(0, 500), min_size=1, max_size=6),
    count=st.integers(0, 3000),
    max_steps=st.integers(0, 20_000),
    partner_rows=st.sampled_from([0, 10, 10_000]),
)
def test_no_run_starts_once_the_steps_are_spent(
    costs: list[int], count: int, max_steps: int, partner_rows: int
) -> None:
    """Whatever a row takes, and however that changes from run to run."""
    work, runs, steps = [HopStats(), HopStats()], [], []
    for number, run in enumerate(divide_rows(stored_rows(count), partner_rows, max_steps, work)):
        assert sum(steps) < max_steps
        rows = sum(partial.rows for partial in run)
        steps.append(rows * (1 + costs[number % len(costs)]))
        work[0].probes += rows
        work[1].matches += steps[-1] - rows
        runs.append(np.concatenate([p.numbers(p.groups[0].schema.times[0]) for p in run] or [[]]))
    started = sum(map(len, runs))
    assert work[0].capped == count - started
    assert started == count or sum(steps) >= max_steps
    assert all(len(run) <= _MOST_ROWS for run in runs[:-1])
    assert all(len(run) >= min(_FEWEST_ROWS, count) for run in runs[:-1])
    latest = [run.max() for run in runs if len(run)]
    earliest = [run.min() for run in runs if len(run)]
    assert all(before <= after for before, after in zip(latest[:-1], earliest[1:], strict=True))


@pytest.mark.parametrize("cap", [2_000_000, 8_000_000])
def test_an_overload_stops_near_its_cap(cap: int) -> None:
    """Two streams of 20 000 rows with ten keys have 40 million results, and the cap allows a part of them."""
    query = start(cap)
    results = sum(
        chunk.num_rows for chunk in query.chunks({n: draw_rows(i, 20_000, 10) for i, n in enumerate("ab")})
    )
    report = query.last_report
    assert report is not None
    assert 0.5 * cap < report.steps < 1.5 * cap
    assert 0.2 * cap < results < cap
    assert report.counts.capped > 10_000
    assert report.shed == report.counts.capped
    progress = query.lastProgress
    assert progress is not None
    assert progress["weir"]["numRowsCapped"] == report.counts.capped
    assert progress["weir"]["decision"]["workCap"] == cap
    assert progress["weir"]["estimatedRecall"] == pytest.approx(results / 40_000_000, rel=0.3)


def test_joins_divide_a_cap_by_their_paths_and_inherit_what_is_left() -> None:
    physical = compile_plan(QUERY, tree(tree("a", "b"), "c"))
    decision = Decision(physical.plan, ("a", "b", "c"), work_cap=400)
    lower, root = physical.nodes
    assert divide_cap(decision, physical, lower, 0) == 200
    assert divide_cap(decision, physical, root, None) == 200  # in a task of its own
    assert divide_cap(decision, physical, root, 50) == 350
    assert divide_cap(decision, physical, root, 390) == 200  # what others took too much is not taken from it
    assert divide_cap(replace(decision, work_cap=None), physical, root, 50) is None


def test_only_a_cpu_budget_caps_and_a_first_backlog_is_not_capped() -> None:
    """The budget holds from the second batch on: here, nothing tells how much time the first has."""
    caps = {}
    for name, budget in {
        "none": None,
        "memory": weir.Budget(memory="1 GB"),
        "cpu": weir.Budget(cpu=1e-6),
    }.items():
        tables = {stream: draw_rows(i, 400) for i, stream in enumerate("ab")}
        query = weir.join(
            streams=tables, on="a.k = b.k", within="10 seconds", time="ts", budget=budget, plan="mjoin"
        ).start()
        for batch in range(2):
            query.process({stream: draw_rows(i, 400, start=2 * batch) for i, stream in enumerate("ab")})
            assert query.last_report is not None
            caps[name, batch] = query.last_report.decision.work_cap
    assert [cap for (name, batch), cap in caps.items() if (name, batch) != ("cpu", 1)] == [None] * 5
    assert caps["cpu", 1] is not None
