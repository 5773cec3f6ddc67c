"""What the slices of each node hold: the columns still needed above it, keys, times and places in line.

A stored column is named after what it is: `a.price` a payload, `a@time` an event time in microseconds,
`k@key` the code of attribute class k, `a@place` and `a@number` the two numbers of a row window (see
`weir.kernel.row_window`), `a@arrival` the clock of the batch that brought the row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from weir.errors import QueryError
from weir.expr.nodes import Column, Expr, columns_of, streams_of
from weir.kernel.keys import always_exact
from weir.plan.tree import Join, JTree, Leaf, is_composed, join
from weir.query.model import Query
from weir.query.predicate import AttributeClass, Equality
from weir.query.windows import RowWindow, TimeWindow

# A probe's range over a state is cut into about this many basic windows: enough that few dead rows are kept
# and few rows outside the range are touched, few enough that a probe visits few slices.
BASIC_WINDOWS = 16
# Where windows are harvested: a range of ages seldom ends between two slices, and a slice that is indexed by
# value is searched as a whole.
SLICES_IN_BASIC = 4
# Every slice that a probe visits costs something, however small it is.
MOST_SLICES = 64
_NO_TIME_LIMIT = 1_000_000
# What the state of a leaf's line is called, after the leaf.
LINE = "@line"


@dataclass(frozen=True, slots=True)
class RowWindowColumns:
    """A row window over one input: only its last `rows` rows are joinable."""

    name: str
    rows: int

    @property
    def number(self) -> str:
        """The stored column with each row's number in its own stream."""
        return f"{self.name}@number"


# A row lives while, for some stream still to come, every one of its times is near enough: each inner tuple
# lists (time, reach) for one such stream. None: time never ends it.
Deadlines = tuple[tuple[tuple[str, int], ...], ...] | None


@dataclass(frozen=True, slots=True)
class StateSchema:
    """The stored columns of one node's slices, how they are cut, and how long they live."""

    node: str
    streams: frozenset[str]
    sources: Mapping[Column, str]
    keys: Mapping[str, AttributeClass]
    times: tuple[str, ...]
    lead: str
    place: str | None
    lines: tuple[RowWindowColumns, ...]
    arrivals: tuple[str, ...]
    deadlines: Deadlines
    cut_by: str
    cut_every: int

    @property
    def numbers(self) -> tuple[str, ...]:
        """The stored columns that are int64 without nulls."""
        places = () if self.place is None else (self.place,)
        return (*self.times, *self.keys, *places, *(line.number for line in self.lines), *self.arrivals)

    @property
    def payload(self) -> tuple[Column, ...]:
        """The columns that are stored as they are; keys and times are not kept twice."""
        return tuple(column for column, name in self.sources.items() if name == str(column))

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of a slice."""
        numbers = [pa.field(name, pa.int64(), nullable=False) for name in self.numbers]
        return pa.schema(numbers + [pa.field(str(column), column.type) for column in self.payload])


def time_name(name: str) -> str:
    """The stored event time of a stream, or the time of a node's output."""
    return f"{name}@time"


def place_name(name: str) -> str:
    """The stored place among all rows."""
    return f"{name}@place"


def arrival_name(name: str) -> str:
    """The stored arrival of a stream's row."""
    return f"{name}@arrival"


def member(attribute_class: AttributeClass, streams: frozenset[str]) -> Expr | None:
    """The first member of a class that can be computed from these streams alone."""
    return next((e for e in attribute_class.members if streams_of(e) <= streams), None)


def line_layout(leaf: StateSchema) -> StateSchema | None:
    """What is kept of a leaf with a row window while a batch runs: every row's place and number.

    Rows that a filter drops never join, but they stand in line all the same.
    """
    if not leaf.lines:
        return None
    return replace(leaf, node=leaf.node + LINE, sources={}, keys={}, arrivals=())


def layouts(query: Query, plan: Join, beside: Sequence[Join] = ()) -> dict[str, StateSchema]:
    """The layout of every state of a plan: each leaf, each join below the root, and joins `beside` it."""
    composed = is_composed(plan)
    _check_composed(query, composed)
    windows = (*query.windows, *(node.window for node in plan.inner()))
    in_line = any(isinstance(window, RowWindow) for window in windows)
    return {str(node): _layout(query, node, composed, in_line) for node in (*_states(plan), *beside)}


def stored_schema(query: Query, streams: frozenset[str]) -> pa.Schema:
    """What a state over some streams holds, however they are joined (`joint` windows)."""
    names = [name for name in query.names if name in streams]
    node = Leaf(names[0]) if len(names) == 1 else join(*names)
    in_line = any(isinstance(window, RowWindow) for window in query.windows)
    return _layout(query, node, False, in_line).schema


def _states(node: Join) -> Iterator[JTree]:
    for child in node.inputs:
        if isinstance(child, Join):
            yield from _states(child)
        yield child


def _check_composed(query: Query, composed: bool) -> None:
    for name, window in zip(query.names, query.windows, strict=True):
        if composed and window is None:
            raise QueryError(f"stream '{name}' needs a window: with composed windows every input has its own")


