"""Parse a SQL statement, SELECT ... FROM ... WHERE ... WINDOW ... FRESHNESS ..., and bind its expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa
from sqlglot import exp

from weir.errors import QueryError, match_name
from weir.expr.bind import bind
from weir.expr.build import find_failing_constant
from weir.expr.dialect import nesting_error, parse_statements
from weir.expr.nodes import Column, Expr, depth_of, is_internal
from weir.expr.scope import Scope
from weir.expr.simplify import simplify
from weir.expr.to_sql import to_sql
from weir.query.model import Clock, Output, Stream, check_names
from weir.query.options import PerStream, QueryOptions, Span
from weir.query.unsupported_sql import refuse_aggregates, refuse_clauses, refuse_outer, refuse_subqueries
from weir.query.using import Using, read_using, share_columns
from weir.query.window_clauses import split_window_clauses

T = TypeVar("T")
# The calls inside of calls for which Python's stack is deep enough wherever expressions are evaluated.
_DEEPEST = 250


@dataclass(frozen=True, slots=True)
class SelectStatement:
    """A parsed statement, or the arguments of a join; `tables` pairs each table with its stream's name."""

    tables: tuple[tuple[str, str], ...]
    conditions: tuple[exp.Expression, ...]
    select: tuple[exp.Expression, ...] | None
    window: PerStream[Span] | None
    freshness: PerStream[Span] | None
    using: tuple[Using, ...] = ()
    clock: Clock | None = None

    def resolve_using(self, schemas: Mapping[str, pa.Schema]) -> SelectStatement:
        """Return the statement with the meaning of its USINGs written out."""
        if not self.using:
            return self
        shared = share_columns(self.using, schemas)
        conditions = (*shared.equalities, *map(shared.qualify, self.conditions))
        select = list[exp.Expression]()
        for item in self.select or (exp.Star(),):
            select += shared.expand_star(schemas) if isinstance(item, exp.Star) else [shared.qualify(item)]
        return replace(self, conditions=conditions, select=tuple(select), using=())


def read_clauses(options: QueryOptions) -> SelectStatement:
    """Parse the statement of the options, or the arguments that stand for its clauses."""
    if options.statement is not None:
        return parse_sql(options.statement)
    conditions = () if options.on is None else (parse_condition(options.on),)
    select = None if options.select is None else parse_select_list(options.select)
    return SelectStatement((), conditions, select, options.within, options.fresh)


def parse_sql(text: str) -> SelectStatement:
    """Parse a statement into its parts, or raise an error that says what is not supported.

    >>> parse_sql("SELECT b.y FROM t a JOIN u b ON a.k = b.k WINDOW 10 MINUTES").tables
    (('t', 'a'), ('u', 'b'))
    """
    select_text, clauses = split_window_clauses(text)
    expected = "a statement like 'SELECT a.x FROM t a, u b WHERE a.k = b.k WINDOW 10 MINUTES'"
    select, *more = parse_statements(select_text, expected) or [exp.Null()]
    if more or not isinstance(select, exp.Select):
        raise QueryError(f"'{select_text.strip()}' is not one SELECT; expected {expected}")
    refuse_clauses(select)
    refuse_subqueries(select)
    joins = select.args.get("joins") or []
    for join in joins:
        refuse_outer(join)
    source = select.args.get("from_") or select.args.get("from")
    if not source:
        raise QueryError("there is no FROM list; name at least two streams, like 'FROM orders o, payments p'")
    tables = tuple(_name_table(table.this) for table in (source, *joins))
    check_names(alias for _, alias in tables)
    conditions = [join.args["on"] for join in joins if join.args.get("on")]
    conditions += [select.args["where"].this] if select.args.get("where") else []
    aliases = [alias for _, alias in tables]
    using = [read_using(join, aliases[: i + 1], aliases[i + 1]) for i, join in enumerate(joins)]
    shared = tuple(each for each in using if each is not None)
    return SelectStatement(
        tables=tables,
        conditions=tuple(conditions),
        select=tuple(select.expressions),
        window=clauses.window,
        freshness=clauses.freshness,
        using=shared,
        clock=clauses.clock,
    )


def name_streams(tables: Mapping[str, T], statement: str | None) -> dict[str, T]:
    """Return the tables by the aliases of a statement; without a statement, by their own names."""
    if statement is None:
        return dict(tables)
    named = parse_sql(statement).tables
    return {alias: tables[match_name("table", table, tables, where=" in FROM")] for table, alias in named}


