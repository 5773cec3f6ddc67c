"""By any wall clock, results are those of the rows that are neither late nor ahead; the rest is counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields, replace
from random import Random

import pyarrow as pa
from hypothesis import strategies as st

from weir.local.query import LocalQuery
from weir.runtime.decide import DecidedPlan, Policy

from .case import Case, Input
from .generate import cuts, relational
from .reference import Results, by_duckdb
from .run import asked, compare, explore, results

BATCHES = 8


@dataclass(frozen=True)
class ClockedCase(Case):
    """A join, the wall clock of each of its batches, and what is asked of it."""

    now: tuple[int, ...] = ()
    idle: int | None = None
    ahead: int | None = None

    def __repr__(self) -> str:
        return f"now {self.now}, idle {self.idle}, ahead {self.ahead}\n{super().__repr__()}"


@dataclass(frozen=True)
class Told:
    """What is told of a batch, but zeros."""

    late: dict[str, int]
    ahead: dict[str, int]
    idle: list[str]
    watermark: int | None


def judge(case: ClockedCase) -> tuple[dict[str, list[int]], list[Told]]:
    """The rows that are left and what is told, row by row as the definitions say."""
    rows: dict[str, list[int]] = {name: [] for name in case.names}
    told: list[Told] = []
    last_arrival, newest = dict.fromkeys(case.names, case.now[0]), dict[str, int]()
    watermark: int | None = None
    for batch, now in enumerate(case.now):
        late, ahead, before = Counter[str](), Counter[str](), dict(newest)
        for one in case.inputs:
            others = [time for name, time in before.items() if name != one.name]
            for row in range(*one.span(batch)):
                time = one.times[row]
                if time is None:
                    continue
                if case.ahead is not None and all(time - clock > case.ahead for clock in (now, *others)):
                    ahead[one.name] += 1
                    continue
                last_arrival[one.name] = now
                newest[one.name] = max(time, newest.get(one.name, time))
                if watermark is not None and time < watermark:
                    late[one.name] += 1
                else:
                    rows[one.name].append(row)
        idle = [n for n in case.names if case.idle is not None and now - last_arrival[n] >= case.idle]
        holding = [one for one in case.inputs if one.name not in idle]
        if holding and all(one.name in newest for one in holding):
            reached = min(newest[one.name] - one.late for one in holding)
            watermark = reached if watermark is None else max(watermark, reached)
        told.append(Told(dict(late), dict(ahead), idle, watermark))
    return rows, told


def run(case: ClockedCase) -> tuple[Results, list[Told]]:
    join, clock = asked(case), iter(case.now)
    policy = Policy(join.query, case.driver_order or "auto", case.idle, case.ahead, clock.__next__)
    query = LocalQuery(policy, DecidedPlan(join.planned.plan))
    found, told = Results(), []
    for batch in range(BATCHES):
        found += results(query.process({one.name: one.batch(batch) for one in case.inputs}))
        assert query.last_report is not None and query.lastProgress is not None
        counts, shown = query.last_report.counts, query.lastProgress["weir"]
        late, ahead = (dict(Counter(dropped) + Counter()) for dropped in (counts.late, counts.ahead))
        told.append(Told(late, ahead, shown["idle"], shown["watermark"]))
    return found, told


def misdate(one: Input, span: int, rng: Random) -> Input:
    """The same stream, with a few rows of a clock that goes wrong."""
    column, field = one.table.schema.get_field_index(one.time), one.table.schema.field(one.time)
    times = [
        time if time is None or rng.random() < 0.9 else time + rng.randint(1, 20) * span for time in one.times
    ]
    return replace(one, table=one.table.set_column(column, field, pa.array(times, field.type)))


@st.composite
def clocked(draw: st.DrawFn) -> ClockedCase:
    case, rng = draw(relational()), Random(draw(st.integers(0, 2**32)))
    times = [time for one in case.inputs for time in one.times if time is not None] or [0]
    first, last = min(times), max(times)
    step = max(1, (last - first) // BATCHES)
    inputs = [replace(one, cuts=cuts(len(one.table), BATCHES, rng)) for one in case.inputs]
    known = {field.name: getattr(case, field.name) for field in fields(Case)}
    # The rows lie in the future, come as they happen, or are history.
    now = rng.choice((first - 50 * step, first, last + 50 * step))
    return ClockedCase(
        **{**known, "inputs": tuple(misdate(one, step, rng) for one in inputs)},
        now=tuple(now := now + step * rng.choice((0, 1, 1, 4)) for _ in range(BATCHES)),
        idle=draw(st.none() | st.sampled_from((1, 2 * step, 5 * step))),
        ahead=draw(st.none() | st.sampled_from((1, 2 * step, 60 * step))),
    )


def test_rows_are_judged_by_clocks_and_the_rest_is_joined() -> None:
    seen = Counter[str]()

    def check(case: Case) -> Results:
        assert isinstance(case, ClockedCase)
        rows, expected = judge(case)
        wanted = by_duckdb(case, rows)
        found, told = run(case)
        compare(found, wanted)
        assert told == expected
        for each in told:
            seen.update(late=bool(each.late), ahead=bool(each.ahead), idle=bool(each.idle))
        return wanted

    explore(clocked(), check, examples=150, share=0.3)
    assert all(seen[what] > 50 for what in ("late", "ahead", "idle")), seen
