"""Time bounds found in a condition: comparisons that are linear in the time columns of two streams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from weir.expr import Call, Column, Expr
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
    left, right = (_linear(arg, times) for arg in expr.args)
    if left is None or right is None:
        return ()
    gap = left.plus(right, -1)
    if sorted(gap.times.values()) != [-1, 1]:
        return ()
    earlier, later = sorted(gap.times, key=lambda stream: gap.times[stream])
    return _bounds(expr.function, earlier, later, -gap.microseconds)


def _bounds(op: str, earlier: str, later: str, limit: int) -> tuple[TimeBound, ...]:
    """The bounds of `T_later - T_earlier op limit`; a strict one ends a microsecond sooner."""
    least = TimeBound(later, earlier, -limit - (op == ">"))
    most = TimeBound(earlier, later, limit - (op == "<"))
    if op in ("=", "<=>"):
        return least, most
    return (most,) if op in ("<", "<=") else (least,)


def _linear(expr: Expr, times: Mapping[str, str]) -> Linear | None:
    if isinstance(expr, Column):
        return Linear({expr.stream: 1}) if times.get(expr.stream) == expr.name else None
    if not isinstance(expr, Call):
        return _offset(expr)
    if expr.function == "cast" and _is_time(expr.type) and _is_time(expr.args[0].type):
        return _linear(expr.args[0], times)
    if expr.function in ("+", "-") and len(expr.args) == 2:
        left, right = (_linear(arg, times) for arg in expr.args)
        sign = 1 if expr.function == "+" else -1
        return None if left is None or right is None else left.plus(right, sign)
    return _offset(expr)


def _offset(expr: Expr) -> Linear | None:
    value = constant(expr) if pa.types.is_duration(expr.type) else None
    return None if value is None or value.value is None else Linear({}, value.value)


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind))
