"""From SQL text to bound expressions, with the errors of every step."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from weir.errors import QueryError
from weir.expr.bind import bind
from weir.expr.dialect import SparkText
from weir.expr.nodes import Expr
from weir.expr.scope import Scope
from weir.query.refusals import refuse_aggregates


def read(text: str, expected: str) -> list[exp.Expression]:
    """The statements or expressions of a text, apart at semicolons."""
    try:
        return [node for node in sqlglot.parse(text, dialect=SparkText) if isinstance(node, exp.Expression)]
    except SqlglotError as error:
        raise unreadable(error, text, expected) from None
    except RecursionError:
        raise _too_deep() from None


def unreadable(error: SqlglotError, text: str, expected: str) -> QueryError:
    """The error for text that is not SQL, with the place the parser stumbled over."""
    said = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
    near, line, column = said.get("highlight"), said.get("line"), said.get("col")
    place = f" near '{near}' (line {line}, column {column})" if near else ""
    return QueryError(f"cannot read '{text.strip()}'{place}; expected {expected}")


def read_condition(text: str) -> exp.Expression:
    """The one condition of a text."""
    expected = "a condition, like 'a.k = b.k AND a.x > b.y'"
    nodes = read(text, expected)
    if len(nodes) != 1 or isinstance(nodes[0], exp.Query):
        raise QueryError(f"'{text.strip()}' is not one condition; expected {expected}")
    return nodes[0]


def bound(node: exp.Expression, scope: Scope) -> Expr:
    """The expression with its names resolved and its types checked."""
    refuse_aggregates(node, scope.functions)
    try:
        return bind(node, scope)
    except RecursionError:
        raise _too_deep() from None


def _too_deep() -> QueryError:
    return QueryError("an expression is nested too deeply; compute parts of it before the join")
