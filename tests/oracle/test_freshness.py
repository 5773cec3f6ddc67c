"""`fresh=` in one process gives what its definition says, row by row, whatever the batches and the plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate
from random import Random

import pyarrow as pa
import pytest
from hypothesis import strategies as st

import weir
from weir.local.query import LocalQuery
from weir.plan import hops, join
from weir.runtime.batch_events import PHASES, listen
from weir.runtime.wall_clock import use_wall_clock

from .freshness import SECOND, Batch, FreshCase, Judged, Row, judge
from .run import explore

SCHEMA = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64(), "id": pa.int64()})
PLANS = ("mjoin", join(join("a", "b"), "c"), join("a", join("b", "c")), join(join("a", "c"), "b"))
_CRASHES = PHASES[PHASES.index("build") : PHASES.index("spark_commit")]


@st.composite
def fresh_cases(draw: st.DrawFn) -> FreshCase:
    """Streams that lag behind each other, with late rows, and a wall clock that is now and then set back."""
    names, count = "abc"[: draw(st.integers(2, 3))], draw(st.integers(3, 7))
    random = Random(draw(st.integers(0, 2**32)))
    lags = {name: random.randint(0, 8) for name in names}
    ids = iter(range(1000))

    def rows(name: str, number: int) -> list[Row]:
        times = (
            20 + 3 * number - lags[name] + random.randint(-6, 2)
            for _ in range(random.choice((0, 1, 2, 3, 3)))
        )
        return [Row(next(ids), time, random.randint(0, 1)) for time in times]

    windows = {name: random.randint(4, 9) for name in names}
    fresh = {name: length + random.randint(0, 1) for name, length in windows.items()}
    always = random.choice(names)
    return FreshCase(
        batches=tuple({name: rows(name, number) for name in names} for number in range(count)),
        windows=windows,
        late=random.randint(3, 14),
        fresh={name: length for name, length in fresh.items() if name == always or random.random() < 0.6},
        clock=draw(st.sampled_from(["event", "wall"])),
        walls=tuple(accumulate(random.randint(-2, 9) for _ in range(count))),
        plan=random.choice(PLANS) if len(names) == 3 else "mjoin",
        crashes=frozenset(random.sample(range(count), random.randint(0, 2))),
    )


def seconds(lengths: dict[str, int]) -> dict[str, str]:
    return {name: f"{length} seconds" for name, length in lengths.items()}


def to_tables(batch: Batch) -> dict[str, pa.Table]:
    return {
        name: pa.table(
            [[row.time * SECOND for row in rows], [row.key for row in rows], [row.id for row in rows]],
            schema=SCHEMA,
        )
        for name, rows in batch.items()
    }


@contextmanager
def crash_in(number: int, phase: str) -> Iterator[None]:
    def crash(begun: str, batch: int) -> None:
        if (begun, batch) == (phase, number):
            raise ConnectionAbortedError

    stop = listen(crash)
    try:
        with pytest.raises(ConnectionAbortedError):
            yield
    finally:
        stop()


def run(case: FreshCase, allowance: weir.Allowance | None = None) -> list[Judged]:
    names = list(case.windows)
    query: LocalQuery = weir.join(
        streams=dict.fromkeys(names, SCHEMA),
        on=" AND ".join(f"a.k = {name}.k" for name in names[1:]),
        within=seconds(case.windows),
        late=f"{case.late} seconds",
        fresh=seconds(case.fresh),
        clock=case.clock,
        plan=case.plan,
        allowance=allowance,
        select=", ".join(f"{name}.id AS {name}" for name in names),
    ).start()
    wall, given = 0, list[Judged]()
    with use_wall_clock(lambda: wall * SECOND):
        for number, batch in enumerate(case.batches):
            wall, tables = case.walls[number], to_tables(batch)
            if number in case.crashes:
                with crash_in(number, _CRASHES[number % len(_CRASHES)]):
                    query.process(tables)
                wall += 1000
            results = Counter(tuple(row.values()) for row in query.process(tables).to_pylist())
            told = query.lastProgress["weir"]
            oldest = None if told["oldestAge"] is None else told["oldestAge"] // SECOND
            given.append(Judged(results, told["numRowsStale"], oldest))
    return given


def test_fresh_results_are_those_of_the_definition() -> None:
    """Four of five cases have results; by each clock, a tenth of all have stale ones beside fresh ones."""
    seen = Counter[str]()

    def check(case: FreshCase) -> Counter[tuple[int, ...]]:
        wanted = judge(case)
        assert run(case) == wanted
        results = sum((each.results for each in wanted), Counter[tuple[int, ...]]())
        seen["cases"] += 1
        seen[f"mixed by {case.clock}"] += bool(results) and any(each.stale for each in wanted)
        return results

    explore(fresh_cases(), check, examples=100, share=0.8)
    print(dict(seen))
    assert min(seen["mixed by event"], seen["mixed by wall"]) >= seen["cases"] / 10


def test_what_is_shed_makes_no_result_stale() -> None:
    """A result is found in the batch of its last row or never: a starved join is empty, not stale."""

    def check(case: FreshCase) -> Counter[tuple[int, ...]]:
        given = Counter[tuple[int, ...]]()
        for shed, exact in zip(run(case, allowance), judge(case), strict=True):
            assert shed.results <= exact.results and shed.stale <= exact.stale
            given += shed.results
        return given

    tree = PLANS[1]
    allowance = weir.Allowance({hop: 0.3 if "(a b)" in str(hop) else 1.0 for hop in hops(tree)})
    cases = fresh_cases().filter(lambda case: len(case.windows) == 3)
    explore(cases.map(lambda case: replace(case, plan=tree)), check, examples=30, share=0.3)


def test_a_longer_freshness_than_all_data_keeps_every_result() -> None:
    """Rows of the first batch, before which there is no clock, are as fresh as others."""
    batch = [Row(number, 20 + number, 0) for number in range(3)]
    batches = tuple({name: [Row(9 * n + row.id, row.time + 3 * n, 0) for row in batch] for name in "ab"}
                    for n in range(4))  # fmt: skip
    case = FreshCase(batches, {"a": 100, "b": 100}, 0, {"a": 3600, "b": 3600}, "event", (0,) * 4)
    for clock in ("event", "wall"):
        (*_, last) = given = run(replace(case, clock=clock))
        assert sum(each.results.total() for each in given) == 12 * 12
        assert (last.stale, last.oldest) == (0, 6 if clock == "event" else 0)
