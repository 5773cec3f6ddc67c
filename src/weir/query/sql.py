"""The SQL front end: SELECT ... FROM ... WHERE ... WINDOW ... FRESHNESS ..."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from sqlglot import exp

from weir.errors import QueryError, unknown
from weir.query.model import check_names
from weir.query.reading import read
from weir.query.refusals import (
    refuse_clauses,
    refuse_outer,
    refuse_subqueries,
)
from weir.query.tail import Lengths, cut_tail

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SelectStatement:
    """A parsed statement; `tables` pairs each table with the name its stream has in the query."""

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
    """The parts of a statement, or the error that says what is not supported.

    >>> parse_sql("SELECT b.y FROM t a JOIN u b ON a.k = b.k WINDOW 10 MINUTES").tables
    (('t', 'a'), ('u', 'b'))
    """
    tail = cut_tail(text)
    select = _select(tail.head)
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
        tuple(map(_table, tables)), tuple(conditions), tuple(select.expressions), tail.window, tail.freshness
    )


def name_streams(tables: Mapping[str, T], statement: str | None) -> dict[str, T]:
    """The tables by the names that a statement gives to its streams; without one, by their own."""
    if statement is None:
        return dict(tables)
    return {alias: tables[_known(table, tables)] for table, alias in parse_sql(statement).tables}


def _select(text: str) -> exp.Select:
    expected = "a statement like 'SELECT a.x FROM t a, u b WHERE a.k = b.k WINDOW 10 MINUTES'"
    statements = read(text, expected)
    if len(statements) != 1 or not isinstance(statements[0], exp.Select):
        raise QueryError(f"'{text.strip()}' is not one SELECT; expected {expected}")
    return statements[0]


def _table(node: exp.Expression) -> tuple[str, str]:
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


def _known(table: str, tables: Mapping[str, T]) -> str:
    if table in tables:
        return table
    for name in tables:
        if name.lower() == table.lower():
            return name
    raise unknown("table", table, tables, where=" in FROM")
