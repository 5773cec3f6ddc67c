"""State schemas: which columns the slices of each node store, how slices are cut, and how long rows live.

A state stores the columns that joins above it and the result still need, and these int64 columns:

    a@time         event time of stream a, in microseconds; `(a b)@time` is the time of a join's output
    k@key          code of attribute class k (see `weir.kernel.keys`)
    a@sequence     sequence number among the rows of all streams   } row windows only
    a@row_number   row number in its own stream                    } (see `weir.kernel.row_window`)
    a@arrival      number of the batch that brought the row (its row number under a row window), for freshness

Slices are indexed by their *lead* time: that of a leaf's stream, of a join's first stream or, in a composed
plan, of the join's output. They are cut by it too, unless only a row window ends their life.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from weir.errors import QueryError
from weir.expr.nodes import Column, Expr, columns_of, streams_of
from weir.kernel.keys import is_always_exact
from weir.plan.tree import Join, JTree, Leaf, is_composed, join, nodes
from weir.query.model import Query
from weir.query.predicate import AttributeClass, Conjunct, Equality
from weir.query.windows import RowWindow, TimeWindow

# A probe's range over a state covers about this many cells of time: enough that few dead rows are kept
# and few rows outside the range are touched, few enough that a probe visits few slices.
CELLS_PER_PROBE = 16
_NO_TIME_LIMIT = 1_000_000
# Suffix of the state that holds the order of all rows of a leaf with a row window.
ROW_ORDER = "@row_order"


@dataclass(frozen=True, slots=True)
class RowWindowColumns:
    """A row window over one input: only its last `rows` rows are joinable."""

    name: str
    rows: int

    @property
    def row_number(self) -> str:
        """The stored column with each row's number in its own stream."""
        return f"{self.name}@row_number"


# A row lives while, for some stream still to come, each of its times is near enough: `Limits` lists the
# (time, retention) pairs for one such stream. None: time sets no end.
Limits = tuple[tuple[str, int], ...]
Deadlines = tuple[Limits, ...] | None


