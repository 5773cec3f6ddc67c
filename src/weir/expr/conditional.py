"""Operators and functions of three-valued logic, comparison, NULL handling and choice.

Values compare as in Spark: NaN equals NaN and is larger than every number, -0.0 equals 0.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import QueryError
from weir.expr import decimals
from weir.expr import type_rules as rules
from weir.expr.nodes import Expr
from weir.expr.type_rules import Function, Signature, take, types_of, wrap
from weir.expr.types import BOOLEAN, DOUBLE, common_type_of, is_float, is_number, is_time, spark_name
from weir.expr.values import Value, is_null_constant, null, null_where, to_numbers


def _comparison_rule(args: Sequence[Expr]) -> Signature:
    """Cast to one type that has an order; a string beside a time is parsed as a time, as in Spark."""
    types = types_of(args)
    if any(map(is_time, types)):
        types = [type for type in types if not pa.types.is_string(type)]
    type = common_type_of(types)
    if type is not None and pa.types.is_nested(type):
        raise QueryError(
            f"compares single values, not {spark_name(type)}; compare its parts, like a.place.x = b.place.x"
        )
    if type is None:
        raise rules.wrong_comparison(*types_of(args))
    return [type] * len(args), BOOLEAN


def _pair_rule(args: Sequence[Expr]) -> Signature:
    rules.check_count(args, 2)
    if decimals.are_used(args) and all(is_number(arg.type) for arg in args):
        # An integer constant has the digits that it has, which leaves more for the scale.
        type = common_type_of([decimals.operand_type(arg) for arg in args])
        return [type, type], BOOLEAN
    types, out = _comparison_rule(args)
    return [BOOLEAN if pa.types.is_null(type) else type for type in types], out


def _in_rule(args: Sequence[Expr]) -> Signature:
    if len(args) < 2:
        raise QueryError("needs at least one value in its list")
    return _comparison_rule(args)


def _nullif_rule(args: Sequence[Expr]) -> Signature:
    """Accept a value and whether it equals the other one: the result has the value's own type."""
    rules.check_count(args, 2)
    return types_of(args), args[0].type


def _nanvl_rule(args: Sequence[Expr]) -> Signature:
    """Accept a float and a float or NULL, or what can be doubles."""
    if len(args) == 2 and args[0].type == pa.float32() and args[1].type in (pa.float32(), pa.null()):
        return [pa.float32()] * 2, pa.float32()
    return rules.take_doubles(2)(args)


def _boolean_rule(args: Sequence[Expr], count: int = 2) -> Signature:
    rules.check_types(args, "boolean", *[lambda type: type in (BOOLEAN, pa.null())] * count)
    return [BOOLEAN] * count, BOOLEAN


def _any_rule(args: Sequence[Expr]) -> Signature:
    rules.check_count(args, 1)
    return types_of(args), BOOLEAN


def _shared_rule(args: Sequence[Expr]) -> Signature:
    """Cast the values to their common type and return that type."""
    rules.check_count(args, 1, 99)
    type = rules.shared_type(args)
    return [type] * len(args), type


def _ordered_rule(args: Sequence[Expr]) -> Signature:
    """Cast two or more values to a common type that has an order, and return that type."""
    rules.check_count(args, 2, 99)
    types, out = _shared_rule(args)
    if pa.types.is_nested(out):
        raise rules.wrong_types(args, "values that can be ordered")
    return types, out


def _choice_rule(args: Sequence[Expr]) -> Signature:
    """Accept pairs of condition and value, then the default value."""
    conditions, values = args[:-1:2], [*args[1:-1:2], args[-1]]
    if any(arg.type not in (BOOLEAN, pa.null()) for arg in conditions):
        raise rules.wrong_types(conditions, "boolean conditions")
    out = rules.shared_type(values)
    return [*[BOOLEAN, out] * len(conditions), out], out


def _case_rule(args: Sequence[Expr]) -> Signature:
    """Accept what `_choice_rule` does, but no NULL in the place of a condition."""
    if any(pa.types.is_null(condition.type) for condition in args[:-1:2]):
        raise QueryError("takes conditions, not NULL")
    return _choice_rule(args)


def _if_rule(args: Sequence[Expr]) -> Signature:
    rules.check_count(args, 3)
    return _choice_rule(args)


def _nvl2_rule(args: Sequence[Expr]) -> Signature:
    """Accept a value to test for NULL, and two of one type to choose from."""
    rules.check_count(args, 3)
    out = rules.shared_type(args[1:])
    return [args[0].type, out, out], out


def _is_nan_rule(args: Sequence[Expr]) -> Signature:
    return take(BOOLEAN, args[0].type if args and is_float(args[0].type) else DOUBLE)(args)


def equal(left: Value, right: Value) -> Value:
    """Return `left = right`."""
    same = _compare(pc.equal, left, right)
    if _has_nan(left) and _has_nan(right):
        return pc.or_(same, pc.and_(pc.is_nan(left), pc.is_nan(right)))
    return same


def _less(left: Value, right: Value, or_equal: bool = False) -> Value:
    """Return `left < right`, or `left <= right`."""
    lower = _compare(pc.less_equal if or_equal else pc.less, left, right)
    if not _has_nan(right):
        return lower
    below_nan = pc.is_valid(left) if or_equal else pc.invert(pc.is_nan(left))
    return pc.or_(lower, pc.and_(pc.is_nan(right), below_nan))


