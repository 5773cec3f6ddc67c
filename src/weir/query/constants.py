"""Expressions that read no column, reduced to their value."""

from __future__ import annotations

import pyarrow as pa

from weir.expr.evaluate import evaluate
from weir.expr.nodes import Column, Expr, Literal, columns_of


def constant(expr: Expr) -> Literal | None:
    """The value of an expression that reads no column; None for one that does."""
    if isinstance(expr, Literal):
        return expr
    if columns_of(expr):
        return None
    value = evaluate(expr, _no_column, 1)
    scalar = value if isinstance(value, pa.Scalar) else value[0]
    if pa.types.is_duration(expr.type):
        scalar = scalar.cast(pa.int64())
    return Literal(scalar.as_py(), expr.type)


def _no_column(column: Column) -> pa.Array:
    raise LookupError(f"a constant expression reads no column; asked for {column}")
