"""The SELECT list."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from weir.errors import QueryError, unknown
from weir.expr.nodes import Column
from weir.expr.scope import Scope
from weir.expr.text import show
from weir.query.model import Output, Stream
from weir.query.reading import bound, read


def parse_select(text: str) -> tuple[exp.Expression, ...]:
    """The items of a SELECT list that stands alone."""
    node, *more = read(f"SELECT {text}", "a list of columns and expressions, like 'a.x, b.y + 1 AS z'")
    extra = [name for name, value in node.args.items() if value and name != "expressions"]
    if not isinstance(node, exp.Select) or more or extra or not node.expressions:
        raise QueryError(
            f"the select list '{text}' must hold columns and expressions only, like 'a.x, b.y AS z'"
        )
    return tuple(node.expressions)


def outputs(
    items: Sequence[exp.Expression] | None, streams: Sequence[Stream], scope: Scope
) -> tuple[Output, ...]:
    """The columns of the result; without a list, and for `*`, every column as `<stream>_<column>`."""
    if items is None:
        return _everything(streams)
    return tuple(output for item in items for output in _item(item, streams, scope))


def _item(item: exp.Expression, streams: Sequence[Stream], scope: Scope) -> tuple[Output, ...]:
    if isinstance(item, exp.Star):
        return _everything(streams)
    if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
        return _all_of(item.table, streams)
    inner = item.this if isinstance(item, exp.Alias) else item
    expr = bound(inner, scope)
    name = item.alias or (expr.name if isinstance(expr, Column) else show(expr))
    return (Output(name, expr),)


def _everything(streams: Sequence[Stream]) -> tuple[Output, ...]:
    return tuple(
        Output(f"{stream.name}_{field.name}", Column(stream.name, field.name, field.type))
        for stream in streams
        for field in stream.schema
    )


def _all_of(name: str, streams: Sequence[Stream]) -> tuple[Output, ...]:
    for stream in streams:
        if stream.name.lower() == name.lower():
            return tuple(
                Output(field.name, Column(stream.name, field.name, field.type)) for field in stream.schema
            )
    raise unknown("stream", name, [stream.name for stream in streams], where=f" in '{name}.*'")
