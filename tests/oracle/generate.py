"""Random joins: Hypothesis draws what decides their size, so that it shrinks; values come from a seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random

import pyarrow as pa
from hypothesis import strategies as st

from weir.plan.tree import Join, Leaf
from weir.query.windows import RowWindow

from . import columns, conditions
from .case import Case, Input
from .conditions import Condition

NAMES = ("a", "b", "c", "d", "e")
UNITS = (1, 1_000_000)  # microseconds, so that the windows' edges are hit, and seconds
STARTS = (0, -50, 1_700_000_000_000_000)
RANGE = 60  # units of time that the rows of a stream span
GRAINS = (1, 6)  # units between two times; coarse ones meet windows' edges and watermarks exactly
MOST_ROWS = {2: 40, 3: 40, 4: 22, 5: 13}
MOST_ROWS_IN_PRODUCT = {2: 40, 3: 14, 4: 7}

Pair = Callable[[str, str, Random], Condition]


def sizes(draw: st.DrawFn, streams: int, most: int) -> list[int]:
    """Rows per stream; most streams have enough to find partners."""
    return [draw(st.one_of(st.integers(most // 2, most), st.integers(0, most))) for _ in range(streams)]


def tied(names: Sequence[str], kinds: Sequence[Pair], rng: Random) -> list[Condition]:
    """Conditions that connect all streams: a random tree of pairs, or one class of equal columns."""
    links = [(rng.choice(names[:i]), names[i]) for i in range(1, len(names))]
    if rng.random() < 0.25:
        column = (rng.choice(("i", "s", "z", "d")),)
        return [conditions.equal(a, b, rng, column) for a, b in links]
    return [rng.choice(kinds)(*rng.sample(link, 2), rng) for link in links]


def extras(
    names: Sequence[str], kinds: Sequence[Pair], rng: Random, of_three: bool = True
) -> list[Condition]:
    """A few more conditions: on one stream, on two, on three."""
    found = []
    if rng.random() < 0.3:
        found.append(conditions.filtered(rng.choice(names), rng))
    if rng.random() < 0.2:
        found.append(rng.choice(kinds)(*rng.sample(names, 2), rng))
    if of_three and len(names) > 2 and rng.random() < 0.4:
        found.append(conditions.of_three(*rng.sample(names, 3), rng))
    return found


def table(rows: int, times: list[int | None], wanted: Sequence[str], time: str, rng: Random) -> pa.Table:
    """A stream's rows in order of arrival; now and then one comes twice."""
    spread, nulls = rng.choice((2, 3, 4, 7)), rng.choice((0, 0.05, 0.15))
    fields = {time: pa.array(times, pa.timestamp("us")), "id": pa.array(range(rows), pa.int64())}
    for name in wanted:
        fields[name] = columns.column(name, rng.choice(columns.KINDS[name][0]), rows, spread, nulls, rng)
    order = rng.sample(sorted(fields), len(fields))
    return pa.table({name: fields[name] for name in order})


