"""Parse a SQL statement: SELECT ... FROM ... WHERE ... WINDOW ... FRESHNESS ..."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from sqlglot import exp

from weir.errors import QueryError, unknown_name
from weir.query.model import check_names
from weir.query.parse import parse_statements
from weir.query.unsupported_sql import (
    refuse_clauses,
    refuse_outer,
    refuse_subqueries,
)
from weir.query.window_clauses import Lengths, split_window_clauses

T = TypeVar("T")


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


def name_streams(tables: Mapping[str, T], statement: str | None) -> dict[str, T]:
    """Return the tables by the aliases of a statement; without a statement, by their own names."""
    if statement is None:
        return dict(tables)
    return {alias: tables[_find_table(table, tables)] for table, alias in parse_sql(statement).tables}


def _parse_select(text: str) -> exp.Select:
    expected = "a statement like 'SELECT a.x FROM t a, u b WHERE a.k = b.k WINDOW 10 MINUTES'"
    statements = parse_statements(text, expected)
    if len(statements) != 1 or not isinstance(statements[0], exp.Select):
        raise QueryError(f"'{text.strip()}' is not one SELECT; expected {expected}")
    return statements[0]


def _name_table(node: exp.Expression) -> tuple[str, str]:
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise QueryError(f"'{node.sql('spark')}' in FROM is not the name of a stream")
    extra = [
        name for name, value in node.args.items() if value and name not in ("this", "db", "catalog", "alias")
    ]
    if extra:
        raise QueryError(
            f"{extra[0].upper()} is not supported after '{node.name}' in FROM; expected a name alone"
        )
    table = ".".join(part.name for part in node.parts)
    return table, node.alias or node.name


def _find_table(table: str, tables: Mapping[str, T]) -> str:
    if table in tables:
        return table
    for name in tables:
        if name.lower() == table.lower():
            return name
    raise unknown_name("table", table, tables, where=" in FROM")
