"""Comparison as Spark does it: NaN equals NaN and is larger than every number, -0.0 equals 0.0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.expr.types import is_float
from weir.expr.values import Value, is_null_constant, null, raw


def may_be_nan(value: Value) -> bool:
    """Whether a float value holds a NaN; one minimum is far cheaper than a mask."""
    if not is_float(value.type):
        return False
    numbers = raw(value) if isinstance(value, pa.Array) else value.as_py()
    return numbers is not None and bool(np.size(numbers)) and bool(np.isnan(np.min(numbers)))


def is_nan(value: Value) -> Value:
    """Which values are NaN, never NULL."""
    return pc.fill_null(pc.is_nan(value), False)


def equal(left: Value, right: Value) -> Value:
    """`left = right`."""
    plain = _plain(pc.equal, left, right)
    if may_be_nan(left) and may_be_nan(right):
        return pc.or_(plain, pc.and_(pc.is_nan(left), pc.is_nan(right)))
    return plain


def less(left: Value, right: Value) -> Value:
    """`left < right`: below NaN lies everything but NaN."""
    plain = _plain(pc.less, left, right)
    if may_be_nan(right):
        return pc.or_(plain, pc.and_(pc.is_nan(right), pc.invert(pc.is_nan(left))))
    return plain


def less_equal(left: Value, right: Value) -> Value:
    """`left <= right`: nothing is above NaN."""
    plain = _plain(pc.less_equal, left, right)
    if may_be_nan(right):
        return pc.or_(plain, pc.and_(pc.is_nan(right), pc.is_valid(left)))
    return plain


def not_equal(left: Value, right: Value) -> Value:
    """`left <> right`."""
    return pc.invert(equal(left, right))


def null_safe_equal(left: Value, right: Value) -> Value:
    """`left <=> right`: as `=`, but NULL equals NULL and the answer is never NULL."""
    same = pc.fill_null(equal(left, right), False)
    if may_be_null(left) and may_be_null(right):
        return pc.or_(same, pc.and_(pc.is_null(left), pc.is_null(right)))
    return same


def may_be_null(value: Value) -> bool:
    """Whether a value holds a NULL."""
    return bool(value.null_count) if isinstance(value, pa.Array) else not value.is_valid


def is_in(value: Value, *items: Value) -> Value:
    """`value IN (items)`: NULL if the value is, or if it is not found and an item is NULL."""
    if all(isinstance(item, pa.Scalar) for item in items) and not is_float(value.type):
        return _in_constants(value, items)
    answer = equal(value, items[0])
    for item in items[1:]:
        answer = pc.or_kleene(answer, equal(value, item))
    return answer


def _in_constants(value: Value, items: tuple[pa.Scalar, ...]) -> Value:
    known = pa.array([item.as_py() for item in items if item.is_valid], value.type)
    found = pc.is_in(value, value_set=known)
    if len(known) < len(items):
        found = pc.if_else(found, True, null(pa.bool_()))
    return pc.if_else(pc.is_valid(value), found, null(pa.bool_())) if may_be_null(value) else found


def _plain(kernel: Any, left: Value, right: Value) -> Value:
    if is_null_constant(left) or is_null_constant(right):
        return null(pa.bool_())
    return kernel(left, right)
