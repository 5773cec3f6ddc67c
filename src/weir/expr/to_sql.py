"""Format a bound expression as readable SQL, for errors and for explain."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from weir.expr.nodes import Call, Column, Expr, Literal
from weir.expr.types import common_type, spark_name
from weir.units import format_interval

# Operators by precedence, from the loosest to the tightest.
_LEVELS = (("or",), ("and",), ("not",), ("=", "<=>", "<>", "<", "<=", ">", ">="), ("|",), ("^",), ("&",),
           ("+", "-"), ("*", "/", "%", "div"), ("negative", "~"))  # fmt: skip
_LEVEL = {name: level for level, names in enumerate(_LEVELS) for name in names}
_SIGNS = {"not": "NOT ", "negative": "-", "~": "~"}
# The operands of forms that are no plain calls, at least and at most.
_OPERANDS = {
    **dict.fromkeys((*_SIGNS, "is null", "is not null"), (1, 1)),
    "like": (2, 3),
    "rlike": (2, 2),
    "in": (1, 99),
}
_COMPARED, _TIGHTEST = _LEVEL["="], len(_LEVELS)
_EPOCH = datetime.datetime(1970, 1, 1)
# Names, and calls without other parentheses: what a computed column holds may be any text.
_TIGHT = re.compile(r"[^\s()]+(\([^()]*\))?")


def to_sql(expr: Expr) -> str:
    """Format an expression as a user would write it, without the casts that binding inserts.

    >>> x, y = Column("a", "x", pa.int32()), Column("b", "y", pa.int32())
    >>> to_sql(Call("<", (Call("+", (x, Literal(1, pa.int32())), pa.int32()), y), pa.bool_()))
    'a.x + 1 < b.y'
    """
    return _format(expr)[0]


def _format(expr: Expr) -> tuple[str, int]:
    """Return the SQL and the precedence of its outermost operator."""
    if isinstance(expr, Column):
        return expr.text, _TIGHTEST if _TIGHT.fullmatch(expr.text) else 0
    if isinstance(expr, Literal):
        return _format_constant(expr.value, expr.type), _TIGHTEST
    return _format_call(expr)


def _format_call(expr: Call) -> tuple[str, int]:
    name, args = expr.function.removeprefix("eager "), expr.args
    if name in ("cast", "try_cast"):
        if name == "cast" and common_type(args[0].type, expr.type) == expr.type:
            return _format(args[0])  # binding would insert the cast again
        return f"{name}({to_sql(args[0])} AS {spark_name(expr.type)})", _TIGHTEST
    if name in _LEVEL and len(args) == 2:
        return _format_infix(name, args)
    if name in ("checked", "succeeds"):
        return _format(args[0])
    least, most = _OPERANDS.get(name, (1, len(args)))
    if not least <= len(args) <= most:
        return _format_plainly(name, args)  # a call that is refused
    if name in _SIGNS:
        return f"{_SIGNS[name]}{_parenthesise(args[0], _LEVEL[name] + 1)}", _LEVEL[name]
    if name in _TESTS:
        return f"{_parenthesise(args[0], _COMPARED + 1)} {_TESTS[name](*args[1:])}", _COMPARED
    if name in _FORMS:
        return _FORMS[name](*args), _TIGHTEST
    if name == "udf":
        name, args = str(getattr(args[0], "value", name)), args[1:]
    return _format_plainly(name, args)


def _format_plainly(name: str, args: tuple[Expr, ...]) -> tuple[str, int]:
    return f"{name}({', '.join(map(to_sql, args))})", _TIGHTEST


def _format_infix(name: str, args: tuple[Expr, ...]) -> tuple[str, int]:
    level = _LEVEL[name]
    # Operators of one level associate to the left; comparisons do not chain at all.
    left = _parenthesise(args[0], level + (level == _COMPARED))
    right = _parenthesise(args[1], level + (name not in ("and", "or")))
    return f"{left} {name.upper() if name.isalpha() else name} {right}", level


def _parenthesise(expr: Expr, level: int) -> str:
    text, own_level = _format(expr)
    return f"({text})" if own_level < level else text


def _format_like(pattern: Expr, *escape: Expr) -> str:
    return " ESCAPE ".join([f"LIKE {_parenthesise(pattern, _COMPARED + 1)}", *map(to_sql, escape)])


def _format_case(*args: Expr) -> str:
    pairs = zip(args[:-1:2], args[1::2], strict=False)
    branches = " ".join(f"WHEN {to_sql(condition)} THEN {to_sql(value)}" for condition, value in pairs)
    return f"CASE {branches} ELSE {to_sql(args[-1])} END"


# What follows the first operand of a test, and forms that need no parentheses around them.
_TESTS: dict[str, Callable[..., str]] = {
    "is null": lambda: "IS NULL",
    "is not null": lambda: "IS NOT NULL",
    "in": lambda *items: f"IN ({', '.join(map(to_sql, items))})",
    "like": _format_like,
    "rlike": lambda pattern: f"RLIKE {_parenthesise(pattern, _COMPARED + 1)}",
}
_FORMS: dict[str, Callable[..., str]] = {
    "fractional second": lambda time: f"extract(SECOND FROM {to_sql(time)})",
    "case": _format_case,
    "[]": lambda array, index: f"{_parenthesise(array, _TIGHTEST)}[{to_sql(index)}]",
    ".": lambda struct, field: f"{_parenthesise(struct, _TIGHTEST)}.{field.value}",
}


def _format_constant(value: Any, type: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    return _format_time(value, type) if isinstance(value, int) and pa.types.is_temporal(type) else str(value)


def _format_time(value: int, type: Any) -> str:
    if pa.types.is_duration(type):
        return f"INTERVAL {'-' * (value < 0)}{format_interval(abs(value))}"
    try:
        if pa.types.is_date(type):
            return f"DATE '{(_EPOCH + datetime.timedelta(days=value)).date()}'"
        time = _EPOCH + datetime.timedelta(microseconds=value)
        # With its zone, an instant reads the same in every session.
        return f"TIMESTAMP '{time}Z'" if type.tz else f"TIMESTAMP_NTZ '{time}'"
    except OverflowError:
        return f"{value} after 1970"