def _compare(kernel: Any, left: Value, right: Value) -> Value:
    return null(BOOLEAN) if is_null_constant(left) or is_null_constant(right) else kernel(left, right)


def _null_safe_equal(left: Value, right: Value) -> Value:
    """Return `left <=> right`: as `=`, but NULL equals NULL and the result is never NULL."""
    same = pc.fill_null(equal(left, right), False)
    if _has_null(left) and _has_null(right):
        return pc.or_(same, pc.and_(pc.is_null(left), pc.is_null(right)))
    return same


def _is_in(value: Value, *items: Value) -> Value:
    """Return `value IN (items)`: NULL if the value is, or if it equals no item and an item is NULL."""
    if is_float(value.type) or not all(isinstance(item, pa.Scalar) for item in items):
        return reduce(pc.or_kleene, (equal(value, item) for item in items))
    known = pa.array([item.as_py() for item in items if item.is_valid], value.type)
    contained = pc.is_in(value, value_set=known)
    if len(known) < len(items):
        contained = pc.if_else(contained, True, null(BOOLEAN))
    return pc.if_else(pc.is_valid(value), contained, null(BOOLEAN)) if _has_null(value) else contained


def _has_null(value: Value) -> bool:
    return bool(value.null_count) if isinstance(value, pa.Array) else not value.is_valid


def _has_nan(value: Value) -> bool:
    """True if a float value holds a NaN; computing the minimum is far cheaper than a mask."""
    if not is_float(value.type):
        return False
    numbers = to_numbers(value) if isinstance(value, pa.Array) else value.as_py()
    return numbers is not None and bool(np.size(numbers)) and bool(np.isnan(np.min(numbers)))


def _is_nan(value: Value) -> Value:
    """Return a mask of the values that are NaN; it is never NULL."""
    return pc.fill_null(pc.is_nan(value), False)


def _choose(out: pa.DataType, *args: Value) -> Value:
    conditions, values = args[:-1:2], [*args[1:-1:2], args[-1]]
    if len(conditions) == 1:
        return pc.if_else(pc.fill_null(conditions[0], False), *values)
    return pc.case_when(pc.make_struct(*conditions), *values)


def _greatest(out: pa.DataType, *values: Value) -> Value:
    """Return the largest value that is not NULL; NaN is larger than every number."""
    largest = _choose_extreme(pc.max_element_wise, out, *values)
    for value in values:
        if _has_nan(value):
            largest = pc.if_else(_is_nan(value), pa.scalar(np.nan, out), largest)
    return largest


def _choose_extreme(kernel: Any, out: pa.DataType, *values: Value) -> Value:
    if pa.types.is_null(out):
        return values[0]
    if out == BOOLEAN:  # Arrow has no kernel for booleans
        return pc.cast(kernel(*(pc.cast(value, pa.int8()) for value in values), skip_nulls=True), BOOLEAN)
    if pa.types.is_timestamp(out) or pa.types.is_duration(out):  # nor for times with a zone
        return pc.cast(kernel(*(pc.cast(value, pa.int64()) for value in values), skip_nulls=True), out)
    return kernel(*values, skip_nulls=True)


def _replace_nan(value: Value, other: Value) -> Value:
    return pc.if_else(_is_nan(value), other, value) if _has_nan(value) else value


FUNCTIONS: dict[str, Function] = {
    "and": wrap(_boolean_rule, pc.and_kleene),
    "eager and": wrap(_boolean_rule, pc.and_kleene),
    "or": wrap(_boolean_rule, pc.or_kleene),
    "not": wrap(partial(_boolean_rule, count=1), pc.invert),
    "=": wrap(_pair_rule, equal),
    "<=>": wrap(_pair_rule, _null_safe_equal),
    "<>": wrap(_pair_rule, lambda left, right: pc.invert(equal(left, right))),
    "<": wrap(_pair_rule, _less),
    "<=": wrap(_pair_rule, partial(_less, or_equal=True)),
    ">": wrap(_pair_rule, lambda left, right: _less(right, left)),
    ">=": wrap(_pair_rule, lambda left, right: _less(right, left, or_equal=True)),
    "in": wrap(_in_rule, _is_in),
    "is null": wrap(_any_rule, pc.is_null),
    "is not null": wrap(_any_rule, pc.is_valid),
    "case": Function(_case_rule, _choose),
    "if": Function(_if_rule, _choose),
    "coalesce": wrap(_shared_rule, pc.coalesce),
    "nvl2": wrap(_nvl2_rule, lambda value, valid, null: pc.if_else(pc.is_valid(value), valid, null)),
    "nullif": wrap(_nullif_rule, lambda value, is_equal: null_where(is_equal, value)),
    "greatest": Function(_ordered_rule, _greatest),
    # The smallest value that is not NULL; NaN only if there is nothing else.
    "least": Function(_ordered_rule, partial(_choose_extreme, pc.min_element_wise)),
    "isnan": wrap(_is_nan_rule, _is_nan),
    "nanvl": wrap(_nanvl_rule, _replace_nan),
}
ALIASES = {"nvl": "coalesce", "ifnull": "coalesce", "isnull": "is null", "isnotnull": "is not null"}