@dataclass(frozen=True)
class StateSchema:
    """The stored columns of one node's slices, how they are cut, and how long they live.

    `sources` maps each payload column to the stored column with its values; keys and times are not stored
    twice. Slices end at edges of a grid, where `cut_by // cut_every` changes.
    """

    node: str
    streams: frozenset[str]
    sources: Mapping[Column, str]
    keys: Mapping[str, AttributeClass]
    times: tuple[str, ...]
    lead: str
    sequence: str | None
    row_windows: tuple[RowWindowColumns, ...]
    arrivals: tuple[str, ...]
    deadlines: Deadlines
    cut_by: str
    cut_every: int

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """The stored int64 columns, which have no nulls."""
        sequence = () if self.sequence is None else (self.sequence,)
        row_numbers = (window.row_number for window in self.row_windows)
        return (*self.times, *self.keys, *sequence, *row_numbers, *self.arrivals)

    @property
    def payload(self) -> tuple[Column, ...]:
        """The columns that are stored as they are."""
        return tuple(column for column, name in self.sources.items() if name == payload_name(column))

    @property
    def arrow_schema(self) -> pa.Schema:
        """The Arrow schema of a slice."""
        numbers = [pa.field(name, pa.int64(), nullable=False) for name in self.numbers]
        return pa.schema(numbers + [pa.field(payload_name(column), column.type) for column in self.payload])

    def columns_of(self, stream: str) -> tuple[str, ...]:
        """The stored columns that a row of one stream determines."""
        keys = (name for name, c in self.keys.items() if find_member(c, frozenset({stream})) is not None)
        times = (name for name in self.times if name == time_name(stream))
        return (*times, *keys, *(payload_name(column) for column in self.payload if column.stream == stream))

    def end_of(self, spans: Mapping[str, tuple[int, int]]) -> int | None:
        """Return the deadline of a leaf's slice: the first watermark at which none of its rows can join."""
        if self.deadlines is None:
            return None
        return 1 + max(min(spans[time][1] + kept for time, kept in limits) for limits in self.deadlines)

    def record_batch(self, columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
        """Put the stored columns, given by name, into one record batch."""
        return pa.RecordBatch.from_arrays(
            [columns[name] for name in self.arrow_schema.names], schema=self.arrow_schema
        )


def time_name(name: str) -> str:
    """Return the stored event time of a stream, or the time of a node's output."""
    return f"{name}@time"


def key_name(attribute_class: AttributeClass) -> str:
    """Return the stored code of an attribute class."""
    return f"{attribute_class.name}@key"


def arrival_name(name: str) -> str:
    """Return the stored arrival of a stream's row."""
    return f"{name}@arrival"


def payload_name(column: Column) -> str:
    """Return the stored column of a payload column; none of the numbers above has a name like it.

    >>> payload_name(Column("a", "price", pa.int64())), payload_name(Column("a", "k@key", pa.int64()))
    ('a.price', 'a.k@key@column')
    """
    return f"{column}@column" if "@" in column.name else str(column)


def find_member(attribute_class: AttributeClass, streams: frozenset[str]) -> Expr | None:
    """Return the first member of a class that can be computed from these streams alone."""
    return next((e for e in attribute_class.members if streams_of(e) <= streams), None)


def get_member(attribute_class: AttributeClass, streams: frozenset[str]) -> Expr:
    """Return that member of a class that has one."""
    return next(e for e in attribute_class.members if streams_of(e) <= streams)


def row_order_schema(leaf: StateSchema) -> StateSchema | None:
    """Return the schema of the order of a leaf's rows, kept while a batch runs; None without a row window.

    It covers all rows: those that a filter drops never join, but they count in a row window.
    """
    if not leaf.row_windows:
        return None
    return replace(leaf, node=leaf.node + ROW_ORDER, sources={}, keys={}, arrivals=())


def derive_schemas(query: Query, plan: Join, migration_joins: Sequence[Join] = ()) -> dict[str, StateSchema]:
    """Derive the schema of each state: leaves, joins below the root, and joins in `migration_joins`."""
    composed = is_composed(plan)
    for name, window in zip(query.names, query.windows, strict=True):
        if composed and window is None:
            raise QueryError(f"stream '{name}' needs a window: with composed windows every input has its own")
    windows = (*query.windows, *(node.window for node in plan.inner()))
    counts_rows = any(isinstance(window, RowWindow) for window in windows)
    states = (*nodes(plan)[:-1], *migration_joins)
    return {str(node): _derive(query, node, composed, counts_rows) for node in states}


def stored_schema(query: Query, streams: frozenset[str]) -> pa.Schema:
    """Return the Arrow schema of a state over some streams, however they are joined (joint windows)."""
    names = [name for name in query.names if name in streams]
    node = Leaf(names[0]) if len(names) == 1 else join(*names)
    counts_rows = any(isinstance(window, RowWindow) for window in query.windows)
    return _derive(query, node, False, counts_rows).arrow_schema


def _derive(query: Query, node: JTree, composed: bool, counts_rows: bool) -> StateSchema:
    streams = frozenset(node.streams)
    keys = _open_keys(query, streams)
    columns = _needed_columns(query, streams, keys)
    times, lead = _times(query, node, composed, columns)
    row_windows = _row_windows(query, node, composed)
    deadlines = _deadlines(query, node, composed)
    cut_by, cut_every = _cut(query, node, composed, lead, row_windows, deadlines)
    return StateSchema(
        node=str(node),
        streams=streams,
        sources={column: _source(query, column, keys, times, streams) for column in columns},
        keys=keys,
        times=times,
        lead=lead,
        sequence=f"{node}@sequence" if counts_rows else None,
        row_windows=row_windows,
        arrivals=tuple(
            arrival_name(name)
            for name, fresh in zip(query.names, query.fresh, strict=True)
            if fresh is not None and name in streams
        ),
        deadlines=deadlines,
        cut_by=cut_by,
        cut_every=cut_every,
    )


def _open_keys(query: Query, streams: frozenset[str]) -> dict[str, AttributeClass]:
    """Return the classes with a member in the node and one that a join above it may still match."""
    return {
        key_name(c): c
        for c in query.predicate.classes
        if find_member(c, streams) is not None and any(not streams_of(e) <= streams for e in c.members)
    }


def _needed_columns(
    query: Query, streams: frozenset[str], keys: Mapping[str, AttributeClass]
) -> tuple[Column, ...]:
    """Return the columns that the result, open conjuncts or the verification of hashed keys read."""
    exprs = [output.expr for output in query.select]
    exact = [c for c in keys.values() if is_always_exact(c.domain, c.null_safe)]
    for conjunct in query.predicate.conjuncts:
        is_open = conjunct.streams & streams and not conjunct.streams <= streams
        if is_open and not is_decided_by_key(conjunct, exact):
            exprs.append(conjunct.expr)
    exprs += [get_member(c, streams) for c in keys.values() if c not in exact]
    columns = (column for expr in exprs for column in columns_of(expr))
    return tuple(dict.fromkeys(column for column in columns if column.stream in streams))


def is_decided_by_key(conjunct: Conjunct, classes: Collection[AttributeClass]) -> bool:
    """True if equal codes of a class satisfy a conjunct; sides over several streams must be evaluated."""
    if not isinstance(conjunct, Equality):
        return False
    sides = {conjunct.left, conjunct.right}
    single = all(len(streams_of(side)) == 1 for side in sides)
    return single and any(sides <= set(c.members) for c in classes)


def _source(
    query: Query,
    column: Column,
    keys: Mapping[str, AttributeClass],
    times: tuple[str, ...],
    streams: frozenset[str],
) -> str:
    """Return the stored column with the values of a payload column: a time, a key, or its own."""
    if column.name == query.stream(column.stream).time and time_name(column.stream) in times:
        return time_name(column.stream)
    for name, c in keys.items():
        if not c.null_safe and pa.types.is_int64(c.domain) and find_member(c, streams) == column:
            return name
    return payload_name(column)


def _times(
    query: Query, node: JTree, composed: bool, columns: tuple[Column, ...]
) -> tuple[tuple[str, ...], str]:
    """Return the stored times of a node and the lead among them."""
    if isinstance(node, Leaf) or not composed:
        return tuple(time_name(s) for s in node.streams), time_name(node.streams[0])
    selected = {c.stream for c in columns if c.name == query.stream(c.stream).time}
    bounded = {s for b in query.predicate.bounds for s in b.streams}
    lead = time_name(str(node))
    return (lead, *(time_name(s) for s in node.streams if s in selected | bounded)), lead


def _row_windows(query: Query, node: JTree, composed: bool) -> tuple[RowWindowColumns, ...]:
    if composed and isinstance(node, Join):
        return (RowWindowColumns(str(node), node.window.rows),) if isinstance(node.window, RowWindow) else ()
    rows = {n: w.rows for n, w in zip(query.names, query.windows, strict=True) if isinstance(w, RowWindow)}
    return tuple(RowWindowColumns(s, rows[s]) for s in node.streams if s in rows)


def window_of(query: Query, node: JTree) -> TimeWindow | RowWindow | None:
    """Return the window over one input of a join."""
    return node.window if isinstance(node, Join) else query.windows[query.names.index(node.stream)]


def _deadlines(query: Query, node: JTree, composed: bool) -> Deadlines:
    if composed:
        window = window_of(query, node)
        if not isinstance(window, TimeWindow):
            return None
        return (((time_name(str(node)), window.microseconds - 1),),)
    upper, names = query.bounds.upper, query.names
    own = [names.index(s) for s in node.streams]
    deadlines = []
    for j in set(range(len(names))) - set(own):
        retentions = [(time_name(names[i]), upper[i][j]) for i in own]
        finite = tuple((name, retention) for name, retention in retentions if retention is not None)
        if not finite:
            return None
        deadlines.append(finite)
    return tuple(deadlines)


def _cut(
    query: Query,
    node: JTree,
    composed: bool,
    lead: str,
    row_windows: tuple[RowWindowColumns, ...],
    deadlines: Deadlines,
) -> tuple[str, int]:
    """Return the stored number by whose grid rows are cut into slices, and the length of a cell."""
    if deadlines is None and row_windows:
        return row_windows[0].row_number, max(1, row_windows[0].rows // (CELLS_PER_PROBE // 2))
    return lead, max(1, _probe_span(query, node, composed) // CELLS_PER_PROBE)


def _probe_span(query: Query, node: JTree, composed: bool) -> int:
    """Return how much time the widest probe into a node covers, before and after the row that probes."""
    if composed:
        window = window_of(query, node)
        return 2 * window.microseconds if isinstance(window, TimeWindow) else _NO_TIME_LIMIT
    upper, own = query.bounds.upper, query.names.index(node.streams[0])
    spans = []
    for j in range(len(query.names)):
        back, ahead = upper[own][j], upper[j][own]
        if j != own and back is not None:
            spans.append(back + (ahead if ahead is not None else abs(back)))
    return max(spans, default=_NO_TIME_LIMIT)
