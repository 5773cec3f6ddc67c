"""Parse a SQL statement: SELECT ... FROM ... WHERE ... WINDOW ... FRESHNESS ..."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from sqlglot import exp

from weir.errors import QueryError, match_name
from weir.query.model import check_names
from weir.query.options import PerStream, Span
from weir.query.parse import parse_statements
from weir.query.unsupported_sql import refuse_clauses, refuse_outer, refuse_subqueries
from weir.query.window_clauses import split_window_clauses

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SelectStatement:
    """A parsed statement, or the arguments of a join; `tables` pairs each table with its stream's name."""

    tables: tuple[tuple[str, str], ...]
    conditions: tuple[exp.Expression, ...]
    select: tuple[exp.Expression, ...] | None
    window: PerStream[Span] | None
    freshness: PerStream[Span] | None


def parse_sql(text: str) -> SelectStatement:
    """Parse a statement into its parts, or raise an error that says what is not supported.

    >>> parse_sql("SELECT b.y FROM t a JOIN u b ON a.k = b.k WINDOW 10 MINUTES").tables
    (('t', 'a'), ('u', 'b'))
    """
    select_text, lengths = split_window_clauses(text)
    select = _parse_select(select_text)
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
    window, freshness = lengths.get("WINDOW"), lengths.get("FRESHNESS")
    return SelectStatement(tables, tuple(conditions), tuple(select.expressions), window, freshness)


def name_streams(tables: Mapping[str, T], statement: str | None) -> dict[str, T]:
    """Return the tables by the aliases of a statement; without a statement, by their own names."""
    if statement is None:
        return dict(tables)
    named = parse_sql(statement).tables
    return {alias: tables[match_name("table", table, tables, where=" in FROM")] for table, alias in named}


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
