"""Operators and functions of three-valued logic, comparison, NULL handling and choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import QueryError
from weir.expr import comparison as compare
from weir.expr import type_rules as rules
from weir.expr.nodes import Expr
from weir.expr.type_rules import Function, Rule, Signature, take, types_of, wrap
from weir.expr.types import BOOLEAN, DOUBLE, common_type_of, is_float, is_time
from weir.expr.values import Value, null_where


def _comparison_rule(args: Sequence[Expr]) -> Signature:
    """Cast to one type that has an order; a string beside a time is parsed as a time, as in Spark."""
    types = types_of(args)
    if any(map(is_time, types)):
        types = [type for type in types if not pa.types.is_string(type)]
    type = common_type_of(types)
    if type is None or pa.types.is_nested(type):
        raise rules.wrong_comparison(*types_of(args))
    return [type] * len(args), BOOLEAN


def _pair_rule(args: Sequence[Expr]) -> Signature:
    rules.check_count(args, 2)
    types, out = _comparison_rule(args)
    return [BOOLEAN if pa.types.is_null(type) else type for type in types], out


def _in_rule(args: Sequence[Expr]) -> Signature:
    if len(args) < 2:
        raise QueryError("needs at least one value in its list")
    return _comparison_rule(args)


def _nullif_rule(args: Sequence[Expr]) -> Signature:
    rules.check_count(args, 2)
    types, _ = _comparison_rule(args)
    return types, types[0]


def _take_booleans(count: int) -> Rule:
    def rule(args: Sequence[Expr]) -> Signature:
        rules.check_types(args, "boolean", *[lambda type: type in (BOOLEAN, pa.null())] * count)
        return [BOOLEAN] * count, BOOLEAN

    return rule


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


def _choose(out: pa.DataType, *args: Value) -> Value:
    conditions, values = args[:-1:2], [*args[1:-1:2], args[-1]]
    if len(conditions) == 1:
        return pc.if_else(pc.fill_null(conditions[0], False), *values)
    return pc.case_when(pc.make_struct(*conditions), *values)


def _greatest(out: pa.DataType, *values: Value) -> Value:
    """Return the largest value that is not NULL; NaN is larger than every number."""
    largest = _choose_extreme(pc.max_element_wise, out, *values)
    for value in values:
        if compare.may_be_nan(value):
            largest = pc.if_else(compare.is_nan(value), pa.scalar(np.nan, out), largest)
    return largest


def _least(out: pa.DataType, *values: Value) -> Value:
    """Return the smallest value that is not NULL; NaN only if there is nothing else."""
    return _choose_extreme(pc.min_element_wise, out, *values)


def _choose_extreme(kernel: Any, out: pa.DataType, *values: Value) -> Value:
    if out == BOOLEAN:  # Arrow has no kernel for booleans
        return pc.cast(kernel(*(pc.cast(value, pa.int8()) for value in values), skip_nulls=True), BOOLEAN)
    return kernel(*values, skip_nulls=True)


def _replace_nan(value: Value, other: Value) -> Value:
    return pc.if_else(compare.is_nan(value), other, value) if compare.may_be_nan(value) else value


FUNCTIONS: dict[str, Function] = {
    "and": wrap(_take_booleans(2), pc.and_kleene),
    "or": wrap(_take_booleans(2), pc.or_kleene),
    "not": wrap(_take_booleans(1), pc.invert),
    "=": wrap(_pair_rule, compare.equal),
    "<=>": wrap(_pair_rule, compare.null_safe_equal),
    "<>": wrap(_pair_rule, lambda left, right: pc.invert(compare.equal(left, right))),
    "<": wrap(_pair_rule, compare.less),
    "<=": wrap(_pair_rule, compare.less_equal),
    ">": wrap(_pair_rule, lambda left, right: compare.less(right, left)),
    ">=": wrap(_pair_rule, lambda left, right: compare.less_equal(right, left)),
    "in": wrap(_in_rule, compare.is_in),
    "is null": wrap(_any_rule, pc.is_null),
    "is not null": wrap(_any_rule, pc.is_valid),
    "case": Function(_choice_rule, _choose),
    "if": Function(_if_rule, _choose),
    "coalesce": wrap(_shared_rule, pc.coalesce),
    "nvl2": wrap(_nvl2_rule, lambda value, valid, null: pc.if_else(pc.is_valid(value), valid, null)),
    "nullif": wrap(_nullif_rule, lambda value, other: null_where(compare.equal(value, other), value)),
    "greatest": Function(_ordered_rule, _greatest),
    "least": Function(_ordered_rule, _least),
    "isnan": wrap(_is_nan_rule, compare.is_nan),
    "nanvl": wrap(rules.take_doubles(2), _replace_nan),
}
ALIASES = {"nvl": "coalesce", "ifnull": "coalesce", "isnull": "is null", "isnotnull": "is not null"}
