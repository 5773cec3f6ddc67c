"""Build a query from SQL text: SELECT ... FROM ... WHERE ... WINDOW ... FRESHNESS ..."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa
from sqlglot import exp

from weir.errors import QueryError, unknown
from weir.expr.scope import UserFunction
from weir.query.build import assemble, prepare
from weir.query.model import Budget, Query, check_names
from weir.query.parse import bind_expression, parse_statements
from weir.query.settings import PerStream
from weir.query.unsupported_sql import (
    refuse_clauses,
    refuse_outer,
    refuse_subqueries,
)
from weir.query.window_clauses import Lengths, split_window_clauses


@dataclass(frozen=True, slots=True)
class SelectStatement:
    """A parsed statement; `tables` pairs each table with its alias, the name of the stream."""

    tables: tuple[tuple[str, str], ...]
    conditions: tuple[exp.Expression, ...]
    select: tuple[exp.Expression, ...]
    window: Lengths
    freshness: Lengths

    def __post_init__(self) -> None:
        if not self.tables:
            raise QueryError(
                "there is no FROM list; name at least two streams, like 'FROM orders o, payments p'"
            )
        check_names(alias for _, alias in self.tables)


@dataclass(frozen=True, slots=True)
class SqlQuery:
    """A query from SQL text, and the table that each stream reads."""

    query: Query
    tables: dict[str, str]


def parse_sql(text: str) -> SelectStatement:
    """Parse a statement into its parts, or raise an error that says what is not supported.

    >>> parse_sql("SELECT b.y FROM t a JOIN u b ON a.k = b.k WINDOW 10 MINUTES").tables
    (('t', 'a'), ('u', 'b'))
    """
    statement = split_window_clauses(text)
    select = _parse_select(statement.select)
    refuse_clauses(select)
    refuse_subqueries(select)
    joins = select.args.get("joins") or []
    for join in joins:
        refuse_outer(join)
    source = select.args.get("from_") or select.args.get("from")
    tables = [source.this, *(join.this for join in joins)] if source else []
    conditions = [join.args["on"] for join in joins if join.args.get("on")]
    conditions += [select.args["where"].this] if select.args.get("where") else []
    return SelectStatement(
        tuple(map(_name_table, tables)),
        tuple(conditions),
        tuple(select.expressions),
        statement.window,
        statement.freshness,
    )


def sql_query(
    text: str,
    schemas: Mapping[str, pa.Schema],
    *,
    time: PerStream[str] = "ts",
    late: PerStream[str | timedelta | int] | None = None,
    budget: Budget | None = None,
    cross: bool = False,
    functions: Mapping[str, UserFunction] | None = None,
    basic: str | timedelta | None = None,
) -> SqlQuery:
    """Build the query of a statement over these tables; its streams have the aliases of the statement."""
    statement = parse_sql(text)
    tables = {alias: _find_table(table, schemas) for table, alias in statement.tables}
    read = {alias: schemas[table] for alias, table in tables.items()}
    streams, scope = prepare(read, time, late, functions)
    conditions = [bind_expression(node, scope) for node in statement.conditions]
    asked = assemble(
        streams,
        scope,
        conditions,
        statement.select,
        statement.window,
        statement.freshness,
        budget,
        cross,
        basic,
    )
    return SqlQuery(asked, tables)


def _parse_select(text: str) -> exp.Select:
    expected = "a statement like 'SELECT a.x FROM t a, u b WHERE a.k = b.k WINDOW 10 MINUTES'"
    statements = parse_statements(text, expected)
    if len(statements) != 1 or not isinstance(statements[0], exp.Select):
        raise QueryError(f"'{text.strip()}' is not one SELECT; expected {expected}")
    return statements[0]


def _name_table(node: exp.Expression) -> tuple[str, str]:
    """Return the name of a table in FROM, and its alias."""
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise QueryError(f"'{node.sql('spark')}' in FROM is not the name of a stream")
    for name, value in node.args.items():
        if value and name not in ("this", "db", "catalog", "alias"):
            raise QueryError(
                f"{name.upper()} is not supported after '{node.name}' in FROM; expected a name alone"
            )
    table = ".".join(part.name for part in node.parts)
    return table, node.alias or node.name


def _find_table(table: str, schemas: Mapping[str, pa.Schema]) -> str:
    for name in (table, *schemas):
        if name in schemas and name.lower() == table.lower():
            return name
    raise unknown("table", table, schemas, where=" in FROM")
