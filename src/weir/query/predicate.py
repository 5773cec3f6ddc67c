"""The predicate of a join: its conjuncts, by the kind of index that can answer them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as Choice
from typing import TypeAlias, get_args

import pyarrow as pa

from weir.expr.nodes import Call, Expr, Literal, streams_of
from weir.query.windows import TimeBound

Order = Choice["<", "<=", ">", ">="]
Domain: TypeAlias = pa.DataType


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on the rows of one stream alone."""

    stream: str
    expr: Expr

    def __post_init__(self) -> None:
        if not streams_of(self.expr) <= {self.stream}:
            raise ValueError(f"a filter of '{self.stream}' may not read other streams: {self.expr}")

    @property
    def streams(self) -> frozenset[str]:
        """The stream that it filters."""
        return frozenset([self.stream])


@dataclass(frozen=True, slots=True)
class Connection:
    """Base of the conjuncts that connect streams; `expr` is the exact condition."""

    expr: Expr

    @property
    def streams(self) -> frozenset[str]:
        """The streams that it connects."""
        return streams_of(self.expr)


@dataclass(frozen=True, slots=True)
class Pair(Connection):
    """Base of the conjuncts whose two sides read different streams."""

    left: Expr
    right: Expr

    def __post_init__(self) -> None:
        left, right = streams_of(self.left), streams_of(self.right)
        if not left or not right or left & right:
            raise ValueError(
                f"the sides must read different streams, each at least one: {self.left} and {self.right}"
            )


@dataclass(frozen=True, slots=True)
class Equality(Pair):
    """`left = right`, or `left <=> right` if null-safe."""

    null_safe: bool


@dataclass(frozen=True, slots=True)
class Comparison(Pair):
    """`left op right` over an ordered type."""

    op: Order

    def __post_init__(self) -> None:
        Pair.__post_init__(self)  # super() does not work in a dataclass with slots
        if self.op not in get_args(Order):
            raise ValueError(f"a comparison is one of {get_args(Order)}; got {self.op!r}")


@dataclass(frozen=True, slots=True)
class Band(Pair):
    """`abs(left - right) <= width` over numbers; where `expr` says `<`, it excludes the width itself."""

    width: Literal

    def __post_init__(self) -> None:
        Pair.__post_init__(self)  # super() does not work in a dataclass with slots
        if self.width.value is None or not self.width.value >= 0:
            raise ValueError(f"a band has a width of at least zero; got {self.width}")


@dataclass(frozen=True, slots=True)
class Cosine(Pair):
    """`cosine(left, right) >= threshold` over vectors; where `expr` says `>`, it excludes the threshold."""

    threshold: float


@dataclass(frozen=True, slots=True)
class Residual(Connection):
    """A condition over two or more streams that no index can answer."""

    def __post_init__(self) -> None:
        if len(streams_of(self.expr)) < 2:
            raise ValueError(f"a condition on fewer than two streams is a filter: {self.expr}")


Conjunct = Equality | Comparison | Band | Cosine | Residual


def require_success(expr: Expr) -> Filter | Residual:
    """Return the condition that an expression does not fail, whatever its value is."""
    check = Call("succeeds", (expr,), pa.bool_())
    stream, *others = streams_of(expr)
    return Residual(check) if others else Filter(stream, check)


def is_check(condition: Filter | Conjunct) -> bool:
    """True for a condition that `require_success` made; users have not written it."""
    return isinstance(condition.expr, Call) and condition.expr.function == "succeeds"


@dataclass(frozen=True, slots=True)
class AttributeClass:
    """Expressions that equalities make equal, directly or transitively, compared in one domain.

    A member may have a narrower type than the domain; encoding casts it to the domain.
    """

    name: str
    members: tuple[Expr, ...]
    domain: Domain
    null_safe: bool

    def __post_init__(self) -> None:
        if len(set(self.members)) != len(self.members) or len(self.members) < 2:
            raise ValueError(f"class '{self.name}' needs two or more different members")

    @property
    def streams(self) -> frozenset[str]:
        """The streams that some member reads."""
        return frozenset().union(*map(streams_of, self.members))


@dataclass(frozen=True, slots=True)
class Predicate:
    """A conjunction: filters of single streams, conjuncts that join streams, and bounds on event times."""

    filters: tuple[Filter, ...]
    conjuncts: tuple[Conjunct, ...]
    classes: tuple[AttributeClass, ...]
    bounds: tuple[TimeBound, ...]

    @property
    def streams(self) -> frozenset[str]:
        """The streams that some part reads."""
        parts = (*self.filters, *self.conjuncts, *self.bounds)
        return frozenset(name for part in parts for name in part.streams)
