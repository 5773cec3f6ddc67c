"""Access path: choose how a hop finds candidates in a slice - by key, by value, by vector or by time alone.

Each kind returns, per driver row, a range of positions in an index of the slice: a superset of the matches.
The hop's residual checks what the range does not decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from weir.expr.evaluate import evaluate
from weir.expr.nodes import Expr, streams_of
from weir.kernel.index import ByKey, ByTime, ByValue, Spec, is_sortable
from weir.kernel.keys import Bools, Int64s, encode
from weir.kernel.partial import Partial
from weir.kernel.state_schema import StateSchema, find_member, key_name
from weir.kernel.value_range import Limit
from weir.query.predicate import AttributeClass, Band, Comparison, Conjunct, Cosine


@dataclass(frozen=True)
class KeyAccess:
    """Rows whose class codes equal the driver's; `probes` compute a code that the driver does not store."""

    classes: tuple[AttributeClass, ...]
    probes: tuple[Expr, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The stored code columns, in the order of the classes."""
        return tuple(map(key_name, self.classes))

    @cached_property
    def spec(self) -> ByKey:
        """The index it searches."""
        return ByKey(self.names)

    def codes(self, partial: Partial) -> tuple[list[Int64s], Bools | None]:
        """Return the driver's codes per class, and which rows can match at all (None: every row)."""
        codes: list[Int64s] = []
        valid: Bools | None = None
        for name, c, probe in zip(self.names, self.classes, self.probes, strict=True):
            if partial.stores(name):
                codes.append(partial.numbers(name))
                continue
            encoded, matchable = encode(evaluate(probe, partial.fetch, partial.rows), c.domain, c.null_safe)
            codes.append(encoded)
            if matchable is not None:
                valid = matchable if valid is None else valid & matchable
        return codes, valid


@dataclass(frozen=True, slots=True)
class ValueAccess:
    """Rows whose value lies within limits that the driver sets."""

    value: Expr
    limits: tuple[Limit, ...]

    @property
    def spec(self) -> Spec:
        """The index it searches."""
        return ByValue(self.value)

    @property
    def is_two_sided(self) -> bool:
        """True if the limits bound the value from below and from above."""
        ops = {limit.op for limit in self.limits}
        return "band" in ops or bool(ops & {"<", "<="} and ops & {">", ">="})


@dataclass(frozen=True, slots=True)
class VectorAccess:
    """Rows whose vector has a high cosine with the driver's."""

    probe: Expr
    value: Expr
    threshold: float
    spec: ClassVar[Spec] = ByTime()


@dataclass(frozen=True, slots=True)
class TimeAccess:
    """Every row in the driver's time range."""

    spec: ClassVar[Spec] = ByTime()


Access = KeyAccess | ValueAccess | VectorAccess | TimeAccess


def choose_access(
    classes: tuple[AttributeClass, ...],
    conjuncts: tuple[Conjunct, ...],
    bound: frozenset[str],
    partner: StateSchema,
) -> tuple[Access, frozenset[Conjunct]]:
    """Return the most selective access path into a partner, and the conjuncts that it decides by itself."""
    stored = [(c, find_member(c, bound)) for c in classes if key_name(c) in partner.keys]
    keyed = [(c, probe) for c, probe in stored if probe is not None]
    if keyed:
        return KeyAccess(tuple(c for c, _ in keyed), tuple(probe for _, probe in keyed)), frozenset()
    accesses = _value_accesses(conjuncts, partner.streams)
    if accesses:
        return max(accesses, key=lambda access: access[0].is_two_sided)
    for conjunct in conjuncts:
        if isinstance(conjunct, Cosine):
            probe, value = _split_sides(conjunct, partner.streams)
            return VectorAccess(probe, value, conjunct.threshold), frozenset()
    return TimeAccess(), frozenset()


def _value_accesses(
    conjuncts: tuple[Conjunct, ...], partner: frozenset[str]
) -> list[tuple[ValueAccess, frozenset[Conjunct]]]:
    """Return an access path for each expression of the partner that conjuncts limit, and what it decides."""
    limits: dict[Expr, list[tuple[Limit, Conjunct]]] = {}
    for conjunct in conjuncts:
        if isinstance(conjunct, Comparison | Band) and _limits_partner(conjunct, partner):
            probe, value = _split_sides(conjunct, partner)
            limits.setdefault(value, []).append((Limit.of(conjunct, probe, value), conjunct))
    return [
        (
            ValueAccess(value, tuple(limit for limit, _ in pairs)),
            frozenset(conjunct for limit, conjunct in pairs if limit.op != "band"),
        )
        for value, pairs in limits.items()
    ]


def _limits_partner(conjunct: Comparison | Band, partner: frozenset[str]) -> bool:
    """True if exactly one side belongs to the partner, and both sides sort alike."""
    left, right = streams_of(conjunct.left), streams_of(conjunct.right)
    split = (left <= partner and not right & partner) or (right <= partner and not left & partner)
    return split and conjunct.left.type == conjunct.right.type and is_sortable(conjunct.left.type)


def _split_sides(conjunct: Comparison | Band | Cosine, partner: frozenset[str]) -> tuple[Expr, Expr]:
    """Return the driver's side and the partner's."""
    left, right = conjunct.left, conjunct.right
    return (right, left) if streams_of(left) <= partner else (left, right)
