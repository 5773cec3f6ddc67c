"""Compare values as Spark does: NaN equals NaN and is larger than every number, -0.0 equals 0.0."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.expr.types import is_float
from weir.expr.values import Value, is_null_constant, null, to_numbers


def may_be_nan(value: Value) -> bool:
    """True if a float value holds a NaN; computing the minimum is far cheaper than a mask."""
    if not is_float(value.type):
        return False
    numbers = to_numbers(value) if isinstance(value, pa.Array) else value.as_py()
    return numbers is not None and bool(np.size(numbers)) and bool(np.isnan(np.min(numbers)))


def is_nan(value: Value) -> Value:
    """Return a mask of the values that are NaN; it is never NULL."""
    return pc.fill_null(pc.is_nan(value), False)


def equal(left: Value, right: Value) -> Value:
    """Return `left = right`."""
    same = _compare(pc.equal, left, right)
    if may_be_nan(left) and may_be_nan(right):
        return pc.or_(same, pc.and_(pc.is_nan(left), pc.is_nan(right)))
    return same


def less(left: Value, right: Value) -> Value:
    """Return `left < right`; every number is less than NaN."""
    lower = _compare(pc.less, left, right)
    if may_be_nan(right):
        return pc.or_(lower, pc.and_(pc.is_nan(right), pc.invert(pc.is_nan(left))))
    return lower


def less_equal(left: Value, right: Value) -> Value:
    """Return `left <= right`; every number and NaN are at most NaN."""
    lower = _compare(pc.less_equal, left, right)
    if may_be_nan(right):
        return pc.or_(lower, pc.and_(pc.is_nan(right), pc.is_valid(left)))
    return lower


def null_safe_equal(left: Value, right: Value) -> Value:
    """Return `left <=> right`: as `=`, but NULL equals NULL and the result is never NULL."""
    same = pc.fill_null(equal(left, right), False)
    if _may_be_null(left) and _may_be_null(right):
        return pc.or_(same, pc.and_(pc.is_null(left), pc.is_null(right)))
    return same


def is_in(value: Value, *items: Value) -> Value:
    """Return `value IN (items)`: NULL if the value is, or if it equals no item and an item is NULL."""
    if all(isinstance(item, pa.Scalar) for item in items) and not is_float(value.type):
        return _is_in_constants(value, items)
    return reduce(pc.or_kleene, (equal(value, item) for item in items))


def _is_in_constants(value: Value, items: tuple[pa.Scalar, ...]) -> Value:
    known = pa.array([item.as_py() for item in items if item.is_valid], value.type)
    contained = pc.is_in(value, value_set=known)
    if len(known) < len(items):
        contained = pc.if_else(contained, True, null(pa.bool_()))
    return pc.if_else(pc.is_valid(value), contained, null(pa.bool_())) if _may_be_null(value) else contained


def _may_be_null(value: Value) -> bool:
    return bool(value.null_count) if isinstance(value, pa.Array) else not value.is_valid


def _compare(kernel: Any, left: Value, right: Value) -> Value:
    if is_null_constant(left) or is_null_constant(right):
        return null(pa.bool_())
    return kernel(left, right)
