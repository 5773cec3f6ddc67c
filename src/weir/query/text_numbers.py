"""Write the casts of text that is compared with a number, so that they can be computed before the join.

    a.text = b.number     →     CAST(a.text AS BIGINT) = b.number

Binding casts it anyway; as a column of its stream, the number can be a key by which rows are divided.
"""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from weir.errors import QueryError
from weir.expr.dialect import Node
from weir.expr.nodes import Call
from weir.expr.scope import Scope
from weir.expr.types import is_float, is_integer, is_number, spark_name
from weir.query.sql import bind_expression

COMPARISONS = (exp.EQ, exp.NullSafeEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def write_casts(node: Node, scope: Scope) -> Node:
    """Return a comparison of text with a number as one of numbers; any other node as it is."""
    if not isinstance(node, COMPARISONS):
        return node
    nodes: tuple[Node, ...] = (node, node.left, node.right)
    try:
        bound, *sides = (bind_expression(each, scope) for each in nodes)
    except QueryError:
        return node  # the engine may know what the kernel does not
    types = [side.type for side in sides]
    is_mixed = any(map(pa.types.is_string, types)) and any(map(is_number, types))
    if not is_mixed or not isinstance(bound, Call):
        return node
    written = node.copy()
    for side, given, arg in zip((written.left, written.right), types, bound.args, strict=True):
        # The kernel compares whole numbers, and floats, of all widths by themselves.
        if given != arg.type and not is_integer(given) and not is_float(given):
            side.replace(exp.cast(side.copy(), spark_name(arg.type), dialect="spark"))
    return written
