"""Classify the conjuncts of a condition by the kind of index that can answer them.

reads one stream                       → Filter
bounds the event times of two streams  → TimeBound
matches one of MATCHERS                → Equality, Comparison, Band or Cosine
anything else                          → Residual
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import pyarrow as pa

from weir.errors import QueryError
from weir.expr.build import fold_constant
from weir.expr.nodes import (
    Call,
    Column,
    Expr,
    Literal,
    Mode,
    is_quarantined,
    split_conjuncts,
    streams_of,
    without_flags,
)
from weir.expr.simplify import simplify
from weir.expr.to_sql import to_sql
from weir.expr.types import INTERVAL, is_number, is_time
from weir.expr.zones import find_zone
from weir.query.attribute_classes import derive_equalities, derive_not_null, domain_of, find_attribute_classes
from weir.query.model import Stream
from weir.query.predicate import (
    Band,
    Comparison,
    Conjunct,
    Cosine,
    Equality,
    Filter,
    Pair,
    Predicate,
    Residual,
    require_success,
)
from weir.query.windows import TimeBound

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<=>": "<=>"}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>", "<>": "="}
# A linear expression: the coefficient of each stream's event time, and a constant in microseconds.
Linear = Mapping[str, int]
_CONSTANT = ""
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19, 128: 38}


def classify(condition: Expr | None, streams: Sequence[Stream]) -> Predicate:
    """Classify each conjunct of a bound condition, and add the conditions that follow from equalities."""
    times = {stream.name: stream.time for stream in streams}
    parts = tuple(split_condition(condition))
    # Spark evaluates nothing of a condition that is never true, so these filters come first.
    never = [simple for simple in map(simplify, parts) if _is_never_true(simple)]
    parts = tuple(map(_simplify_part, parts))
    bounds = {part: extract_time_bounds(part, times) for part in parts}
    filters = _to_filters(never[0], streams) if never else []
    conjuncts: list[Conjunct] = []
    checks: list[Filter | Residual] = []
    for part, part_bounds in bounds.items():
        if len(streams_of(part)) < 2:
            filters += _to_filters(part, streams)
        elif not part_bounds:
            conjunct = classify_conjunct(part)
            sides = _check_sides(conjunct)
            # Where a side fails the check leaves the row out, so that a computed column may be a key.
            conjuncts.append(classify_conjunct(without_flags(part)) if sides else conjunct)
            checks += sides
        elif len(part_bounds) == 2 and (key := match_equality(part)):
            conjuncts.append(key)
    classes = find_attribute_classes(conjunct for conjunct in conjuncts if isinstance(conjunct, Equality))
    for derived in (*checks, *derive_equalities(classes), *derive_not_null(classes)):
        filters += [derived] if isinstance(derived, Filter) else []
        conjuncts += [derived] if isinstance(derived, Residual) else []
    loose = (loosen_time_bounds(part, times) for part in parts if not bounds[part])
    all_bounds = tuple(dict.fromkeys(chain(*bounds.values(), *loose)))
    return Predicate(tuple(dict.fromkeys(filters)), tuple(dict.fromkeys(conjuncts)), classes, all_bounds)


def _check_sides(conjunct: Conjunct) -> list[Filter | Residual]:
    """Derive checks of the sides whose failures are reported: an index would take them for NULL."""
    sides = (conjunct.left, conjunct.right) if isinstance(conjunct, Pair) else ()
    return [require_success(side) for side in sides if is_quarantined(side)]


def _is_never_true(part: Expr) -> bool:
    return isinstance(part, Literal) and not part.value


def _simplify_part(part: Expr) -> Expr:
    """Simplify a conjunct, unless it would no longer connect its streams."""
    simple = simplify(part)
    return simple if streams_of(simple) == streams_of(part) else part


def split_condition(condition: Expr | None) -> Iterator[Expr]:
    """Split a condition into its conjuncts, also those below NOT and OR."""
    for part in split_conjuncts(condition) if condition is not None else ():
        yield from split_conjuncts(_push_not(part))


def _push_not(expr: Expr) -> Expr:
    """Move NOT below OR and into comparisons."""
    match expr:
        case Call("not", (Call("not", (inner,)),)):
            return _push_not(inner)
        case Call("not", (Call("or", args),), type):
            return Call("and", tuple(_push_not(Call("not", (arg,), type)) for arg in args), type)
        case Call("not", (Call(op, args),), type) if op in _OPPOSITE:
            return Call(_OPPOSITE[op], args, type)
    return expr


def _to_filters(part: Expr, streams: Sequence[Stream]) -> list[Filter]:
    """Filter the condition's stream; a constant condition is dropped if true, else it filters all streams."""
    if streams_of(part):
        return [Filter(next(iter(streams_of(part))), part)]
    value = fold_constant(part)
    if value is None:
        raise QueryError(f"the condition {to_sql(part)} fails for every row; correct it")
    return [] if value.value else [Filter(stream.name, Literal(False, pa.bool_())) for stream in streams]


