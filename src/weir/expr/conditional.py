"""Boolean logic with three values, NULL handling and choice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as is_a

from weir.errors import QueryError
from weir.expr import comparison as compare
from weir.expr.nodes import Expr
from weir.expr.rules import (
    BOOLEAN,
    Function,
    Signature,
    alternatives,
    any_type,
    booleans,
    compared,
    counted,
    doubles,
    ordered_alternatives,
    plain,
    refuse,
    shared,
    takes,
)
from weir.expr.types import is_float
from weir.expr.values import Value, null_where


def choice_rule(args: Sequence[Expr]) -> Signature:
    """Pairs of condition and value, then the value for otherwise."""
    conditions, values = args[:-1:2], [*args[1:-1:2], args[-1]]
    if any(arg.type not in (BOOLEAN, pa.null()) for arg in conditions):
        raise refuse(conditions, "boolean conditions")
    out = shared(values)
    return [*[BOOLEAN, out] * len(conditions), out], out


def choose(out: pa.DataType, *args: Value) -> Value:
    """The value beside the first condition that is true."""
    conditions, values = args[:-1:2], [*args[1:-1:2], args[-1]]
    if len(conditions) == 1:
        return pc.if_else(pc.fill_null(conditions[0], False), *values)
    return pc.case_when(pc.make_struct(*conditions), *values)


def if_rule(args: Sequence[Expr]) -> Signature:
    """A condition and the values for true and for false."""
    counted(args, 3)
    return choice_rule(args)


def nullif_rule(args: Sequence[Expr]) -> Signature:
    """Two values that can be compared; the first one's type as result."""
    counted(args, 2)
    types, _ = compared(args)
    return types, types[0]


def nvl2_rule(args: Sequence[Expr]) -> Signature:
    """A value to look at, and two of one type to choose from."""
    counted(args, 3)
    out = shared(args[1:])
    return [args[0].type, out, out], out


def greatest(out: pa.DataType, *values: Value) -> Value:
    """The largest value that is not NULL; NaN is larger than every number."""
    if out == BOOLEAN:
        return _of_booleans(greatest, *values)
    largest = pc.max_element_wise(*values, skip_nulls=True)
    if not is_float(out):
        return largest
    nans = [compare.is_nan(value) for value in values if compare.may_be_nan(value)]
    for mask in nans:
        largest = pc.if_else(mask, pa.scalar(np.nan, out), largest)
    return largest


def least(out: pa.DataType, *values: Value) -> Value:
    """The smallest value that is not NULL; a NaN only if there is nothing else."""
    return _of_booleans(least, *values) if out == BOOLEAN else pc.min_element_wise(*values, skip_nulls=True)


def _of_booleans(fn: object, *values: Value) -> Value:
    kernel = pc.max_element_wise if fn is greatest else pc.min_element_wise
    return pc.cast(kernel(*(pc.cast(value, pa.int8()) for value in values), skip_nulls=True), BOOLEAN)


def nan_value(value: Value, instead: Value) -> Value:
    """The value, or the other one where it is NaN."""
    return pc.if_else(compare.is_nan(value), instead, value) if compare.may_be_nan(value) else value


def is_nan_rule(args: Sequence[Expr]) -> Signature:
    """One number."""
    return takes(BOOLEAN, args[0].type if args and is_float(args[0].type) else pa.float64())(args)


def in_rule(args: Sequence[Expr]) -> Signature:
    """A value and the ones it is looked for among."""
    if len(args) < 2:
        raise QueryError("needs at least one value in its list")
    return compared(args)


def pair(args: Sequence[Expr]) -> Signature:
    """Two values to compare."""
    counted(args, 2)
    types, out = compared(args)
    return [BOOLEAN if is_a.is_null(type) else type for type in types], out


def _nvl2(value: Value, one: Value, other: Value) -> Value:
    return pc.if_else(pc.is_valid(value), one, other)


FUNCTIONS: dict[str, Function] = {
    "and": plain(booleans(2), pc.and_kleene),
    "or": plain(booleans(2), pc.or_kleene),
    "not": plain(booleans(1), pc.invert),
    "=": plain(pair, compare.equal),
    "<=>": plain(pair, compare.null_safe_equal),
    "<>": plain(pair, compare.not_equal),
    "<": plain(pair, compare.less),
    "<=": plain(pair, compare.less_equal),
    ">": plain(pair, lambda left, right: compare.less(right, left)),
    ">=": plain(pair, lambda left, right: compare.less_equal(right, left)),
    "in": plain(in_rule, compare.is_in),
    "is null": plain(any_type(BOOLEAN), pc.is_null),
    "is not null": plain(any_type(BOOLEAN), pc.is_valid),
    "case": Function(choice_rule, choose),
    "if": Function(if_rule, choose),
    "coalesce": plain(alternatives(), pc.coalesce),
    "nvl2": plain(nvl2_rule, _nvl2),
    "nullif": plain(nullif_rule, lambda one, other: null_where(compare.equal(one, other), one)),
    "greatest": Function(ordered_alternatives, greatest),
    "least": Function(ordered_alternatives, least),
    "isnan": plain(is_nan_rule, compare.is_nan),
    "nanvl": plain(doubles(2), nan_value),
}
ALIASES = {"nvl": "coalesce", "ifnull": "coalesce", "isnull": "is null", "isnotnull": "is not null"}