def arrivals(rows: int, start: int, unit: int, grain: int, distinct: bool, rng: Random) -> list[int | None]:
    """Event times in order of arrival: in order, a little out of order, or anyhow; a few are null."""
    span = range(max(RANGE, rows))
    times = rng.sample(span, rows) if distinct else rng.choices(span[::grain], k=rows)
    disorder = rng.choice((0, RANGE // 10, RANGE // 4, RANGE))
    times.sort(key=lambda time: time + rng.random() * disorder)
    nulls = rng.choice((0, 0, 0.1))
    return [None if rng.random() < nulls else start + time * unit for time in times]


def with_duplicates(rows: pa.Table, rng: Random) -> pa.Table:
    """Some rows again, whole, at once or later."""
    picks = list(range(len(rows)))
    for row in range(len(rows)):
        if rng.random() < 0.1:
            picks.insert(rng.randint(picks.index(row), len(picks)), row)
    return rows.take(pa.array(picks[: len(rows)], pa.int64()))


def cuts(rows: int, batches: int, rng: Random) -> tuple[int, ...]:
    """The ends of a stream's batches; some batches are empty."""
    if rng.random() < 0.2:  # everything in one batch, before or after the others
        first = rng.randrange(batches)
        return (0,) * first + (rows,) * (batches - first)
    return (*sorted(rng.choices(range(rows + 1), k=batches - 1)), rows)


def tree(names: Sequence[str], rng: Random) -> Join:
    """A random join tree with random probing orders: mjoin, linear, bushy or between."""
    shuffled = rng.sample(names, len(names))
    parts = rng.randint(2, len(names))
    ends = [0, *sorted(rng.sample(range(1, len(names)), parts - 1)), len(names)]
    groups = [shuffled[a:b] for a, b in pairwise(ends)]
    inputs = tuple(Leaf(group[0]) if len(group) == 1 else tree(group, rng) for group in groups)
    return Join(inputs, tuple(orders(parts, rng)))


def orders(inputs: int, rng: Random) -> list[tuple[int, ...]]:
    everyone = range(inputs)
    return [tuple(rng.sample([i for i in everyone if i != driver], inputs - 1)) for driver in everyone]


def plan(names: Sequence[str], rng: Random) -> Join | str:
    flat = Join(tuple(map(Leaf, names)), tuple(orders(len(names), rng)))
    return rng.choice(("mjoin", "bjtree", flat, tree(names, rng), tree(names, rng)))


def wanted_columns(name: str, found: Sequence[Condition], rng: Random) -> list[str]:
    """The columns that conditions read, and one more."""
    read = {column for c in found for stream, column in c.columns if stream == name}
    known = [kind for kind in columns.KINDS if kind in read]
    return [*known, *rng.sample([kind for kind in ("i", "s", "flag", "v") if kind not in read], 1)]


def inputs(
    draw: st.DrawFn,
    names: Sequence[str],
    found: Sequence[Condition],
    rows: Sequence[int],
    windows: Sequence[int | RowWindow | None],
    unit: int,
    rng: Random,
    distinct: bool = False,
    times: Sequence[str] | None = None,
    twice: bool = True,
) -> tuple[Input, ...]:
    """The streams; the seed of each is its own, so that fewer rows of one leave the others alone.

    Times are `distinct` within a stream, but for the rows that come `twice`.
    """
    batches, start = draw(st.sampled_from((1, 2, 3, 4, 5, 6))), rng.choice(STARTS)
    grain = rng.choice(GRAINS)
    made = []
    for i, (name, count) in enumerate(zip(names, rows, strict=True)):
        own = Random(rng.random())
        time = times[i] if times else own.choice(("ts", "at"))
        arrived = arrivals(count, start, unit, grain, distinct, own)
        data = table(count, arrived, wanted_columns(name, found, own), time, own)
        data = with_duplicates(data, own) if twice else data
        late = own.choice((0, RANGE // 10, RANGE // 10, RANGE)) * unit
        made.append(Input(name, time, data, cuts(count, batches, own), windows[i], late, own.random() < 0.5))
    return tuple(made)


def window(unit: int, rng: Random) -> int:
    """A length that ends at a time of the coarse grain, just after it, or anywhere."""
    length = rng.randint(RANGE // 4, RANGE)
    return rng.choice((length, length // GRAINS[-1] * GRAINS[-1])) * unit + rng.choice((0, 1))


@st.composite
def relational(draw: st.DrawFn) -> Case:
    """Time windows, and any condition that SQL can say, or none; sometimes a stream with itself."""
    names = NAMES[: draw(st.sampled_from((2, 2, 3, 3, 3, 4, 4, 5)))]
    rng = Random(draw(st.integers(0, 2**32)))
    cross = rng.random() < 0.1
    found = [] if cross else tied(names, conditions.IN_SQL, rng)
    found += extras(names, conditions.IN_SQL, rng)
    unit = rng.choice(UNITS)
    rows = sizes(draw, len(names), MOST_ROWS[len(names)] // (2 if cross else 1))
    windows = [window(unit, rng) for _ in names]
    case = Case(
        inputs(draw, names, found, rows, windows, unit, rng),
        tuple(found),
        plan(names, rng),
        tuple(rng.sample(names, len(names))),
        cross,
        rng.random() < 0.4,
    )
    return with_itself(case, rng) if rng.random() < 0.15 else case


def with_itself(case: Case, rng: Random) -> Case:
    """The first stream's rows under a second name; only if both have the columns that are asked for."""
    first, second, *others = case.inputs
    needed = {column for c in case.conditions for stream, column in c.columns if stream == second.name}
    if not needed <= set(first.table.column_names):
        return case
    copied = replace(second, time=first.time, table=first.table, cuts=first.cuts, late=first.late)
    return replace(case, inputs=(first, copied, *others))


@st.composite
def beyond_sql(draw: st.DrawFn) -> Case:
    """Time windows, with similar vectors and users' functions among the conditions."""
    names = NAMES[: draw(st.sampled_from((2, 2, 3, 3, 4)))]
    rng = Random(draw(st.integers(0, 2**32)))
    found = tied(names, (*conditions.BEYOND_SQL, conditions.equal), rng)
    found.append(rng.choice(conditions.BEYOND_SQL)(*rng.sample(names, 2), rng))
    found += extras(names, conditions.IN_PYTHON, rng, of_three=False)
    unit = rng.choice(UNITS)
    rows = sizes(draw, len(names), MOST_ROWS_IN_PRODUCT[len(names)])
    windows = [rng.randint(RANGE // 3, RANGE) * unit for _ in names]
    streams = inputs(draw, names, found, rows, windows, unit, rng)
    return Case(streams, tuple(found), plan(names, rng), tuple(rng.sample(names, len(names))))


@st.composite
def row_windows(draw: st.DrawFn) -> Case:
    """At least one window by rows; the others by rows or by time. Only whole rows that come twice tie."""
    return _row_windows(draw, distinct=True)


@st.composite
def ties(draw: st.DrawFn) -> Case:
    """The same where many rows of a stream have the same time and their content decides who stands first."""
    return _row_windows(draw, distinct=False)


def _row_windows(draw: st.DrawFn, distinct: bool) -> Case:
    names = NAMES[: draw(st.sampled_from((2, 2, 3, 3, 4)))]
    rng = Random(draw(st.integers(0, 2**32)))
    found = tied(names, conditions.IN_PYTHON, rng) + extras(names, conditions.IN_PYTHON, rng, of_three=False)
    unit = rng.choice(UNITS)
    rows = sizes(draw, len(names), MOST_ROWS_IN_PRODUCT[len(names)])
    lines = [rng.random() < 0.6 for _ in names]
    lines[rng.randrange(len(names))] = True
    windows = [
        RowWindow(rng.randint(1, 8)) if line else rng.randint(RANGE // 2, RANGE) * unit for line in lines
    ]
    streams = inputs(draw, names, found, rows, windows, unit, rng, distinct)
    return Case(streams, tuple(found), plan(names, rng), tuple(rng.sample(names, len(names))))


def stirred(case: Case, rng: Random) -> Case:
    """The same rows in the same batches, in another order within each."""
    made = []
    for one in case.inputs:
        spans = [range(*one.span(batch)) for batch in range(case.batches)]
        order = [row for span in spans for row in rng.sample(span, len(span))]
        made.append(replace(one, table=one.table.take(pa.array(order, pa.int64()))))
    return replace(case, inputs=tuple(made))
