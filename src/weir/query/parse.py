"""Parse SQL text with sqlglot and bind its expressions, with one error sentence for each mistake."""

from __future__ import annotations

from collections.abc import Sequence

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from weir.errors import QueryError, match_name
from weir.expr.bind import bind
from weir.expr.dialect import UntranslatedSpark
from weir.expr.nodes import Column, Expr
from weir.expr.scope import Scope
from weir.expr.to_sql import to_sql
from weir.query.model import Output, Stream
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
    return (Output(name, expr),)


def _select_all(stream: Stream, prefix: str = "") -> tuple[Output, ...]:
    columns = [Column(stream.name, field.name, field.type) for field in stream.schema]
    return tuple(Output(f"{prefix}{column.name}", column) for column in columns)


def _nesting_error() -> QueryError:
    return QueryError("an expression is nested too deeply; compute parts of it before the join")
