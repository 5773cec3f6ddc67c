"""Split what concerns one stream alone from the clauses of a query: the engine computes it before the join.

    lower(a.k) = lower(b.k) AND a.x > 3 AND a.ts <= b.ts + INTERVAL 1 HOUR
    filter of a:    a.x > 3
    columns:        lower(a.k) of a, lower(b.k) of b
    what remains:   a.`weir:lower(a.k)` = b.`weir:lower(b.k)` AND a.ts <= b.ts + INTERVAL 1 HOUR

A column is computed for each maximal part of a clause that reads one stream and is more than a column. Bounds
on event times stay as they are, and so do the functions of the user that only the kernel can call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from weir.errors import QueryError
from weir.expr.bind import resolve_column
from weir.expr.dialect import Node, source_text
from weir.expr.nodes import Column, name_computed
from weir.expr.scope import Scope
from weir.expr.to_sql import to_sql
from weir.query.classify import extract_time_bounds, loosen_time_bounds, split_condition
from weir.query.sql import SelectStatement, bind_expression
from weir.query.struct_equality import expand_struct_equality
from weir.query.text_numbers import COMPARISONS, write_casts
from weir.query.unsupported_sql import refuse_aggregates

# Nodes that are no values: only what they contain can be computed. Nothing inside of the last ones can.
_NO_VALUES = (exp.Alias, exp.Kwarg, exp.PropertyEQ, exp.Tuple, exp.Ordered)
_CLOSED = (exp.Lambda, exp.Any, exp.All, exp.DataType)
_EQUALITIES = (exp.EQ, exp.NullSafeEQ)
_UNIT_FUNCTIONS = ("timestampadd", "timestampdiff", "dateadd", "date_add", "datediff", "date_diff")


@dataclass(frozen=True, slots=True)
class Computed:
    """A column `name` of a stream that holds the value of `text`.

    A strict one may fail for any row; another one may fail only for rows that join.
    """

    stream: str
    text: str
    name: str
    strict: bool


@dataclass(frozen=True, slots=True)
class PushedFilter:
    """A condition on the rows of one stream, and the name of a column that holds its value.

    There is such a column only where rows for which the condition fails are to be reported.
    """

    stream: str
    text: str
    name: str


@dataclass(frozen=True, slots=True)
class Pushdown:
    """What the engine computes for each stream, and the clauses that remain, which refer to it by name."""

    clauses: SelectStatement
    computed: tuple[Computed, ...] = ()
    filters: tuple[PushedFilter, ...] = ()


def push_down(
    clauses: SelectStatement,
    scope: Scope,
    times: Mapping[str, str],
    counted: Collection[str],
    in_kernel: Collection[tuple[str, str]] = (),
) -> Pushdown:
    """Push down all that concerns one stream, but for the columns `in_kernel` (stream and text).

    `times` are the streams' time columns.

    Filters become columns where rows that they drop still matter: streams that are `counted` have a row
    window, which counts every row; and a filter on event times would hold the watermark back, which is why
    Spark pushes none below its own watermark.
    """
    for node in (*clauses.conditions, *(clauses.select or ())):
        refuse_aggregates(node, scope.functions)
    lifting = _Lifting(scope, in_kernel)
    remaining, filters = list[Node](), list[tuple[str, str]]()
    conjuncts = list(_split(clauses.conditions, scope))
    # Spark evaluates other comparisons only for rows whose keys are equal, if there are such.
    by_key = any(isinstance(each, _EQUALITIES) and len(lifting.streams_of(each)) > 1 for each in conjuncts)
    for conjunct in conjuncts:
        streams = lifting.streams_of(conjunct)
        if _bounds_times(conjunct, scope, times):
            remaining.append(conjunct)
        elif lifting.is_computable(conjunct) and lifting.may_drop(conjunct, times, counted):
            filters.append((next(iter(streams)), source_text(conjunct)))
        else:
            conjunct = write_casts(conjunct, scope) if len(streams) > 1 else conjunct
            remaining.append(lifting.rewrite(conjunct, _is_strict(conjunct, lifting, by_key)))
    select = (
        None if clauses.select is None else tuple(_rewrite_item(item, lifting) for item in clauses.select)
    )
    rest = replace(clauses, conditions=tuple(remaining), select=select)
    return Pushdown(rest, tuple(lifting.computed.values()), tuple(_name_filters(filters, lifting)))


def _name_filters(filters: Sequence[tuple[str, str]], lifting: _Lifting) -> Iterator[PushedFilter]:
    """Name a column for each filter, with a number above those of the computed columns."""
    for number, (stream, text) in enumerate(dict.fromkeys(filters), len(lifting.computed) + 1):
        yield PushedFilter(stream, text, name_computed(text, number))


@dataclass(slots=True)
class _Lifting:
    """Replaces parts of clauses by columns, and collects what these hold."""

    scope: Scope
    in_kernel: Collection[tuple[str, str]]
    computed: dict[tuple[str, str], Computed] = field(default_factory=dict)

    def streams_of(self, node: Node) -> frozenset[str]:
        return frozenset(column.stream for column, _ in self._columns(node))

    def is_computable(self, node: Node) -> bool:
        """True unless only the kernel can call one of the functions in it."""
        calls = node.find_all(exp.Anonymous)
        return not any(self.scope.function(call.name) for call in calls)

    def may_drop(self, node: Node, times: Mapping[str, str], counted: Collection[str]) -> bool:
        """True for a condition on one stream that may drop rows before the kernel sees them."""
        columns = [column for column, _ in self._columns(node)]
        reads_time = any(column.name == times[column.stream] for column in columns)
        return len(self.streams_of(node)) == 1 and not reads_time and columns[0].stream not in counted

    def rewrite(self, node: Node, strict: bool) -> Node:
        """Return the node with its maximal parts over one stream replaced by columns."""
        inner = node.unnest()
        if self._is_plain(inner) or isinstance(node, _CLOSED):
            return node
        streams = self.streams_of(inner)
        is_value = not isinstance(inner, _NO_VALUES)
        if is_value and len(streams) == 1 and self.is_computable(inner):
            stream = next(iter(streams))
            return node if self._stays(stream, inner) else self._refer(stream, inner, strict)
        return self._rewrite_children(node, strict)

    def _rewrite_children(self, node: Node, strict: bool) -> Node:
        rewritten = node.copy()
        for child in list(rewritten.iter_expressions()):
            is_branch = isinstance(rewritten, exp.Case) and isinstance(child, exp.If)
            is_name = isinstance(rewritten, exp.Kwarg | exp.PropertyEQ) and child.arg_key == "this"
            if not is_name:
                new = self._rewrite_children(child, strict) if is_branch else self.rewrite(child, strict)
                child.replace(new)
        return rewritten

    def _refer(self, stream: str, node: Node, strict: bool) -> Node:
        text = source_text(node)
        known = self.computed.get((stream, text))
        if known is None:
            names = [column.name.lower() for column in self.computed.values() if column.stream == stream]
            numbers = (n for n in range(len(names) + 1) if name_computed(text, n).lower() not in names)
            known = Computed(stream, text, name_computed(text, next(numbers)), strict)
        self.computed[stream, text] = replace(known, strict=strict or known.strict)
        return exp.column(known.name, table=stream, quoted=True)

    def _stays(self, stream: str, node: Node) -> bool:
        return (stream, " ".join(source_text(node).split())) in self.in_kernel

    def _is_plain(self, node: Node) -> bool:
        """True for a column as it is, and for what reads none."""
        columns = self._columns(node)
        return not columns or (isinstance(node, exp.Column) and not columns[0][1])

    def _columns(self, node: Node) -> list[tuple[Column, tuple[str, ...]]]:
        return columns_read(node, self.scope)


def columns_read(node: Node, scope: Scope) -> list[tuple[Column, tuple[str, ...]]]:
    """Resolve the columns that a parsed expression reads, each with the fields of it that are read."""
    return [resolve_column(column, scope) for column in node.find_all(exp.Column) if _is_read(column)]


def _is_read(node: exp.Column) -> bool:
    """False for what only looks like a column: an argument's name, the unit of `timestampadd(HOUR, ...)`."""
    parent: Node = node.parent
    if isinstance(parent, exp.Kwarg | exp.PropertyEQ) and node.arg_key == "this":
        return False
    is_unit = isinstance(parent, exp.Anonymous) and parent.name.lower() in _UNIT_FUNCTIONS
    return not (is_unit and len(parent.expressions) > 2 and parent.expressions[0] is node and not node.table)


