"""Find attribute classes, the expressions that equalities make equal, and derive conditions from them.

a.k = b.k AND b.k = c.k     →     class k: a.k = b.k = c.k
"""

from __future__ import annotations

from collections.abc import Collection, Container, Hashable, Iterable, Sequence
from itertools import groupby
from typing import TypeVar

import pyarrow as pa

from weir.expr.build import cast
from weir.expr.nodes import Call, Column, Expr, streams_of
from weir.expr.to_sql import to_sql
from weir.expr.types import spark_name
from weir.query.predicate import AttributeClass, Domain, Equality, Filter, Residual

T = TypeVar("T", bound=Hashable)
_types = pa.types
_OWN_DOMAIN = (
    _types.is_decimal, _types.is_string, _types.is_binary, _types.is_date32,
    _types.is_timestamp, _types.is_duration, _types.is_boolean,
)  # fmt: skip


def domain_of(kind: pa.DataType) -> Domain | None:
    """Return the type in which values of a type are compared for equality; None if they cannot be keys.

    >>> domain_of(pa.int32()), domain_of(pa.float32()), domain_of(pa.list_(pa.int32()))
    (DataType(int64), DataType(double), None)
    """
    if _types.is_integer(kind):
        return pa.int64()
    if _types.is_floating(kind):
        return pa.float64()
    return kind if any(is_type(kind) for is_type in _OWN_DOMAIN) else None


def find_attribute_classes(equalities: Iterable[Equality]) -> tuple[AttributeClass, ...]:
    """Group the sides of equalities into classes; equalities in different domains are never merged."""
    edges = [(equality, _ends(equality)) for equality in equalities]
    classes: dict[str, AttributeClass] = {}
    for group in find_components(ends for _, ends in edges):
        members, domain = tuple(member for member, _ in group), group[0][1]
        null_safe = all(equality.null_safe for equality, ends in edges if ends[0] in group)
        name = _choose_name(members, domain, classes)
        classes[name] = AttributeClass(name, members, domain, null_safe)
    return tuple(classes.values())


def find_components(links: Iterable[Collection[T]]) -> tuple[tuple[T, ...], ...]:
    """Group the items that links connect, in order of first appearance.

    >>> find_components([("a",), ("b", "c"), ("d", "a")])
    (('a', 'd'), ('b', 'c'))
    """
    groups: list[dict[T, None]] = []
    for link in links:
        linked = [group for group in groups if not group.keys().isdisjoint(link)]
        merged = dict.fromkeys(item for group in (*linked, link) for item in group)
        position = groups.index(linked[0]) if linked else len(groups)
        groups = [group for group in groups if group not in linked]
        groups.insert(position, merged)
    return tuple(map(tuple, groups))


def _ends(equality: Equality) -> tuple[tuple[Expr, Domain], tuple[Expr, Domain]]:
    domain = domain_of(equality.left.type)
    return (_strip_casts(equality.left, domain), domain), (_strip_casts(equality.right, domain), domain)


def _strip_casts(expr: Expr, domain: Domain) -> Expr:
    """Remove the casts that encoding in the domain does anyway."""
    match expr:
        case Call("cast", (inner,), type) if _widens(inner.type, type, domain):
            return _strip_casts(inner, domain)
    return expr


def _widens(narrow: pa.DataType, wide: pa.DataType, domain: Domain) -> bool:
    if _types.is_integer(narrow) and _types.is_integer(wide):
        return bool(narrow.bit_width <= wide.bit_width)
    # An integer cast to float first loses digits that a direct cast to double keeps.
    number = _types.is_integer(narrow) or _types.is_floating(narrow)
    return bool(number and wide == domain and _types.is_float64(domain))


def _choose_name(members: Sequence[Expr], domain: Domain, taken: Container[str]) -> str:
    """Choose the columns' name if all share it, else the equality."""
    shared = {member.name if isinstance(member, Column) else "" for member in members}
    text = "=".join(to_sql(member) for member in members)
    names: list[str] = [*(shared if len(shared) == 1 else ()), text, f"{text} as {spark_name(domain)}"]
    return next(name for name in names if name and name not in taken)


def derive_equalities(classes: Iterable[AttributeClass]) -> list[Filter | Residual]:
    """Derive the equalities between members of a class that read the same streams."""
    derived: list[Filter | Residual] = []
    for attribute_class in classes:
        members = sorted(attribute_class.members, key=_sorted_streams)
        for _, group in groupby(members, key=_sorted_streams):
            first, *others = group
            derived += [_equate(first, other, attribute_class) for other in others]
    return derived


def _sorted_streams(expr: Expr) -> list[str]:
    return sorted(streams_of(expr))


def _equate(left: Expr, right: Expr, attribute_class: AttributeClass) -> Filter | Residual:
    sides = (cast(left, attribute_class.domain), cast(right, attribute_class.domain))
    equality = Call("<=>" if attribute_class.null_safe else "=", sides, pa.bool_())
    stream, *others = streams_of(equality)
    return Residual(equality) if others else Filter(stream, equality)


def derive_not_null(classes: Iterable[AttributeClass]) -> list[Filter]:
    """Derive filters that keep NULL keys, which equal nothing, out of the state of a stream.

    Columns that are not nullable by their schema are filtered too: Arrow does not enforce that.
    """
    return [
        Filter(next(iter(streams_of(member))), Call("is not null", (member,), pa.bool_()))
        for attribute_class in classes
        if not attribute_class.null_safe
        for member in attribute_class.members
        if len(streams_of(member)) == 1
    ]
