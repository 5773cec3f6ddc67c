"""A bound expression as readable SQL, for errors and for explain."""

from __future__ import annotations

import datetime
from typing import Any

from pyarrow import types as is_a

from weir.expr.nodes import Call, Column, Expr, Literal
from weir.expr.types import common_type, spark_name
from weir.units import show_interval

# From the loosest to the tightest.
_LEVELS = (("or",), ("and",), ("not",), ("=", "<=>", "<>", "<", "<=", ">", ">="), ("|",), ("^",), ("&",),
           ("+", "-"), ("*", "/", "%", "div"), ("negative", "~"))  # fmt: skip
_LEVEL = {name: level for level, names in enumerate(_LEVELS) for name in names}
_COMPARED, _TIGHTEST = _LEVEL["="], len(_LEVELS)
_EPOCH = datetime.datetime(1970, 1, 1)


def show(expr: Expr) -> str:
    """The expression as one would write it; casts that were only inserted to compare are left out.

    >>> import pyarrow as pa
    >>> x, y = Column("a", "x", pa.int32()), Column("b", "y", pa.int32())
    >>> show(Call("<", (Call("+", (x, Literal(1, pa.int32())), pa.int32()), y), pa.bool_()))
    'a.x + 1 < b.y'
    """
    return _text(expr)[0]


def _text(expr: Expr) -> tuple[str, int]:
    if isinstance(expr, Column):
        return str(expr), _TIGHTEST
    if isinstance(expr, Literal):
        return _constant(expr.value, expr.type), _TIGHTEST
    return _call(expr)


def _call(expr: Call) -> tuple[str, int]:
    name, args = expr.function, expr.args
    if name in ("cast", "try_cast"):
        text = f"{name}({show(args[0])} AS {spark_name(expr.type)})", _TIGHTEST
        return _text(args[0]) if name == "cast" and _is_wider(args[0], expr) else text
    if name in _LEVEL and len(args) == 2:
        return _infix(name, args)
    if name in ("not", "negative", "~"):
        sign = {"not": "NOT ", "negative": "-"}.get(name, name)
        return f"{sign}{_within(args[0], _LEVEL[name] + 1)}", _LEVEL[name]
    form = _FORMS.get(name)
    if form is not None:
        return form(args)
    if name == "udf":
        name, args = str(getattr(args[0], "value", name)), args[1:]
    return f"{name}({', '.join(map(show, args))})", _TIGHTEST


def _infix(name: str, args: tuple[Expr, ...]) -> tuple[str, int]:
    level = _LEVEL[name]
    # Operators of one level read from the left; comparisons do not chain at all.
    left = _within(args[0], level + (level == _COMPARED))
    right = _within(args[1], level + (name not in ("and", "or")))
    return f"{left} {name.upper() if name.isalpha() else name} {right}", level


def _within(expr: Expr, level: int) -> str:
    text, own = _text(expr)
    return f"({text})" if own < level else text


def _is_wider(inner: Expr, outer: Call) -> bool:
    # The cast that binding would put there again.
    return bool(common_type(inner.type, outer.type) == outer.type)


def _is_null(args: tuple[Expr, ...]) -> tuple[str, int]:
    return f"{_within(args[0], _COMPARED + 1)} IS NULL", _COMPARED


def _is_not_null(args: tuple[Expr, ...]) -> tuple[str, int]:
    return f"{_within(args[0], _COMPARED + 1)} IS NOT NULL", _COMPARED


def _in(args: tuple[Expr, ...]) -> tuple[str, int]:
    return f"{_within(args[0], _COMPARED + 1)} IN ({', '.join(map(show, args[1:]))})", _COMPARED


def _like(args: tuple[Expr, ...]) -> tuple[str, int]:
    escape = f" ESCAPE {show(args[2])}" if len(args) > 2 else ""
    return f"{_within(args[0], _COMPARED + 1)} LIKE {_within(args[1], _COMPARED + 1)}{escape}", _COMPARED


def _rlike(args: tuple[Expr, ...]) -> tuple[str, int]:
    return f"{_within(args[0], _COMPARED + 1)} RLIKE {_within(args[1], _COMPARED + 1)}", _COMPARED


def _case(args: tuple[Expr, ...]) -> tuple[str, int]:
    branches = " ".join(f"WHEN {show(args[i])} THEN {show(args[i + 1])}" for i in range(0, len(args) - 1, 2))
    return f"CASE {branches} ELSE {show(args[-1])} END", _TIGHTEST


def _item(args: tuple[Expr, ...]) -> tuple[str, int]:
    return f"{_within(args[0], _TIGHTEST)}[{show(args[1])}]", _TIGHTEST


def _field(args: tuple[Expr, ...]) -> tuple[str, int]:
    return f"{_within(args[0], _TIGHTEST)}.{args[1].value}", _TIGHTEST  # type: ignore[union-attr]


_FORMS = {"is null": _is_null, "is not null": _is_not_null, "in": _in, "like": _like, "rlike": _rlike,
          "case": _case, "get": _item, ".": _field}  # fmt: skip


def _constant(value: Any, type: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    return _time(value, type) if isinstance(value, int) and is_a.is_temporal(type) else str(value)


def _time(value: int, type: Any) -> str:
    if is_a.is_duration(type):
        return f"INTERVAL {_span(value)}"
    try:
        if is_a.is_date(type):
            return f"DATE '{(_EPOCH + datetime.timedelta(days=value)).date()}'"
        return f"TIMESTAMP '{_EPOCH + datetime.timedelta(microseconds=value)}'"
    except OverflowError:
        return f"{value} after 1970"


def _span(value: int) -> str:
    return f"-{show_interval(-value)}" if value < 0 else show_interval(value)
