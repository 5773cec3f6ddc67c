"""Classify the conjuncts of a condition by the kind of index that can answer them.

reads one stream                       → Filter
bounds the event times of two streams  → TimeBound
matches one of MATCHERS                → Equality, Comparison, Band or Cosine
anything else                          → Residual
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import get_args

import pyarrow as pa

from weir.expr.build import fold_constant
from weir.expr.nodes import Call, Expr, Literal, split_conjuncts, streams_of
from weir.expr.types import INTERVAL, is_number, is_time
from weir.query.attribute_classes import derive_equalities, derive_not_null, domain_of, find_attribute_classes
from weir.query.extract_time_bounds import extract_time_bounds
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

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<=>": "<=>"}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>", "<>": "="}
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19, 128: 38}


def classify(condition: Expr | None, streams: Sequence[Stream]) -> Predicate:
    """Classify each conjunct of a bound condition, and add the conditions that follow from equalities."""
    times = {stream.name: stream.time for stream in streams}
    filters: list[Filter] = []
    conjuncts: list[Conjunct] = []
    bounds: list[TimeBound] = []
    for part in _split(condition):
        part_bounds = extract_time_bounds(part, times)
        bounds += part_bounds
        if len(streams_of(part)) < 2:
            filters += _to_filters(part, streams)
        elif not part_bounds:
            conjuncts.append(classify_conjunct(part))
        elif len(part_bounds) == 2 and (key := match_equality(part)):
            conjuncts.append(key)
    return _add_derived(filters, conjuncts, bounds)


def _add_derived(filters: list[Filter], conjuncts: list[Conjunct], bounds: list[TimeBound]) -> Predicate:
    classes = find_attribute_classes(conjunct for conjunct in conjuncts if isinstance(conjunct, Equality))
    derived = derive_equalities(classes)
    filters += [condition for condition in derived if isinstance(condition, Filter)]
    conjuncts += [condition for condition in derived if isinstance(condition, Residual)]
    filters += derive_not_null(classes)
    return Predicate(
        tuple(dict.fromkeys(filters)), tuple(dict.fromkeys(conjuncts)), classes, tuple(dict.fromkeys(bounds))
    )


def _split(condition: Expr | None) -> Iterator[Expr]:
    for part in split_conjuncts(condition) if condition is not None else ():
        yield from split_conjuncts(_push_not(part))


def _push_not(expr: Expr) -> Expr:
    """Move NOT below OR and into comparisons."""
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


def _to_filters(part: Expr, streams: Sequence[Stream]) -> list[Filter]:
    """Filter the condition's stream; a constant condition is dropped if true, else it filters all streams."""
    value = fold_constant(part)
    if value is None:
        return [Filter(next(iter(streams_of(part))), part)]
    return [] if value.value else [Filter(stream.name, Literal(False, pa.bool_())) for stream in streams]


def classify_conjunct(expr: Expr) -> Conjunct:
    """Classify a condition on two or more streams by the first matcher that accepts it."""
    return next((conjunct for match in MATCHERS if (conjunct := match(expr))), Residual(expr))


def match_equality(expr: Expr) -> Equality | None:
    """Match `left = right` or `left <=> right` of a type that can be a key."""
    if not isinstance(expr, Call) or expr.function not in ("=", "<=>") or not _read_different(*expr.args):
        return None
    left, right = expr.args
    if domain_of(left.type) is None or left.type != right.type:
        return None
    return Equality(left, right, expr.function == "<=>", expr)


def match_comparison(expr: Expr) -> Comparison | None:
    """Match `<`, `<=`, `>` and `>=` of a type that has an order."""
    if not isinstance(expr, Call) or expr.function not in get_args(Order) or not _read_different(*expr.args):
        return None
    left, right = expr.args
    if not _is_ordered(left.type) or left.type != right.type:
        return None
    return Comparison(left, expr.function, right, expr)  # type: ignore[arg-type]


def match_band(expr: Expr) -> Band | None:
    """Match `abs(left - right) <= width`, in either order."""
    side, op, width = _split_comparison(expr)
    distance = _strip_exact_cast(side)
    if op not in ("<", "<=") or width is None or not isinstance(distance, Call) or distance.function != "abs":
        return None
    gap = distance.args[0]
    if not isinstance(gap, Call) or gap.function != "-" or not _read_different(*gap.args):
        return None
    if not is_number(gap.type) or width.value is None or not 0 <= width.value < math.inf:
        return None
    if op == "<" and not width.value:
        return None
    return Band(gap.args[0], gap.args[1], width, expr)


def match_cosine(expr: Expr) -> Cosine | None:
    """Match `cosine(left, right) >= threshold`, in either order."""
    side, op, threshold = _split_comparison(expr)
    if op not in (">", ">=") or threshold is None or threshold.value is None:
        return None
    if not isinstance(side, Call) or side.function != "cosine" or not _read_different(*side.args):
        return None
    return Cosine(side.args[0], side.args[1], float(threshold.value), expr)


MATCHERS: tuple[Callable[[Expr], Conjunct | None], ...] = (
    match_equality,
    match_comparison,
    match_band,
    match_cosine,
)


def _read_different(left: Expr, right: Expr) -> bool:
    left_streams, right_streams = streams_of(left), streams_of(right)
    return bool(left_streams and right_streams) and left_streams.isdisjoint(right_streams)


def _split_comparison(expr: Expr) -> tuple[Expr, str, Literal | None]:
    """Split a comparison with a constant into (side, operator, constant), as if the constant stood right."""
    if not isinstance(expr, Call) or expr.function not in _MIRRORED:
        return expr, "", None
    left, right = expr.args
    left_constant = fold_constant(left)
    if left_constant is not None:
        return right, _MIRRORED[expr.function], left_constant
    return left, expr.function, fold_constant(right)


def _strip_exact_cast(expr: Expr) -> Expr:
    """Remove a cast that loses nothing."""
    if isinstance(expr, Call) and expr.function == "cast" and _is_exact(expr.args[0].type, expr.type):
        return expr.args[0]
    return expr


def _is_exact(narrow: pa.DataType, wide: pa.DataType) -> bool:
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


def _is_ordered(kind: pa.DataType) -> bool:
    return is_number(kind) or is_time(kind) or kind in (INTERVAL, pa.string())