def classify_conjunct(expr: Expr) -> Conjunct:
    """Classify a condition on two or more streams by the first matcher that accepts it."""
    return next((conjunct for match in MATCHERS if (conjunct := match(expr))), Residual(expr))


def match_equality(expr: Expr) -> Equality | None:
    """Match `left = right` or `left <=> right` of a type that can be a key."""
    match expr:
        case Call("=" | "<=>" as op, (left, right)) if _can_compare(left, right) and domain_of(left.type):
            return Equality(expr, left, right, op == "<=>")
    return None


def match_comparison(expr: Expr) -> Comparison | None:
    """Match `<`, `<=`, `>` and `>=` of a type that has an order."""
    match expr:
        case Call("<" | "<=" | ">" | ">=" as op, (left, right)) if _can_compare(left, right):
            is_ordered = is_number(left.type) or is_time(left.type) or left.type in (INTERVAL, pa.string())
            return Comparison(expr, left, right, op) if is_ordered else None
    return None


def match_band(expr: Expr) -> Band | None:
    """Match `abs(left - right) <= width`, in either order."""
    side, op, width = _split_comparison(expr)
    match side:
        case Call("cast", (inner,), type) if _is_exact(inner.type, type):
            side = inner
    match side:
        case Call("abs", (Call("-", (left, right), type),)) if op in ("<", "<=") and is_number(type):
            is_width = width.value is not None and 0 <= width.value < math.inf and (op == "<=" or width.value)
            return Band(expr, left, right, width) if is_width and _read_different(left, right) else None
    return None


def match_cosine(expr: Expr) -> Cosine | None:
    """Match `cosine(left, right) >= threshold`, in either order."""
    match _split_comparison(expr):
        case Call("cosine", (left, right)), ">" | ">=", Literal(threshold) if _read_different(left, right):
            return None if threshold is None else Cosine(expr, left, right, float(threshold))
    return None


MATCHERS: tuple[Callable[[Expr], Conjunct | None], ...]
MATCHERS = (match_equality, match_comparison, match_band, match_cosine)


def _read_different(left: Expr, right: Expr) -> bool:
    left_streams, right_streams = streams_of(left), streams_of(right)
    return bool(left_streams and right_streams) and left_streams.isdisjoint(right_streams)


def _can_compare(left: Expr, right: Expr) -> bool:
    return bool(left.type == right.type) and _read_different(left, right)


def _split_comparison(expr: Expr) -> tuple[Expr, str, Literal]:
    """Split a comparison into its side, operator and constant, as if that stood right; NULL if none."""
    if not isinstance(expr, Call) or expr.function not in _MIRRORED:
        return expr, "", Literal(None, pa.null())
    left, right = expr.args
    if constant := fold_constant(left):
        return right, _MIRRORED[expr.function], constant
    return left, expr.function, fold_constant(right) or Literal(None, pa.null())


