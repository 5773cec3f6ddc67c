"""Composed windows: the plan evaluated operator by operator, and random plans of that kind.

A join's output has the latest time and the latest place of its inputs. A combination is an output if its
conditions hold and every input is inside the window of every other: by time, or in line.

A plan's leaves apply every condition on one stream, also the implied one that the key of a plain equality is
not null, wherever in the plan that equality stands. A row that fails still counts in its own stream's row
window, but makes no output, so it counts in no window above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from random import Random

import pyarrow as pa
from hypothesis import strategies as st

from weir.plan.tree import Join, JTree, Leaf
from weir.query.windows import RowWindow, TimeWindow

from . import conditions
from .case import Case
from .conditions import Condition
from .generate import NAMES, RANGE, UNITS, extras, inputs, sizes, tied, tree
from .reference import Admitted, Results, leave, place_all, project

MOST_ROWS = {3: 13, 4: 8}
UNIQUE = "u"


@dataclass(frozen=True)
class Part:
    """One output of an operator: the rows in it, by stream, its time and its place."""

    rows: tuple[tuple[str, int], ...]
    time: int
    place: int


def by_operators(case: Case, admitted: Admitted) -> Results:
    """The results of a composed plan."""
    assert isinstance(case.plan, Join)
    found = [dict(part.rows) for part in outputs(case, admitted, case.plan)]
    return project(case, [tuple(rows[name] for name in case.names) for rows in found])


def outputs(case: Case, admitted: Admitted, node: JTree) -> list[Part]:
    """All outputs of a node over the whole run."""
    if isinstance(node, Leaf):
        one = case.inputs[case.names.index(node.stream)]
        places = place_all(case, admitted)[one.name]
        return [Part(((one.name, row),), one.times[row], places[row]) for _, row in admitted.rows[one.name]]
    lists = [outputs(case, admitted, child) for child in node.inputs]
    lines = [_line(window_of(case, child), parts) for child, parts in zip(node.inputs, lists, strict=True)]
    spans = [_span(window_of(case, child)) for child in node.inputs]
    data = {one.name: one.table.to_pylist() for one in case.inputs}
    checks = [c.check for c in case.conditions if c.streams <= set(node.streams)]
    keys = [key for c in case.conditions if c.plain for key in c.columns if key[0] in node.streams]
    found = []
    for parts in product(*lists):
        time, place = max(part.time for part in parts), max(part.place for part in parts)
        timely = all(time - part.time < span for part, span in zip(parts, spans, strict=True))
        if timely and all(place < line[part] for part, line in zip(parts, lines, strict=True)):
            rows = tuple(row for part in parts for row in part.rows)
            result = {name: data[name][row] for name, row in rows}
            known = all(result[stream][column] is not None for stream, column in keys)
            if known and all(check(result) for check in checks):
                found.append(Part(rows, time, place))
    return found


def window_of(case: Case, node: JTree) -> int | RowWindow | None:
    if isinstance(node, Leaf):
        return case.inputs[case.names.index(node.stream)].window
    return node.window.microseconds if isinstance(node.window, TimeWindow) else node.window


def _span(window: int | RowWindow | None) -> float:
    return window if isinstance(window, int) else float("inf")


def _line(window: int | RowWindow | None, parts: list[Part]) -> dict[Part, float]:
    if not isinstance(window, RowWindow):
        return dict.fromkeys(parts, float("inf"))
    places = {part: part.place for part in parts}
    assert len(set(places.values())) == len(parts), "ties would be broken by a hash"
    return leave(places, window.rows)


@st.composite
def composed(draw: st.DrawFn) -> Case:
    """Plans with a window on every inner join.

    Where a window counts an inner join's rows, the streams below it meet in keys that are unique, so that a
    row completes at most one output and nothing hangs on the order of equal places.
    """
    names = NAMES[: draw(st.sampled_from((3, 3, 4)))]
    rng = Random(draw(st.integers(0, 2**32)))
    unit = rng.choice(UNITS)
    plan, counted = _windowed(_deep(names, rng), unit, rng)
    found = _conditions(names, counted, rng)
    windows = [_window(unit, rng) for _ in names]
    rows = sizes(draw, len(names), MOST_ROWS[len(names)])
    streams = inputs(draw, names, found, rows, windows, unit, rng, distinct=True, twice=False)
    streams = tuple(
        replace(
            one,
            table=one.table.append_column(
                UNIQUE, pa.array(rng.sample(range(len(one.table)), len(one.table)))
            ),
        )
        for one in streams
    )
    return Case(streams, tuple(found), plan, tuple(rng.sample(names, len(names))), cross=True)


def _deep(names: Sequence[str], rng: Random) -> Join:
    while True:
        plan = tree(names, rng)
        if any(isinstance(child, Join) for child in plan.inputs):
            return plan


def _window(unit: int, rng: Random) -> int | RowWindow:
    return RowWindow(rng.randint(2, 9)) if rng.random() < 0.4 else rng.randint(RANGE // 3, RANGE) * unit


def _windowed(node: Join, unit: int, rng: Random, root: bool = True) -> tuple[Join, list[tuple[str, ...]]]:
    """The plan with windows below the root, and the streams below each window by rows."""
    counted: list[tuple[str, ...]] = []
    children: list[JTree] = []
    for child in node.inputs:
        if isinstance(child, Join):
            child, below = _windowed(child, unit, rng, root=False)
            counted += below
        children.append(child)
    window = None if root else _window(unit, rng)
    if isinstance(window, RowWindow):
        counted.append(node.streams)
    own = TimeWindow(window) if isinstance(window, int) else window
    return Join(tuple(children), node.orders, own), counted


def _conditions(names: Sequence[str], counted: list[tuple[str, ...]], rng: Random) -> list[Condition]:
    """Unique keys below every window by rows, and one other condition; else any conditions."""
    unique = {_unique(a, b).text: _unique(a, b) for group in counted for a, b in pairwise(group)}
    others = tied(names, conditions.IN_PYTHON, rng)
    if not unique:
        return [*others, *extras(names, conditions.IN_PYTHON, rng, of_three=False)]
    filters = [conditions.filtered(rng.choice(names), rng)] if rng.random() < 0.3 else []
    return [*unique.values(), rng.choice(others), *filters]


def _unique(a: str, b: str) -> Condition:
    return Condition(f"{a}.{UNIQUE} = {b}.{UNIQUE}", lambda r: r[a][UNIQUE] == r[b][UNIQUE])
