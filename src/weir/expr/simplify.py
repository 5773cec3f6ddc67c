"""Simplify bound expressions as Spark's optimiser does, where that decides which data errors can occur.

    cast(a.s AS INT) > 3 AND false        →     false
    try_add(cast(a.s AS INT), NULL)       →     NULL
    if(cast(a.s AS INT) > 3, b.x, b.x)    →     b.x

Spark evaluates none of the casts above, so that none of them fails, whatever `a.s` holds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import pairwise

import numpy as np
import pyarrow as pa

from weir.errors import QueryError
from weir.expr.build import fold_constant
from weir.expr.nodes import Call, Expr, Literal
from weir.expr.to_sql import to_sql
from weir.expr.types import BOOLEAN, DOUBLE, TIMESTAMP, TIMESTAMP_NTZ, is_integer, spark_name
from weir.expr.zones import find_zone

_TRUE, _FALSE = Literal(True, BOOLEAN), Literal(False, BOOLEAN)
_ORDERS = {"=": _TRUE, "<=": _TRUE, ">=": _TRUE, "<": _FALSE, ">": _FALSE, "<>": _FALSE}
# Functions of several values that are NULL if one of them is.
_NULL_INTOLERANT = frozenset((
    "+", "-", "*", "/", "%", "div", "pmod", "&", "|", "^", "shiftleft", "shiftright",
    "try_add", "try_subtract", "try_multiply", "try_divide", "try_mod", "=", "<>", "<", "<=", ">", ">=",
    "instr", "startswith", "endswith", "contains", "like", "rlike", "substring", "left", "right", "repeat",
    "replace", "lpad", "rpad", "levenshtein", "date_add", "date_sub", "datediff", "add_months", "make_date",
    "pow", "atan2", "hypot", "log", "array_contains", "[]", "get", "element_at", "try_element_at",
))  # fmt: skip
_SUMS, _PRODUCTS = ("+", "try_add"), ("*", "try_multiply")
_NEVER_NULL = frozenset(("is null", "is not null", "<=>", "isnan"))
_NULL_IF_AN_ARGUMENT_IS = frozenset((
    "and", "or", "not", "=", "<>", "<", "<=", ">", ">=", "in", "concat", "concat_ws", "date_from_unix_date",
))  # fmt: skip


def simplify(expr: Expr) -> Expr:
    """Leave out the parts of an expression that Spark does not evaluate for any row.

    >>> from weir.expr.nodes import Column
    >>> x = Column("a", "x", BOOLEAN)
    >>> str(simplify(Call("or", (x, Call("<=>", (x, x), BOOLEAN)), BOOLEAN)))
    'True'
    """
    if not isinstance(expr, Call) or expr.function in ("udf", "checked"):
        return expr
    args = tuple(map(simplify, expr.args))
    call = replace(expr, args=args) if any(x is not y for x, y in zip(args, expr.args, strict=True)) else expr
    if call.args and all(isinstance(arg, Literal) for arg in call.args):
        return fold_constant(call) or call
    rule = _RULES.get(call.function)
    simple = rule(call) if rule is not None else call
    if simple is not call:
        return simplify(simple)
    has_null = call.function in _NULL_INTOLERANT and any(map(_is_null, call.args))
    return Literal(None, call.type) if has_null else call


def _is_null(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value is None


def _is_nullable(expr: Expr) -> bool:
    """False if Spark knows that an expression is never NULL."""
    if not isinstance(expr, Call):
        return not isinstance(expr, Literal) or expr.value is None
    name, args = expr.function, expr.args
    if name in ("coalesce", "greatest", "least"):
        return all(map(_is_nullable, args))
    if name in ("if", "case"):
        return any(map(_is_nullable, (*args[1:-1:2], args[-1])))
    if name == "cast" and is_integer(expr.type) and is_integer(args[0].type):
        return _is_nullable(args[0])
    if name in _NULL_IF_AN_ARGUMENT_IS:
        return any(map(_is_nullable, args[:1] if name == "concat_ws" else args))
    return name not in _NEVER_NULL


def _conjoin(call: Call) -> Expr:
    """Simplify AND, which a constant FALSE decides, or OR, which a constant TRUE decides."""
    neutral, deciding = (_TRUE, _FALSE) if call.function == "and" else (_FALSE, _TRUE)
    if deciding in call.args:
        return deciding
    args = tuple(arg for arg in call.args if arg != neutral)
    if len(args) == 1:
        return args[0]
    return call if len(args) == len(call.args) else replace(call, args=args)


def _compare(call: Call) -> Expr:
    left, right = call.args
    if left == right and not _is_nullable(left):
        return _ORDERS[call.function]
    return _compare_local(call)


def _compare_local(call: Call) -> Expr:
    """Compare a local time with a constant instant in local time, which differs where clocks change."""
    match call.args:
        case (Call("cast" | "try_cast", (inner,), mode=mode), Literal(int(value))) if _is_made_instant(call):
            return replace(call, args=(inner, _to_local(value, mode.zone)))
        case (Literal(int(value)), Call("cast" | "try_cast", (inner,), mode=mode)) if _is_made_instant(call):
            return replace(call, args=(_to_local(value, mode.zone), inner))
    return call


def _is_made_instant(comparison: Call) -> bool:
    """True if an instant that is compared is cast from a local time."""
    casts = (arg for arg in comparison.args if isinstance(arg, Call))
    return any(cast.type == TIMESTAMP and cast.args[0].type == TIMESTAMP_NTZ for cast in casts)


def _to_local(instant: int, zone: str | None) -> Literal:
    return Literal(int(find_zone(zone or "UTC").to_local(np.int64(instant))), TIMESTAMP_NTZ)


def _compare_safely(call: Call) -> Expr:
    left, right = call.args
    if left == right:
        return _TRUE
    if _is_null(left) or _is_null(right):
        return Call("is null", (right if _is_null(left) else left,), BOOLEAN)
    return _compare_local(call)


def _test_null(call: Call) -> Expr:
    (value,) = call.args
    is_null = call.function == "is null"
    if not _is_nullable(value):
        return Literal(not is_null, BOOLEAN)
    match value:
        case Call("not", (inner,)):
            return replace(call, args=(inner,))
        case Call("<" | "<=" | ">" | ">=", (left, right)):
            tests = tuple(replace(call, args=(side,)) for side in (left, right))
            return Call("or" if is_null else "and", tests, BOOLEAN)
    return call


def _choose(call: Call) -> Expr:
    """Leave out branches that are never chosen, and conditions that change nothing."""
    branches, default = _read_branches(call.args), call.args[-1]
    kept = [(condition, value) for condition, value in branches if condition != _FALSE]
    for number, (condition, value) in enumerate(kept):
        if condition == _TRUE:
            kept, default = kept[:number], value
            break
    if all(value == default for _, value in kept):
        return default
    args = (*(part for branch in kept for part in branch), default)
    return call if args == call.args else replace(call, args=args)


def _read_branches(args: Sequence[Expr]) -> list[tuple[Expr, Expr]]:
    pairs = list(pairwise(args[:-1]))[::2]
    return [(simplify(_false_for_null(condition)), value) for condition, value in pairs]


def _false_for_null(condition: Expr) -> Expr:
    """Replace NULL by FALSE in a condition, where it means the same."""
    if _is_null(condition):
        return _FALSE
    if isinstance(condition, Call) and condition.function in ("and", "or"):
        return replace(condition, args=tuple(map(_false_for_null, condition.args)))
    return condition


def _choose_by_null(call: Call) -> Expr:
    value, valid, null = call.args
    if valid == null or not _is_nullable(value):
        return valid
    return null if _is_null(value) else call


def _null_if(call: Call) -> Expr:
    value, is_equal = call.args
    if isinstance(is_equal, Literal):
        return Literal(None, call.type) if is_equal.value else value
    return call


def _search(call: Call) -> Expr:
    value, *items = call.args
    if _is_null(value) or all(map(_is_null, items)):
        return Literal(None, BOOLEAN)
    if len(set(items)) == 1 and isinstance(items[0], Literal):
        return replace(call, function="=", args=(value, items[0]))
    return call


def _change_case(call: Call) -> Expr:
    match call.args:
        case (Call("lower" | "upper", inner),):
            return replace(call, args=inner)
    return call


def _reorder(call: Call) -> Expr:
    """Move the constants of nested sums, or products, of whole numbers to the end, and combine them.

    The outermost operator decides whether an overflow is an error, NULL, or none.
    """
    if not is_integer(call.type):
        return call
    operands = list(_flatten(call, _SUMS if call.function in _SUMS else _PRODUCTS))
    others: list[Expr] = [operand for operand in operands if not isinstance(operand, Literal)]
    constants: list[Expr] = [operand for operand in operands if isinstance(operand, Literal)]
    if not others or not constants:
        return call
    constant = reduce(partial(_combine, call), constants)
    if not isinstance(constant, Literal):
        raise QueryError(f"the constants of {to_sql(call)} do not fit {spark_name(call.type)}")
    rest = reduce(partial(_combine, call), others)
    if constant.value == (0 if call.function in _SUMS else 1):
        return rest
    return call if call.args == (rest, constant) else replace(call, args=(rest, constant))


def _flatten(expr: Expr, functions: Collection[str]) -> Iterator[Expr]:
    if isinstance(expr, Call) and expr.function in functions:
        for arg in expr.args:
            yield from _flatten(arg, functions)
    else:
        yield expr


def _combine(call: Call, left: Expr, right: Expr) -> Expr:
    both = replace(call, args=(left, right))
    is_constant = isinstance(left, Literal) and isinstance(right, Literal)
    return (fold_constant(both) or both) if is_constant else both


def _cast_once(call: Call) -> Expr:
    """Cast whole numbers to doubles without the way by floats, which Spark takes for exact."""
    match call:
        case Call(_, (Call("cast" | "try_cast", (inner,), middle),), out) if middle == pa.float32():
            return replace(call, args=(inner,)) if out == DOUBLE and is_integer(inner.type) else call
    return call


_RULES: dict[str, Callable[[Call], Expr]] = {
    "and": _conjoin,
    "or": _conjoin,
    **dict.fromkeys(_ORDERS, _compare),
    "<=>": _compare_safely,
    "is null": _test_null,
    "is not null": _test_null,
    "case": _choose,
    "if": _choose,
    "nvl2": _choose_by_null,
    "nullif": _null_if,
    "in": _search,
    "lower": _change_case,
    "upper": _change_case,
    **dict.fromkeys((*_SUMS, *_PRODUCTS), _reorder),
    "positive": lambda call: call.args[0],
    "cast": _cast_once,
    "try_cast": _cast_once,
}
