"""A query that changes its plan every few batches, with little time for it, finds what any other finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from random import Random

import pyarrow as pa
from hypothesis import strategies as st

from weir.kernel import plan_migration as migrate
from weir.kernel import state_schema
from weir.plan.tree import Join, Leaf, hops
from weir.shed.allowance import Allowance

from .case import Case, Input
from .conditions import Condition
from .generate import NAMES, RANGE, arrivals, cuts, orders, relational, tree
from .reference import Results, admit, by_duckdb
from .run import asked, compare, explore, results
from .test_allowance import SHARES
from .time_bounds import time_bounds

BATCHES = 16
Drawn = Callable[[Join, Random], Allowance | None]


@st.composite
def cut_finely(draw: st.DrawFn) -> Case:
    """Joins of three streams or more in many batches, by windows, keys, bands, or bounds between times."""
    case = draw(st.one_of(relational(), time_bounds()).filter(lambda case: len(case.names) > 2))
    rng = Random(draw(st.integers(0, 2**32)))
    return replace(
        case,
        inputs=tuple(replace(one, cuts=cuts(len(one.table), BATCHES, rng)) for one in case.inputs),
    )


@st.composite
def dense(draw: st.DrawFn) -> Case:
    """Many rows that come out of order, in a chain of equalities and bands: much is to be made."""
    names = NAMES[: draw(st.sampled_from((3, 4, 5)))]
    rng = Random(draw(st.integers(0, 2**32)))
    rows = {3: 80, 4: 45, 5: 26}[len(names)]
    kinds = ("{0}.k = {1}.k", "{0}.k = {1}.k", "abs({0}.v - {1}.v) <= 1")
    made = []
    for name in names:
        times = arrivals(rows, 0, 1, 1, False, rng)
        columns = {"id": range(rows), "k": rng.choices(range(5), k=rows), "v": rng.choices(range(12), k=rows)}
        data = {name: pa.array(values, pa.int64()) for name, values in columns.items()}
        table = pa.table({"ts": pa.array(times, pa.timestamp("us")), **data})
        window, late = rng.randint(RANGE // 4, RANGE // 2), rng.choice((0, RANGE // 4, RANGE))
        made.append(Input(name, "ts", table, cuts(rows, BATCHES, rng), window, late))
    tied = tuple(Condition(rng.choice(kinds).format(*pair)) for pair in pairwise(names))
    return Case(tuple(made), tied, tree(names, rng), tuple(rng.sample(names, len(names))))


@contextmanager
def little_effort(rng: Random) -> Iterator[None]:
    """So few steps in one batch that making states takes several, or any number of them."""
    known = (
        migrate.MIN_MIGRATION_STEPS,
        migrate.MIGRATION_SHARE,
        migrate._FIRST_ROWS,
        state_schema.CELLS_PER_PROBE,
    )
    migrate.MIN_MIGRATION_STEPS, migrate.MIGRATION_SHARE, migrate._FIRST_ROWS = (
        rng.choice((20, 60, 150, 400, 1000)),
        0.0,
        1,
    )
    state_schema.CELLS_PER_PROBE = rng.choice((1, 2, 16))  # few, so that many rows of one come piece by piece
    try:
        yield
    finally:
        (
            migrate.MIN_MIGRATION_STEPS,
            migrate.MIGRATION_SHARE,
            migrate._FIRST_ROWS,
            state_schema.CELLS_PER_PROBE,
        ) = known


def everything(plan: Join, rng: Random) -> None:
    return None


def something(plan: Join, rng: Random) -> Allowance:
    probes = {hop: rng.choice(SHARES) for hop in hops(plan) if rng.random() < 0.4}
    return Allowance(probes, choose=rng.choice(("newest", "hash")), sample=rng.choice((0.0, 0.3)))


def changing(case: Case, drawn: Drawn, seen: Counter[str]) -> Results:
    """All results of a query that goes over to another plan every one to four batches."""
    rng = Random(repr((case.on, case.names, case.driver_order)))
    pool, half_way = [_plan(case, rng) for _ in range(3)], False
    found, until = Results(), rng.randint(1, 3)
    with little_effort(rng):
        query = asked(case).start()
        for batch in range(case.batches):
            if batch == until:
                plan = rng.choice(pool)
                query.replan(plan, allowance=drawn(plan, rng))
                until += rng.randint(1, 6)
            found += results(query.process({one.name: one.batch(batch) for one in case.inputs}))
            assert query.lastProgress is not None
            decision = query.lastProgress["weir"]["decision"]
            shares = decision["building"].values()
            seen["taken over after several batches"] += half_way and not shares
            half_way = any(0 < share < 1 for share in shares)
            seen["half-way"] += half_way
    return found


def _plan(case: Case, rng: Random) -> Join:
    if rng.random() < 0.1:
        return Join(tuple(map(Leaf, case.names)), tuple(orders(len(case.names), rng)))
    return tree(case.names, rng)


def wanted_of(case: Case) -> Results:
    return by_duckdb(case, {name: [row for _, row in rows] for name, rows in admit(case).rows.items()})


def test_exact_while_plans_change() -> None:
    seen = Counter[str]()

    def check(case: Case) -> Results:
        wanted = wanted_of(case)
        compare(changing(case, everything, seen), wanted)
        return wanted

    explore(dense(), check, examples=24, share=0.8)
    assert seen["half-way"] > 25 and seen["taken over after several batches"] > 5, seen
    explore(cut_finely(), check, examples=16, share=0.3)


def test_a_part_under_allowances_while_plans_change() -> None:
    def check(case: Case) -> Results:
        found, wanted = changing(case, something, Counter()), wanted_of(case)
        assert found <= wanted, found - wanted
        return found

    explore(dense(), check, examples=8, share=0.5)