def _is_exact(narrow: pa.DataType, wide: pa.DataType) -> bool:
    """True if a cast from one type to the other loses nothing."""
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


def extract_time_bounds(expr: Expr, times: Mapping[str, str]) -> tuple[TimeBound, ...]:
    """Return the bounds that a comparison is equivalent to, given the streams' time columns; else none.

    abs(b.ts - a.ts) <= INTERVAL 5 SECONDS     →     b - a <= 5 seconds and a - b <= 5 seconds
    """
    match expr:
        case Call(">" | ">=" as op, (left, right), type):
            return extract_time_bounds(Call(op.replace(">", "<"), (right, left), type), times)
        case Call("<" | "<=" as op, (Call("abs", (gap,)), limit)):
            negative = Call("negative", (limit,), limit.type)
            upper, lower = (_bound_gap(op, *sides, times) for sides in ((gap, limit), (negative, gap)))
            return upper + lower if upper and lower else ()
        case Call("<" | "<=" | "=" | "<=>" as op, (left, right)):
            return _bound_gap(op, left, right, times)
    return ()


def loosen_time_bounds(part: Expr, times: Mapping[str, str]) -> tuple[TimeBound, ...]:
    """Return bounds that follow from a comparison of local times, wide enough for all offsets of the zone."""
    plain, slack = _ignore_zones(part)
    if not slack:
        return ()
    return tuple(
        replace(bound, microseconds=bound.microseconds + slack) for bound in extract_time_bounds(plain, times)
    )


def _ignore_zones(expr: Expr) -> tuple[Expr, int]:
    """Return the expression with local times taken for UTC, and by how much that can change its value."""
    if not isinstance(expr, Call):
        return expr, 0
    args, slacks = zip(*map(_ignore_zones, expr.args), strict=True) if expr.args else ((), ())
    if expr.mode.zone is None:
        return replace(expr, args=args), sum(slacks)
    zone = find_zone(expr.mode.zone)
    own = zone.largest_offset if expr.function == "cast" else 2 * zone.offset_range
    return replace(expr, args=args, mode=replace(expr.mode, zone=None)), sum(slacks) + own


def _bound_gap(op: str, left: Expr, right: Expr, times: Mapping[str, str]) -> tuple[TimeBound, ...]:
    gap = _to_linear(Call("-", (left, right), INTERVAL), times)
    counts = {stream: count for stream, count in (gap or {}).items() if stream != _CONSTANT and count}
    if gap is None or sorted(counts.values()) != [-1, 1]:
        return ()
    earlier, later = sorted(counts, key=counts.__getitem__)
    limit = -gap.get(_CONSTANT, 0)  # T_later - T_earlier op limit; a strict bound is one microsecond less
    upper = TimeBound(earlier, later, limit - (op == "<"))
    return (upper,) if op in ("<", "<=") else (TimeBound(later, earlier, -limit), upper)


def _add(left: Linear, right: Linear, sign: int) -> Linear:
    return {key: left.get(key, 0) + sign * right.get(key, 0) for key in (*left, *right)}


def _to_linear(expr: Expr, times: Mapping[str, str]) -> Linear | None:
    match expr:
        case Column(stream, name):
            return {stream: 1} if times.get(stream) == name else None
        case Call(mode=Mode(zone=str())):
            return None
        case Call("cast", (inner,), type) if all(map(pa.types.is_timestamp, (type, inner.type))):
            return _to_linear(inner, times)
        case Call("+" | "-" | "negative" as op, args):
            *left, right = [_to_linear(arg, times) for arg in args]
            first = left[0] if left else {}
            return None if first is None or right is None else _add(first, right, 1 if op == "+" else -1)
    constant = fold_constant(expr) if pa.types.is_duration(expr.type) else None
    return None if constant is None or constant.value is None else {_CONSTANT: constant.value}
