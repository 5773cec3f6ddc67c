"""Time bounds found in a condition: comparisons that are linear in the time columns of two streams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from weir.expr.nodes import Call, Column, Expr
from weir.query.constants import constant
from weir.query.predicate import TimeBound


@dataclass(frozen=True, slots=True)
class Linear:
    """Event times, each with its sign, plus a constant in microseconds."""

    times: Mapping[str, int]
    microseconds: int = 0

    def plus(self, other: Linear, sign: int = 1) -> Linear:
        """The sum, or the difference for sign -1; times that cancel are gone."""
        times = Counter(self.times)
        for stream, count in other.times.items():
            times[stream] += sign * count
        kept = {stream: count for stream, count in times.items() if count}
        return Linear(kept, self.microseconds + sign * other.microseconds)


def time_bounds(expr: Expr, times: Mapping[str, str]) -> tuple[TimeBound, ...]:
    """The bounds a comparison is equal to, given each stream's time column; none if it is of another kind."""
    if not isinstance(expr, Call) or expr.function not in ("<", "<=", ">", ">=", "=", "<=>"):
        return ()
    left, right = expr.args
    if expr.function in (">", ">="):
        return time_bounds(Call(expr.function.replace(">", "<"), (right, left), expr.type), times)
    if expr.function in ("<", "<=") and isinstance(left, Call) and left.function == "abs":
        return _both_sides(expr.function, left.args[0], right, times)
    return _between(expr.function, _linear(left, times), _linear(right, times))


def _both_sides(op: str, gap: Expr, limit: Expr, times: Mapping[str, str]) -> tuple[TimeBound, ...]:
    """The bounds of `abs(gap) op limit`: gap op limit, and -limit op gap."""
    inside, most = _linear(gap, times), _linear(limit, times)
    if inside is None or most is None:
        return ()
    above, below = _between(op, inside, most), _between(op, Linear({}).plus(most, -1), inside)
    return above + below if above and below else ()


def _between(op: str, left: Linear | None, right: Linear | None) -> tuple[TimeBound, ...]:
    if left is None or right is None:
        return ()
    gap = left.plus(right, -1)
    if sorted(gap.times.values()) != [-1, 1]:
        return ()
    earlier, later = sorted(gap.times, key=lambda stream: gap.times[stream])
    return _bounds(op, earlier, later, -gap.microseconds)


def _bounds(op: str, earlier: str, later: str, limit: int) -> tuple[TimeBound, ...]:
    """The bounds of `T_later - T_earlier op limit`; a strict one ends a microsecond sooner."""
    most = TimeBound(earlier, later, limit - (op == "<"))
    return (most,) if op in ("<", "<=") else (TimeBound(later, earlier, -limit), most)


def _linear(expr: Expr, times: Mapping[str, str]) -> Linear | None:
    if isinstance(expr, Column):
        return Linear({expr.stream: 1}) if times.get(expr.stream) == expr.name else None
    if not isinstance(expr, Call):
        return _offset(expr)
    if expr.function == "cast" and _is_time(expr.type) and _is_time(expr.args[0].type):
        return _linear(expr.args[0], times)
    if expr.function in ("+", "-", "negative"):
        terms = [_linear(arg, times) for arg in expr.args]
        return _total(terms, 1 if expr.function == "+" else -1)
    return _offset(expr)


def _total(terms: list[Linear | None], sign: int) -> Linear | None:
    """The first term and, with the sign, the last; a single term stands alone behind its sign."""
    first, last = terms[0] if len(terms) > 1 else Linear({}), terms[-1]
    return None if first is None or last is None else first.plus(last, sign)


def _offset(expr: Expr) -> Linear | None:
    value = constant(expr) if pa.types.is_duration(expr.type) else None
    return None if value is None or value.value is None else Linear({}, value.value)


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind))
