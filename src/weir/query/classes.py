"""Attribute classes: what the equalities of a predicate make equal, directly or through others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import pyarrow as pa

from weir.expr.nodes import Call, Column, Expr, streams_of
from weir.expr.text import show
from weir.expr.types import spark_name
from weir.query.components import components
from weir.query.predicate import AttributeClass, Domain, Equality, Filter, Residual

_types = pa.types
_AS_THEY_ARE = (
    _types.is_decimal, _types.is_string, _types.is_binary, _types.is_date32,
    _types.is_timestamp, _types.is_duration, _types.is_boolean,
)  # fmt: skip


def domain_of(kind: pa.DataType) -> Domain | None:
    """The type in which values of a type are compared for equality, None if they have no such key.

    >>> domain_of(pa.int32()), domain_of(pa.float32()), domain_of(pa.list_(pa.int32()))
    (DataType(int64), DataType(double), None)
    """
    if _types.is_integer(kind):
        return pa.int64()
    if _types.is_floating(kind):
        return pa.float64()
    return kind if any(accepts(kind) for accepts in _AS_THEY_ARE) else None


def attribute_classes(equalities: Iterable[Equality]) -> tuple[AttributeClass, ...]:
    """The classes of all equalities; edges that compare in different domains are never merged."""
    edges = [(equality, _ends(equality)) for equality in equalities]
    found: list[AttributeClass] = []
    for group in components(ends for _, ends in edges):
        members = tuple(member for member, _ in group)
        null_safe = all(equality.null_safe for equality, ends in edges if ends[0] in group)
        name = _name(members, group[0][1], {known.name for known in found})
        found.append(AttributeClass(name, members, group[0][1], null_safe))
    return tuple(found)


def _ends(equality: Equality) -> tuple[tuple[Expr, Domain], tuple[Expr, Domain]]:
    domain = domain_of(equality.left.type)
    return (_bare(equality.left, domain), domain), (_bare(equality.right, domain), domain)


def _bare(expr: Expr, domain: Domain) -> Expr:
    """The expression without the casts that encoding in the domain makes anyway."""
    while (
        isinstance(expr, Call) and expr.function == "cast" and _widens(expr.args[0].type, expr.type, domain)
    ):
        expr = expr.args[0]
    return expr


def _widens(narrow: pa.DataType, wide: pa.DataType, domain: Domain) -> bool:
    if _types.is_integer(narrow) and _types.is_integer(wide):
        return bool(narrow.bit_width <= wide.bit_width)
    # An integer cast to float loses digits that a cast straight to double would keep.
    number = _types.is_integer(narrow) or _types.is_floating(narrow)
    return bool(number and wide == domain and _types.is_float64(domain))


def _name(members: Sequence[Expr], domain: Domain, taken: set[str]) -> str:
    shared = {member.name if isinstance(member, Column) else "" for member in members}
    text = "=".join(show(member) for member in members)
    names: list[str] = [*(shared if len(shared) == 1 else ()), text, f"{text} as {spark_name(domain)}"]
    return next(name for name in names if name and name not in taken)


def implied(classes: Iterable[AttributeClass]) -> list[Filter | Residual]:
    """The equalities between members that read the same streams, which no single edge states."""
    found: list[Filter | Residual] = []
    for known in classes:
        members = sorted(known.members, key=_reads)
        for _, group in groupby(members, key=_reads):
            first, *others = group
            found += [_condition(_equal(first, other, known)) for other in others]
    return found


def _reads(expr: Expr) -> list[str]:
    return sorted(streams_of(expr))


def _equal(left: Expr, right: Expr, known: AttributeClass) -> Call:
    sides = (_cast(left, known.domain), _cast(right, known.domain))
    return Call("<=>" if known.null_safe else "=", sides, pa.bool_())


def _cast(expr: Expr, kind: pa.DataType) -> Expr:
    return expr if expr.type == kind else Call("cast", (expr,), kind)


def _condition(expr: Expr) -> Filter | Residual:
    streams = streams_of(expr)
    return Filter(next(iter(streams)), expr) if len(streams) == 1 else Residual(expr)


def never_null(classes: Iterable[AttributeClass]) -> list[Filter]:
    """The filters that keep nulls, which equal nothing, out of the state of a stream.

    Columns that a schema calls not nullable have them too: Arrow does not hold a table to that.
    """
    return [
        Filter(next(iter(streams_of(member))), Call("is not null", (member,), pa.bool_()))
        for known in classes
        if not known.null_safe
        for member in known.members
        if len(streams_of(member)) == 1
    ]
