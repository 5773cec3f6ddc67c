"""Which kind each conjunct of a condition is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import get_args

import pyarrow as pa

from weir.expr.nodes import Call, Expr, Literal, conjuncts, streams_of
from weir.query.classes import attribute_classes, domain_of, implied, never_null
from weir.query.constants import constant
from weir.query.model import Stream
from weir.query.predicate import (
    Band,
    Comparison,
    Conjunct,
    Cosine,
    Equality,
    Filter,
    Order,
    Predicate,
    Residual,
    TimeBound,
)
from weir.query.time_bounds import time_bounds

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<=>": "<=>"}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>", "<>": "="}
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19, 128: 38}


def classify(condition: Expr | None, streams: Sequence[Stream]) -> Predicate:
    """The predicate of a bound condition: each conjunct as the best kind it fits, and what follows."""
    times = {stream.name: stream.time for stream in streams}
    filters: list[Filter] = []
    kinds: list[Conjunct] = []
    bounds: list[TimeBound] = []
    for part in _parts(condition):
        between = time_bounds(part, times)
        bounds += between
        if len(streams_of(part)) < 2:
            filters += _filters(part, streams)
        elif not between:
            kinds.append(connection(part))
        elif len(between) == 2 and (key := equality(part)):
            kinds.append(key)
    return _with_consequences(filters, kinds, bounds)


def _with_consequences(filters: list[Filter], kinds: list[Conjunct], bounds: list[TimeBound]) -> Predicate:
    classes = attribute_classes(kind for kind in kinds if isinstance(kind, Equality))
    derived = implied(classes)
    filters += [kind for kind in derived if isinstance(kind, Filter)]
    kinds += [kind for kind in derived if isinstance(kind, Residual)]
    filters += never_null(classes)
    return Predicate(
        tuple(dict.fromkeys(filters)), tuple(dict.fromkeys(kinds)), classes, tuple(dict.fromkeys(bounds))
    )


def _parts(condition: Expr | None) -> tuple[Expr, ...]:
    if condition is None:
        return ()
    pushed = tuple(_push_not(part) for part in conjuncts(condition))
    return tuple(part for expr in pushed for part in conjuncts(expr))


def _push_not(expr: Expr) -> Expr:
    """The same condition with NOT moved below OR and into comparisons."""
    if not isinstance(expr, Call) or expr.function != "not" or not isinstance(expr.args[0], Call):
        return expr
    inner = expr.args[0]
    if inner.function == "not":
        return _push_not(inner.args[0])
    if inner.function == "or":
        return Call("and", tuple(_push_not(Call("not", (arg,), expr.type)) for arg in inner.args), expr.type)
    if inner.function in _OPPOSITE:
        return Call(_OPPOSITE[inner.function], inner.args, expr.type)
    return expr


def _filters(part: Expr, streams: Sequence[Stream]) -> list[Filter]:
    """A condition on one stream; one on none is dropped if true, else no stream has a row that fulfils it."""
    value = constant(part)
    if value is None:
        return [Filter(next(iter(streams_of(part))), part)]
    return [] if value.value else [Filter(stream.name, Literal(False, pa.bool_())) for stream in streams]


def connection(expr: Expr) -> Conjunct:
    """The first kind that fits a condition on two or more streams."""
    return next((found for kind in KINDS if (found := kind(expr))), Residual(expr))


def equality(expr: Expr) -> Equality | None:
    """`left = right` or `left <=> right`, of a type that has a key."""
    if not isinstance(expr, Call) or expr.function not in ("=", "<=>") or not _apart(*expr.args):
        return None
    left, right = expr.args
    if domain_of(left.type) is None or left.type != right.type:
        return None
    return Equality(left, right, expr.function == "<=>", expr)


def comparison(expr: Expr) -> Comparison | None:
    """`left < right` and its kin, of a type that has an order."""
    if not isinstance(expr, Call) or expr.function not in get_args(Order) or not _apart(*expr.args):
        return None
    left, right = expr.args
    if not _ordered(left.type) or left.type != right.type:
        return None
    return Comparison(left, expr.function, right, expr)  # type: ignore[arg-type]


def band(expr: Expr) -> Band | None:
    """`abs(left - right) <= width`, in either order."""
    side, op, width = _against_constant(expr)
    gap = _exact(side)
    if op not in ("<", "<=") or width is None or not isinstance(gap, Call) or gap.function != "abs":
        return None
    gap = gap.args[0]
    if not isinstance(gap, Call) or gap.function != "-" or len(gap.args) != 2 or not _apart(*gap.args):
        return None
    strict = op == "<"
    if not _numeric(gap.type) or width.value is None or not 0 <= width.value < math.inf:
        return None
    if strict and not width.value:
        return None
    return Band(gap.args[0], gap.args[1], width, strict, expr)


def cosine(expr: Expr) -> Cosine | None:
    """`cosine(left, right) >= threshold`, in either order."""
    side, op, threshold = _against_constant(expr)
    if op not in (">", ">=") or threshold is None or threshold.value is None:
        return None
    if not isinstance(side, Call) or side.function != "cosine" or not _apart(*side.args):
        return None
    return Cosine(side.args[0], side.args[1], float(threshold.value), op == ">", expr)


KINDS: tuple[Callable[[Expr], Conjunct | None], ...] = (equality, comparison, band, cosine)


def _apart(left: Expr, right: Expr) -> bool:
    reads_left, reads_right = streams_of(left), streams_of(right)
    return bool(reads_left and reads_right) and reads_left.isdisjoint(reads_right)


def _against_constant(expr: Expr) -> tuple[Expr, str, Literal | None]:
    """A comparison with a constant as (side, operator, constant), the constant to the right."""
    if not isinstance(expr, Call) or expr.function not in _MIRRORED:
        return expr, "", None
    left, right = expr.args
    mirrored = constant(left)
    if mirrored is not None:
        return right, _MIRRORED[expr.function], mirrored
    return left, expr.function, constant(right)


def _exact(expr: Expr) -> Expr:
    """The expression below a cast that loses nothing."""
    if isinstance(expr, Call) and expr.function == "cast" and _keeps(expr.args[0].type, expr.type):
        return expr.args[0]
    return expr


def _keeps(narrow: pa.DataType, wide: pa.DataType) -> bool:
    types = pa.types
    if types.is_float64(wide):
        return bool(types.is_float32(narrow) or (types.is_integer(narrow) and narrow.bit_width <= 32))
    if types.is_integer(wide):
        return bool(types.is_integer(narrow) and narrow.bit_width <= wide.bit_width)
    if not types.is_decimal(wide) or not (types.is_integer(narrow) or types.is_decimal(narrow)):
        return False
    digits, scale = _DIGITS[narrow.bit_width], 0
    if types.is_decimal(narrow):
        digits, scale = narrow.precision - narrow.scale, narrow.scale
    return bool(wide.precision - wide.scale >= digits and wide.scale >= scale)


def _numeric(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _ordered(kind: pa.DataType) -> bool:
    types = pa.types
    moments = types.is_date(kind) or types.is_timestamp(kind) or types.is_duration(kind)
    return _numeric(kind) or bool(moments or types.is_string(kind))