def _split(conditions: Sequence[Node], scope: Scope) -> Iterator[Node]:
    """Split conditions into conjuncts, also those that are written otherwise."""
    for node in conditions:
        inner = node.unnest()
        if isinstance(inner, exp.And):
            yield from _split([inner.left, inner.right], scope)
        elif isinstance(inner, exp.Between) and not inner.args.get("symmetric"):
            low, high = inner.args["low"], inner.args["high"]
            yield exp.GTE(this=inner.this.copy(), expression=low.copy())
            yield exp.LTE(this=inner.this.copy(), expression=high.copy())
        elif isinstance(inner, exp.Not) and isinstance(inner.this.unnest(), exp.Or):
            sides = inner.this.unnest()
            yield from _split([exp.Not(this=exp.paren(side)) for side in (sides.left, sides.right)], scope)
        elif (parts := expand_struct_equality(inner, scope)) is not None:
            yield from parts
        else:
            yield inner


def _bounds_times(node: Node, scope: Scope, times: Mapping[str, str]) -> bool:
    try:
        parts = list(split_condition(bind_expression(node, scope)))
    except QueryError:
        return False  # the engine may know what the kernel does not
    return all(extract_time_bounds(part, times) or loosen_time_bounds(part, times) for part in parts)


def _is_strict(conjunct: Node, lifting: _Lifting, by_key: bool) -> bool:
    """True where sides of a comparison, or a filter, are computed for every row anyway, as Spark does."""
    if len(lifting.streams_of(conjunct)) == 1:
        return lifting.is_computable(conjunct)
    kinds = _EQUALITIES if by_key else COMPARISONS
    sides = (conjunct.left, conjunct.right) if isinstance(conjunct, kinds) else ()
    return bool(sides) and all(
        len(lifting.streams_of(side)) == 1 and lifting.is_computable(side) for side in sides
    )


def _rewrite_item(item: Node, lifting: _Lifting) -> Node:
    if item.is_star:
        return item
    inner = item.this if isinstance(item, exp.Alias) else item
    rewritten = lifting.rewrite(inner, strict=False)
    if rewritten is inner:
        return item
    return exp.alias_(rewritten, item.alias or name_output(inner, lifting.scope), quoted=True)


def name_output(node: Node, scope: Scope) -> str:
    """Name the output column of an expression without an alias: as the user wrote it."""
    try:
        return to_sql(bind_expression(node, scope))
    except QueryError:
        return source_text(node)
