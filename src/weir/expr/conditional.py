"""Operators and functions of three-valued logic, comparison, NULL handling and choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import QueryError
from weir.expr import comparison as compare
from weir.expr.nodes import Expr
from weir.expr.type_rules import (
    BOOLEAN,
    Function,
    Signature,
    check_count,
    comparison_rule,
    ordered_rule,
    shared_type,
    take,
    take_any,
    take_booleans,
    take_doubles,
    take_same_type,
    wrap,
    wrong_types,
)
from weir.expr.types import is_float
from weir.expr.values import Value, null_where


def choice_rule(args: Sequence[Expr]) -> Signature:
    """Accept pairs of condition and value, then the default value."""
    conditions, values = args[:-1:2], [*args[1:-1:2], args[-1]]
    if any(arg.type not in (BOOLEAN, pa.null()) for arg in conditions):
        raise wrong_types(conditions, "boolean conditions")
    out = shared_type(values)
    return [*[BOOLEAN, out] * len(conditions), out], out


def choose(out: pa.DataType, *args: Value) -> Value:
    """Return the value of the first condition that is true."""
    conditions, values = args[:-1:2], [*args[1:-1:2], args[-1]]
    if len(conditions) == 1:
        return pc.if_else(pc.fill_null(conditions[0], False), *values)
    return pc.case_when(pc.make_struct(*conditions), *values)


def if_rule(args: Sequence[Expr]) -> Signature:
    """Accept a condition and the values for true and for false."""
    check_count(args, 3)
    return choice_rule(args)


def nullif_rule(args: Sequence[Expr]) -> Signature:
    """Accept two values that can be compared; the result has the type of the first."""
    check_count(args, 2)
    types, _ = comparison_rule(args)
    return types, types[0]


def nvl2_rule(args: Sequence[Expr]) -> Signature:
    """Accept a value to test for NULL, and two of one type to choose from."""
    check_count(args, 3)
    out = shared_type(args[1:])
    return [args[0].type, out, out], out


def greatest(out: pa.DataType, *values: Value) -> Value:
    """Return the largest value that is not NULL; NaN is larger than every number."""
    largest = _choose_extreme(pc.max_element_wise, out, *values)
    for value in values:
        if compare.may_be_nan(value):
            largest = pc.if_else(compare.is_nan(value), pa.scalar(np.nan, out), largest)
    return largest


def least(out: pa.DataType, *values: Value) -> Value:
    """Return the smallest value that is not NULL; NaN only if there is nothing else."""
    return _choose_extreme(pc.min_element_wise, out, *values)


def _choose_extreme(kernel: Any, out: pa.DataType, *values: Value) -> Value:
    if out == BOOLEAN:  # Arrow has no kernel for booleans
        return pc.cast(kernel(*(pc.cast(value, pa.int8()) for value in values), skip_nulls=True), BOOLEAN)
    return kernel(*values, skip_nulls=True)


def replace_nan(value: Value, other: Value) -> Value:
    """Return the value, or the other one where it is NaN."""
    return pc.if_else(compare.is_nan(value), other, value) if compare.may_be_nan(value) else value


def is_nan_rule(args: Sequence[Expr]) -> Signature:
    """Accept one number."""
    return take(BOOLEAN, args[0].type if args and is_float(args[0].type) else pa.float64())(args)


def in_rule(args: Sequence[Expr]) -> Signature:
    """Accept a value and a list of values of one type."""
    if len(args) < 2:
        raise QueryError("needs at least one value in its list")
    return comparison_rule(args)


def pair_rule(args: Sequence[Expr]) -> Signature:
    """Accept two values to compare."""
    check_count(args, 2)
    types, out = comparison_rule(args)
    return [BOOLEAN if pa.types.is_null(type) else type for type in types], out


FUNCTIONS: dict[str, Function] = {
    "and": wrap(take_booleans(2), pc.and_kleene),
    "or": wrap(take_booleans(2), pc.or_kleene),
    "not": wrap(take_booleans(1), pc.invert),
    "=": wrap(pair_rule, compare.equal),
    "<=>": wrap(pair_rule, compare.null_safe_equal),
    "<>": wrap(pair_rule, compare.not_equal),
    "<": wrap(pair_rule, compare.less),
    "<=": wrap(pair_rule, compare.less_equal),
    ">": wrap(pair_rule, lambda left, right: compare.less(right, left)),
    ">=": wrap(pair_rule, lambda left, right: compare.less_equal(right, left)),
    "in": wrap(in_rule, compare.is_in),
    "is null": wrap(take_any(BOOLEAN), pc.is_null),
    "is not null": wrap(take_any(BOOLEAN), pc.is_valid),
    "case": Function(choice_rule, choose),
    "if": Function(if_rule, choose),
    "coalesce": wrap(take_same_type(), pc.coalesce),
    "nvl2": wrap(nvl2_rule, lambda value, valid, null: pc.if_else(pc.is_valid(value), valid, null)),
    "nullif": wrap(nullif_rule, lambda value, other: null_where(compare.equal(value, other), value)),
    "greatest": Function(ordered_rule, greatest),
    "least": Function(ordered_rule, least),
    "isnan": wrap(is_nan_rule, compare.is_nan),
    "nanvl": wrap(take_doubles(2), replace_nan),
}
ALIASES = {"nvl": "coalesce", "ifnull": "coalesce", "isnull": "is null", "isnotnull": "is not null"}
