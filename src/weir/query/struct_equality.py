"""Split an equality of structs, or of row values, into equalities of their fields.

    a.st = b.st                 →     a.st IS NOT NULL, b.st IS NOT NULL, a.st.x <=> b.st.x, a.st.y <=> b.st.y
    (a.x, a.y) = (b.x, b.y)     →     a.x <=> b.x, a.y <=> b.y

Spark compares structs field by field, and NULL in both is equal. The fields can be keys, a struct cannot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import pyarrow as pa
from sqlglot import exp

from weir.errors import QueryError
from weir.expr.bind import bind, different_rows
from weir.expr.dialect import Node
from weir.expr.scope import Scope
from weir.query.text_numbers import write_casts

_Pairs = Iterator[Node]


def expand_struct_equality(node: Node, scope: Scope) -> list[Node] | None:
    """Return the conjuncts that an equality of structs stands for; None for any other node."""
    if not isinstance(node, exp.EQ | exp.NullSafeEQ):
        return None
    left, right = node.left.unnest(), node.right.unnest()
    pairs = _pair_fields(left, right, scope)
    if pairs is None:
        return None
    tests = _equal_nulls(left, right, scope)
    if isinstance(node, exp.EQ):
        tests = [_is_null(side, negated=True) for side in (left, right) if _is_nullable(side)]
    equalities = [*tests, *chain.from_iterable(_equate(*pair, scope) for pair in pairs)]
    if isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple) and _have_different_types(pairs, scope):
        raise different_rows(node)
    return equalities


def _have_different_types(pairs: Sequence[tuple[Node, Node]], scope: Scope) -> bool:
    try:
        return any(bind(x, scope).type != bind(y, scope).type for x, y in pairs)
    except QueryError:
        return False  # the engine may know what the kernel does not


def _equate(left: Node, right: Node, scope: Scope) -> _Pairs:
    pairs = _pair_fields(left, right, scope)
    if pairs is None:
        equality = exp.NullSafeEQ(this=left, expression=right)
        if write_casts(equality, scope) is not equality:  # as Spark, which casts no fields
            text = f"{left.sql('spark')} and {right.sql('spark')}"
            raise QueryError(f"fields of structs and rows are not cast: {text}; cast one side")
        yield equality
        return
    yield from _equal_nulls(left, right, scope)
    for pair in pairs:
        yield from _equate(*pair, scope)


def _equal_nulls(left: Node, right: Node, scope: Scope) -> list[Node]:
    if not _is_nullable(left) and not _is_nullable(right):
        return []
    sides = [exp.paren(_is_null(s)) if _is_nullable(s) else exp.false() for s in (left, right)]
    return [exp.NullSafeEQ(this=sides[0], expression=sides[1])]


def _pair_fields(left: Node, right: Node, scope: Scope) -> list[tuple[Node, Node]] | None:
    fields = [_fields(side, scope) for side in (left, right)]
    if fields[0] is None or fields[1] is None or len(fields[0]) != len(fields[1]):
        return None
    names = [[name.lower() for name, _ in side] for side in fields if side is not None]
    if all(names[0]) and all(names[1]) and names[0] != names[1]:
        return None
    return [(a.unnest(), b.unnest()) for (_, a), (_, b) in zip(*fields, strict=True)]


def _fields(node: Node, scope: Scope) -> list[tuple[str, Node]] | None:
    """The fields of a struct by name; those of row values have none."""
    if isinstance(node, exp.Tuple):
        return [("", value) for value in node.expressions]
    if isinstance(node, exp.Struct) or (isinstance(node, exp.Anonymous) and node.name.lower() == "struct"):
        return [(_name(value), value.unalias()) for value in node.expressions]
    try:
        type = bind(node, scope).type if isinstance(node, exp.Column | exp.Dot) else pa.null()
    except QueryError:
        return None
    if not pa.types.is_struct(type):
        return None
    return [(f.name, exp.Dot(this=node.copy(), expression=exp.to_identifier(f.name))) for f in type]


def _name(value: Node) -> str:
    return value.alias_or_name if isinstance(value, exp.Alias | exp.Column) else ""


def _is_nullable(node: Node) -> bool:
    return isinstance(node, exp.Column | exp.Dot)


def _is_null(node: Node, negated: bool = False) -> Node:
    test = exp.Is(this=node.copy(), expression=exp.null())
    return exp.Not(this=test) if negated else test
