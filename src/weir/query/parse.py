"""Parse SQL text with sqlglot and bind its expressions, with one error sentence for each mistake."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from weir.errors import QueryError
from weir.expr.bind import bind
from weir.expr.dialect import UntranslatedSpark
from weir.expr.nodes import Expr
from weir.expr.scope import Scope
from weir.query.unsupported_sql import refuse_aggregates


def parse_statements(text: str, expected: str) -> list[exp.Expression]:
    """Parse the statements or expressions of a text, separated by semicolons."""
    try:
        nodes = sqlglot.parse(text, dialect=UntranslatedSpark)
    except SqlglotError as error:
        raise syntax_error(error, text, expected) from None
    except RecursionError:
        raise _nesting_error() from None
    return [node for node in nodes if isinstance(node, exp.Expression)]


def syntax_error(error: SqlglotError, text: str, expected: str) -> QueryError:
    """Return the error for text that is not SQL, with the position at which the parser failed."""
    details = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
    near, line, column = details.get("highlight"), details.get("line"), details.get("col")
    position = f" near '{near}' (line {line}, column {column})" if near else ""
    return QueryError(f"cannot read '{text.strip()}'{position}; expected {expected}")


def parse_condition(text: str) -> exp.Expression:
    """Parse the one condition of a text."""
    expected = "a condition, like 'a.k = b.k AND a.x > b.y'"
    nodes = parse_statements(text, expected)
    if len(nodes) != 1 or isinstance(nodes[0], exp.Query):
        raise QueryError(f"'{text.strip()}' is not one condition; expected {expected}")
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
        return bind(node, scope)
    except RecursionError:
        raise _nesting_error() from None


def _nesting_error() -> QueryError:
    return QueryError("an expression is nested too deeply; compute parts of it before the join")
