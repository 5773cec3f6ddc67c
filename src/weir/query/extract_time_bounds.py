"""Extract time bounds from a condition: comparisons that are linear in the time columns of two streams.

abs(b.ts - a.ts) <= INTERVAL 5 SECONDS     →     b - a <= 5 seconds and a - b <= 5 seconds
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from weir.expr.build import fold_constant
from weir.expr.nodes import Call, Column, Expr
from weir.query.predicate import TimeBound


@dataclass(frozen=True, slots=True)
class Linear:
    """A linear expression: a coefficient for each stream's event time, plus a constant in microseconds."""

    times: Mapping[str, int]
    microseconds: int = 0

    def plus(self, other: Linear, sign: int = 1) -> Linear:
        """Add the other expression, or subtract it with sign -1; event times that cancel are removed."""
        times = Counter(self.times)
        for stream, count in other.times.items():
            times[stream] += sign * count
        kept = {stream: count for stream, count in times.items() if count}
        return Linear(kept, self.microseconds + sign * other.microseconds)


def extract_time_bounds(expr: Expr, times: Mapping[str, str]) -> tuple[TimeBound, ...]:
    """Return the bounds that a comparison is equivalent to, given the streams' time columns; else none."""
    match expr:
        case Call(">" | ">=" as op, (left, right), type):
            return extract_time_bounds(Call(op.replace(">", "<"), (right, left), type), times)
        case Call("<" | "<=" as op, (Call("abs", (gap,)), limit)):
            return _bound_absolute(op, gap, limit, times)
        case Call("<" | "<=" | "=" | "<=>" as op, (left, right)):
            return _bound_difference(op, _to_linear(left, times), _to_linear(right, times))
    return ()


def _bound_absolute(op: str, gap: Expr, limit: Expr, times: Mapping[str, str]) -> tuple[TimeBound, ...]:
    """Return the bounds of `abs(gap) op limit`: those of `gap op limit` and of `-limit op gap`."""
    gap_sum, limit_sum = _to_linear(gap, times), _to_linear(limit, times)
    if gap_sum is None or limit_sum is None:
        return ()
    upper = _bound_difference(op, gap_sum, limit_sum)
    lower = _bound_difference(op, Linear({}).plus(limit_sum, -1), gap_sum)
    return upper + lower if upper and lower else ()


def _bound_difference(op: str, left: Linear | None, right: Linear | None) -> tuple[TimeBound, ...]:
    if left is None or right is None:
        return ()
    gap = left.plus(right, -1)
    if sorted(gap.times.values()) != [-1, 1]:
        return ()
    earlier, later = sorted(gap.times, key=lambda stream: gap.times[stream])
    limit = -gap.microseconds  # T_later - T_earlier op limit; a strict bound is one microsecond less
    upper = TimeBound(earlier, later, limit - (op == "<"))
    return (upper,) if op in ("<", "<=") else (TimeBound(later, earlier, -limit), upper)


def _to_linear(expr: Expr, times: Mapping[str, str]) -> Linear | None:
    if isinstance(expr, Column):
        return Linear({expr.stream: 1}) if times.get(expr.stream) == expr.name else None
    if not isinstance(expr, Call):
        return _to_constant(expr)
    if expr.function == "cast" and all(map(pa.types.is_timestamp, (expr.type, expr.args[0].type))):
        return _to_linear(expr.args[0], times)
    if expr.function in ("+", "-", "negative"):
        *left, right = [_to_linear(arg, times) for arg in expr.args]
        first, sign = left[0] if left else Linear({}), 1 if expr.function == "+" else -1
        return None if first is None or right is None else first.plus(right, sign)
    return _to_constant(expr)


def _to_constant(expr: Expr) -> Linear | None:
    value = fold_constant(expr) if pa.types.is_duration(expr.type) else None
    return None if value is None or value.value is None else Linear({}, value.value)
