"""Parse and bind the SELECT list."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from weir.errors import QueryError, unknown_name
from weir.expr.nodes import Column
from weir.expr.scope import Scope
from weir.expr.to_sql import to_sql
from weir.query.model import Output, Stream
from weir.query.parse import bind_expression, parse_statements


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
        return _select_all(_find_stream(item.table, streams))
    inner = item.this if isinstance(item, exp.Alias) else item
    expr = bind_expression(inner, scope)
    name = item.alias or (expr.name if isinstance(expr, Column) else to_sql(expr))
    return (Output(name, expr),)


def _select_all(stream: Stream, prefix: str = "") -> tuple[Output, ...]:
    columns = [Column(stream.name, field.name, field.type) for field in stream.schema]
    return tuple(Output(f"{prefix}{column.name}", column) for column in columns)


def _find_stream(name: str, streams: Sequence[Stream]) -> Stream:
    for stream in streams:
        if stream.name.lower() == name.lower():
            return stream
    raise unknown_name("stream", name, [stream.name for stream in streams], where=f" in '{name}.*'")