def _layout(query: Query, node: JTree, composed: bool, in_line: bool) -> StateSchema:
    streams = frozenset(node.streams)
    keys = _open_keys(query, streams)
    needed = _needed_columns(query, streams, keys)
    times, lead = _times(query, node, composed, needed)
    lines = _lines(query, node, composed)
    deadlines = _deadlines(query, node, composed)
    cut_by, cut_every = _cut(query, node, composed, lead, lines, deadlines)
    return StateSchema(
        node=str(node),
        streams=streams,
        sources={column: _source(query, column, keys, times, streams) for column in needed},
        keys=keys,
        times=times,
        lead=lead,
        place=place_name(str(node)) if in_line else None,
        lines=lines,
        arrivals=tuple(
            arrival_name(s)
            for s, fresh in zip(query.names, query.fresh, strict=True)
            if fresh is not None and s in streams
        ),
        deadlines=deadlines,
        cut_by=cut_by,
        cut_every=cut_every,
    )


def _open_keys(query: Query, streams: frozenset[str]) -> dict[str, AttributeClass]:
    """The classes that the node has a member of and that somebody above it may still be matched with."""
    return {
        f"{c.name}@key": c
        for c in query.predicate.classes
        if member(c, streams) is not None and any(not streams_of(e) <= streams for e in c.members)
    }


def _needed_columns(
    query: Query, streams: frozenset[str], keys: Mapping[str, AttributeClass]
) -> tuple[Column, ...]:
    exprs = [output.expr for output in query.select]
    for conjunct in query.predicate.conjuncts:
        if conjunct.streams & streams and not conjunct.streams <= streams and not _by_key(conjunct, keys):
            exprs.append(conjunct.expr)
    for c in keys.values():
        own = member(c, streams)
        if own is not None and not always_exact(c.domain, c.null_safe):
            exprs.append(own)
    columns = (column for expr in exprs for column in columns_of(expr))
    return tuple(dict.fromkeys(column for column in columns if column.stream in streams))


def _by_key(conjunct: object, keys: Mapping[str, AttributeClass]) -> bool:
    """True if the codes of a class decide a conjunct, whatever the order of the hops."""
    if not isinstance(conjunct, Equality):
        return False
    single = all(len(streams_of(side)) == 1 for side in (conjunct.left, conjunct.right))
    return single and any(
        {conjunct.left, conjunct.right} <= set(c.members) and always_exact(c.domain, c.null_safe)
        for c in keys.values()
    )


def _source(
    query: Query,
    column: Column,
    keys: Mapping[str, AttributeClass],
    times: tuple[str, ...],
    streams: frozenset[str],
) -> str:
    if column.name == query.stream(column.stream).time and time_name(column.stream) in times:
        return time_name(column.stream)
    for name, c in keys.items():
        if not c.null_safe and pa.types.is_int64(c.domain) and member(c, streams) == column:
            return name
    return str(column)


def _times(
    query: Query, node: JTree, composed: bool, needed: tuple[Column, ...]
) -> tuple[tuple[str, ...], str]:
    if isinstance(node, Leaf):
        return (time_name(node.stream),), time_name(node.stream)
    if not composed:
        return tuple(time_name(s) for s in node.streams), time_name(node.streams[0])
    shown = {c.stream for c in needed if c.name == query.stream(c.stream).time}
    bounded = {s for b in query.predicate.bounds for s in b.streams}
    lead = time_name(str(node))
    return (lead, *(time_name(s) for s in node.streams if s in shown | bounded)), lead


def _lines(query: Query, node: JTree, composed: bool) -> tuple[RowWindowColumns, ...]:
    if composed and isinstance(node, Join):
        return (RowWindowColumns(str(node), node.window.rows),) if isinstance(node.window, RowWindow) else ()
    rows = {n: w.rows for n, w in zip(query.names, query.windows, strict=True) if isinstance(w, RowWindow)}
    return tuple(RowWindowColumns(s, rows[s]) for s in node.streams if s in rows)


def window_of(query: Query, node: JTree) -> TimeWindow | RowWindow | None:
    """The window over one input of a join."""
    return node.window if isinstance(node, Join) else query.windows[query.names.index(node.stream)]


def _deadlines(query: Query, node: JTree, composed: bool) -> Deadlines:
    if composed:
        window = window_of(query, node)
        return (
            (((time_name(str(node)), window.microseconds - 1),),) if isinstance(window, TimeWindow) else None
        )
    upper, names = query.bounds.upper, query.names
    own = [names.index(s) for s in node.streams]
    ends = []
    for j in set(range(len(names))) - set(own):
        reach = [(time_name(names[i]), upper[i][j]) for i in own]
        finite = tuple((name, bound) for name, bound in reach if bound is not None)
        if not finite:
            return None
        ends.append(finite)
    return tuple(ends)


def _cut(
    query: Query,
    node: JTree,
    composed: bool,
    lead: str,
    lines: tuple[RowWindowColumns, ...],
    deadlines: Deadlines,
) -> tuple[str, int]:
    """By which stored number, and how finely, rows are cut into slices."""
    if deadlines is None and lines:
        return lines[0].number, max(1, lines[0].rows // (BASIC_WINDOWS // 2))
    span = _probe_span(query, node, composed)
    if query.basic is None:
        return lead, max(1, span // BASIC_WINDOWS)
    return lead, max(1, query.basic // SLICES_IN_BASIC, span // MOST_SLICES)


def _probe_span(query: Query, node: JTree, composed: bool) -> int:
    """How much time the widest probe into a node covers, before and after the row that probes."""
    window = window_of(query, node)
    if composed:
        return 2 * window.microseconds if isinstance(window, TimeWindow) else _NO_TIME_LIMIT
    upper, own = query.bounds.upper, query.names.index(node.streams[0])
    spans = []
    for j in range(len(query.names)):
        back, ahead = upper[own][j], upper[j][own]
        if j != own and back is not None:
            spans.append(back + (ahead if ahead is not None else abs(back)))
    return max(spans, default=_NO_TIME_LIMIT)
