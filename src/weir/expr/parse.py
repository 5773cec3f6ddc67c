"""Text to bound expression."""

from __future__ import annotations

from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from weir.errors import QueryError
from weir.expr.bind import bind
from weir.expr.dialect import SparkText
from weir.expr.nodes import Expr
from weir.expr.scope import Scope


def parse(text: str, scope: Scope) -> Expr:
    """The bound expression of a text in Spark SQL.

    >>> import pyarrow as pa
    >>> scope = Scope({"a": pa.schema({"x": pa.int32()}), "b": pa.schema({"y": pa.int64()})})
    >>> str(parse("a.x < b.y", scope))
    '<(cast(a.x), b.y)'
    """
    if not text.strip():
        raise QueryError("an expression is empty")
    try:
        node: Any = sqlglot.parse_one(text, dialect=SparkText)
    except SqlglotError as error:
        raise QueryError(f"cannot read {text!r}: {_reason(error)}") from None
    if isinstance(node, (exp.Query, exp.Block)):
        raise QueryError(f"an expression is needed, not a query: {text!r}")
    try:
        return bind(node, scope)
    except RecursionError:
        raise QueryError("an expression is nested too deeply") from None


def _reason(error: SqlglotError) -> str:
    details = getattr(error, "errors", None)
    if not details:
        return str(error)
    first = details[0]
    place = f" at {first['highlight']!r}" if first.get("highlight") else ""
    return f"{first['description'].rstrip('.')}{place}, line {first['line']}, column {first['col']}"