def _name_table(node: exp.Expression) -> tuple[str, str]:
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise QueryError(f"'{node.sql('spark')}' in FROM is not the name of a stream")
    for name, value in node.args.items():
        if value and name not in ("this", "db", "catalog", "alias"):
            raise QueryError(
                f"{name.upper()} is not supported after '{node.name}' in FROM; expected a name alone"
            )
    return ".".join(part.name for part in node.parts), node.alias or node.name


def parse_condition(text: str) -> exp.Expression:
    """Parse the one condition of a text."""
    expected = "a condition, like 'a.k = b.k AND a.x > b.y'"
    nodes = parse_statements(text, expected)
    if len(nodes) != 1 or isinstance(nodes[0], exp.Query):
        raise QueryError(f"'{text.strip()}' is not one condition; expected {expected}")
    refuse_subqueries(nodes[0])
    return nodes[0]


def bind_expression(node: exp.Expression, scope: Scope) -> Expr:
    """Bind a parsed expression: resolve its names and check its types.

    >>> import pyarrow as pa
    >>> scope = Scope({"a": pa.schema({"x": pa.int32()}), "b": pa.schema({"y": pa.int64()})})
    >>> str(bind_expression(parse_condition("a.x < b.y"), scope))
    '<(cast(a.x), b.y)'
    """
    refuse_aggregates(node, scope.functions)
    try:
        expr = bind(node, scope)
    except RecursionError:
        raise nesting_error() from None
    if depth_of(expr) > _DEEPEST:
        raise nesting_error()
    return expr


def bind_value(node: exp.Expression, scope: Scope) -> Expr:
    """Bind an expression for its value alone, without the parts that Spark does not evaluate either."""
    return simplify(bind_expression(node, scope))


def parse_select_list(text: str) -> tuple[exp.Expression, ...]:
    """Parse a SELECT list without the SELECT, as in `select=`."""
    node, *more = parse_statements(
        f"SELECT {text}", "a list of columns and expressions, like 'a.x, b.y + 1 AS z'"
    )
    extra = [name for name, value in node.args.items() if value and name != "expressions"]
    if not isinstance(node, exp.Select) or more or extra or not node.expressions:
        raise QueryError(
            f"the select list '{text}' must hold columns and expressions only, like 'a.x, b.y AS z'"
        )
    return tuple(node.expressions)


def bind_outputs(
    items: Sequence[exp.Expression] | None, streams: Sequence[Stream], scope: Scope
) -> tuple[Output, ...]:
    """Bind the output columns; without a list, and for `*`, select all columns as `<stream>_<column>`."""
    listed = [exp.Star()] if items is None else items
    return tuple(output for item in listed for output in _bind_item(item, streams, scope))


def refuse_failing_constants(items: Sequence[exp.Expression] | None, scope: Scope) -> None:
    """Refuse output columns with a constant that fails: Spark does, even where there are no results."""
    for item in items or ():
        if item.is_star:
            continue
        try:
            inner = item.this if isinstance(item, exp.Alias) else item
            failing = find_failing_constant(bind_value(inner, scope))
        except QueryError:
            continue  # binding it for its value says what is wrong, or the engine knows it
        if failing is not None:
            raise QueryError(
                f"the constant {to_sql(failing)} in the SELECT list fails for every row; correct it"
            )


def _bind_item(item: exp.Expression, streams: Sequence[Stream], scope: Scope) -> tuple[Output, ...]:
    if isinstance(item, exp.Star):
        return tuple(output for stream in streams for output in _select_all(stream, f"{stream.name}_"))
    if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
        names = [stream.name for stream in streams]
        name = match_name("stream", item.table, names, where=f" in '{item.table}.*'")
        return _select_all(streams[names.index(name)])
    inner = item.this if isinstance(item, exp.Alias) else item
    expr = bind_expression(inner, scope)
    name = item.alias or (expr.name if isinstance(expr, Column) else to_sql(expr))
    return (Output(name, simplify(expr)),)


def _select_all(stream: Stream, prefix: str = "") -> tuple[Output, ...]:
    fields = [field for field in stream.schema if not is_internal(field.name)]
    columns = [Column(stream.name, field.name, field.type) for field in fields]
    return tuple(Output(f"{prefix}{column.name}", column) for column in columns)
