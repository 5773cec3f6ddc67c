"""Bind a parsed expression: resolve names, check types and insert the implicit casts.

    sqlglot node                          bound expression
    a.id = b.id  (int, bigint)      →     =(cast(a.id), b.id)

Each sqlglot class that is more than a function call has a handler in `HANDLERS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from functools import reduce
from typing import Any

import pyarrow as pa
from sqlglot import exp

from weir.errors import QueryError, match_name
from weir.expr.build import call, call_user, cast
from weir.expr.dialect import source_text
from weir.expr.nodes import Call, Column, Expr, Literal, Mode, walk
from weir.expr.scope import Scope
from weir.expr.types import ALIASES as TYPE_ALIASES
from weir.expr.types import INTERVAL, SPARK_NAMES, decimal_type, parse_type
from weir.units import parse_interval

BINARY: dict[type[exp.Expression], str] = {
    exp.And: "and", exp.Or: "or", exp.EQ: "=", exp.NEQ: "<>", exp.NullSafeEQ: "<=>",
    exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "div",
    exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^", exp.DPipe: "concat",
    exp.BitwiseLeftShift: "shiftleft", exp.BitwiseRightShift: "shiftright", exp.RegexpLike: "rlike",
}  # fmt: skip
# An interval of whole days.
_IN_DAYS = re.compile(r"([+-]?\s*[0-9]+\s*(day|week)s?\s*)+", re.IGNORECASE)
# An integer whose last letter is its type.
_SUFFIXED = re.compile(r"[0-9]+[lsy]", re.IGNORECASE)
# Calls of a function with these parts of the node, as far as they are given.
PARTS: dict[type[exp.Expression], tuple[str, ...]] = {
    exp.BitwiseNot: ("~", "this"), exp.Substring: ("substring", "this", "start", "length"),
    exp.Ceil: ("ceil", "this", "decimals"), exp.Floor: ("floor", "this", "decimals"),
}  # fmt: skip


def bind(node: exp.Expression, scope: Scope) -> Expr:
    """Bind a node that was parsed in `UntranslatedSpark`."""
    if isinstance(node, exp.EQ | exp.NullSafeEQ) and isinstance(node.this, exp.Tuple):
        return _equate_rows(node, scope)
    if type(node) in BINARY:
        return call(BINARY[type(node)], [bind(node.this, scope), bind(node.expression, scope)], scope.mode)
    if type(node) in PARTS:
        name, *parts = PARTS[type(node)]
        return call(name, [bind(node.args[part], scope) for part in parts if node.args.get(part)], scope.mode)
    if type(node) in HANDLERS:
        return HANDLERS[type(node)](node, scope)
    if isinstance(node, exp.Func):
        return _bind_call(node.sql_name(), list(node.iter_expressions()), scope)
    if isinstance(node, exp.Tuple):
        raise QueryError(f"a row of values can only be compared by = or <=>: {node.sql(dialect='spark')}")
    raise QueryError(f"not an expression over one result: {node.sql(dialect='spark')}")


def _equate_rows(node: Any, scope: Scope) -> Expr:
    """`(a.x, a.y) = (b.x, b.y)` equates each pair, so that it is a key; in a row, NULL equals NULL."""
    left, right = node.this, node.expression
    if not isinstance(right, exp.Tuple) or len(left.expressions) != len(right.expressions):
        raise QueryError(f"rows of as many values are compared with each other: {node.sql(dialect='spark')}")
    pairs = list(zip(left.expressions, right.expressions, strict=True))
    if any(bind(x, scope).type != bind(y, scope).type for x, y in pairs):
        raise different_rows(node)
    first, *others = (bind(exp.NullSafeEQ(this=x, expression=y), scope) for x, y in pairs)
    # Spark evaluates all values of a row, and fails where one does; conjuncts are evaluated one by one.
    can_fail = any(isinstance(part, Call) and part.mode.ansi for each in others for part in walk(each))
    conjoin = "eager and" if can_fail else "and"
    return reduce(lambda both, equality: call(conjoin, [both, equality], scope.mode), others, first)


def different_rows(node: exp.Expression) -> QueryError:
    """Return the error for an equality of rows whose values have different types."""
    return QueryError(f"rows of values have the same types, or are cast: {node.sql(dialect='spark')}")


def _bind_call(name: str, args: list[exp.Expression], scope: Scope) -> Expr:
    bound = [bind(arg, scope) for arg in args]
    user = scope.function(name)
    if user is not None:
        return call_user(user, name, bound)
    lowered = name.lower()
    if lowered in ("struct", "named_struct", "map", "array"):
        raise QueryError(f"{lowered}(...) is made of columns of one stream only; compute it before the join")
    if len(bound) == 1 and (lowered in SPARK_NAMES or lowered in TYPE_ALIASES):
        return cast(bound[0], parse_type(lowered), mode=scope.mode)
    return SPECIAL[lowered](bound, scope.mode) if lowered in SPECIAL else call(name, bound, scope.mode)


def resolve_column(node: exp.Column, scope: Scope) -> tuple[Column, tuple[str, ...]]:
    """Resolve a name to a column and the fields of it that the name goes on with."""
    if isinstance(node.this, exp.Star):
        raise QueryError(f"{node.sql(dialect='spark')} is many columns, where one value is needed")
    names = [part.name for part in node.parts]
    qualified = len(names) > 1 and names[0].lower() in map(str.lower, scope.schemas)
    columns = (column.lower() for schema in scope.schemas.values() for column in schema.names)
    if len(names) == 2 and not qualified and names[0].lower() not in columns:
        match_name("stream", names[0], scope.schemas)  # raises: neither a stream nor a struct has this name
    return scope.resolve(names[0] if qualified else None, names[qualified]), tuple(names[qualified + 1 :])


def _column(node: Any, scope: Scope) -> Expr:
    column, fields = resolve_column(node, scope)
    expr = check_column(column, scope)
    for name in fields:
        expr = _field(expr, name)
    return expr


def check_column(column: Column, scope: Scope) -> Expr:
    """Return a column; a computed one fails for the rows for which its flag says so."""
    flags = scope.failure_flags(column)
    return Call("checked", (column, *flags), column.type, scope.mode) if flags else column


def _field(struct: Expr, name: str) -> Expr:
    return call(".", [struct, Literal(name, pa.string())])


def _literal(node: Any, scope: Scope) -> Expr:
    if node.is_string:
        return Literal(node.this, pa.string())
    text = node.this
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise QueryError(f"{text} is not a number") from None
    if "e" in text.lower():
        return Literal(float(text), pa.float64())
    if "." not in text and -(2**63) <= number < 2**63:
        is_int = -(2**31) <= number < 2**31
        return Literal(int(text), pa.int32() if is_int else pa.int64(), is_narrow=True)
    scale = max(0, -int(number.as_tuple().exponent))
    return Literal(number, decimal_type(max(len(number.as_tuple().digits), scale, 1), scale))


def _interval(node: Any, scope: Scope) -> Expr:
    """Parse `INTERVAL 5 MINUTES`, `INTERVAL '1 hour 30 minutes'` or `INTERVAL -'5' SECOND`."""
    amount, unit = node.this, node.args.get("unit")
    if isinstance(unit, exp.IntervalSpan):
        raise QueryError(
            f"write the interval with its units, e.g. INTERVAL '1 day 2 hours', not {node.sql('spark')}"
        )
    sign = 1
    while isinstance(amount, exp.Neg | exp.Paren) or _is_signed(amount):
        sign = -sign if isinstance(amount, exp.Neg) else sign
        amount = amount.expressions[0] if _is_signed(amount) else amount.this
    if not isinstance(amount, exp.Literal):
        raise QueryError(
            f"an interval takes a constant, not {node.sql('spark')}; multiply: x * INTERVAL 1 SECOND"
        )
    text, unit_name = amount.this.strip(), unit.name if unit else ""
    is_narrow = _IN_DAYS.fullmatch(f"{text} {unit_name}") is not None
    return Literal(sign * _microseconds(text, unit_name), INTERVAL, is_narrow)


def _is_signed(node: Any) -> bool:
    """True for `+x`."""
    return isinstance(node, exp.Anonymous) and node.name == "positive" and len(node.expressions) == 1


def _microseconds(amount: str, unit: str) -> int:
    if amount.startswith("-") and unit:
        return -parse_interval(f"{amount[1:]} {unit}")
    return parse_interval(f"{amount} {unit}".strip())


def _cast(node: Any, scope: Scope) -> Expr:
    value = bind(node.this, scope)
    type_name, function = node.to.sql(dialect="spark"), "try_cast" if node.args.get("safe") else "cast"
    result = cast(value, parse_type(type_name), function, scope.mode)
    is_string = isinstance(value, Literal) and isinstance(value.value, str)
    is_invalid = not isinstance(result, Literal) or result.value is None
    if is_string and type(node) is exp.Cast and is_invalid:
        raise QueryError(f"{node.this.sql(dialect='spark')} is not a {type_name}")
    if isinstance(result, Literal) and _SUFFIXED.fullmatch(source_text(node, verified=False)):
        return replace(result, is_narrow=True)
    return result


def _negative(node: Any, scope: Scope) -> Expr:
    inner = node.this
    # The smallest integer of a type exists only with its sign.
    if isinstance(inner, exp.Literal) and not inner.is_string:
        return _literal(exp.Literal(this=f"-{inner.this}", is_string=False), scope)
    value = bind(inner, scope)
    result = call("negative", [value], scope.mode)
    if isinstance(value, Literal) and isinstance(result, Literal):
        return replace(result, is_narrow=value.is_narrow)
    return result


def _between(node: Any, scope: Scope) -> Expr:
    value, low, high = (bind(node.args[name], scope) for name in ("this", "low", "high"))
    mode = scope.mode
    return call("and", [call(">=", [value, low], mode), call("<=", [value, high], mode)])


def _in(node: Any, scope: Scope) -> Expr:
    if not node.expressions:
        raise QueryError(f"IN takes a list of values here: {node.sql(dialect='spark')}")
    return call("in", [bind(item, scope) for item in (node.this, *node.expressions)], scope.mode)


def _is(node: Any, scope: Scope) -> Expr:
    value = bind(node.this, scope)
    if isinstance(node.expression, exp.Null):
        return call("is null", [value])
    return call("<=>", [value, bind(node.expression, scope)], scope.mode)


def _not(node: Any, scope: Scope) -> Expr:
    inner = node.this
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
        return call("is not null", [bind(inner.this, scope)])
    return call("not", [bind(inner, scope)])


def _like(node: Any, scope: Scope) -> Expr:
    escape = [bind(node.expression, scope)] if isinstance(node, exp.Escape) else []
    like = node.this if escape else node
    if isinstance(like.expression, (exp.Any, exp.All)):
        raise QueryError(f"write LIKE ANY and LIKE ALL as several LIKEs: {node.sql(dialect='spark')}")
    sides = [bind(like.this, scope), bind(like.expression, scope)]
    if isinstance(like, exp.ILike):
        sides = [call("lower", [side], scope.mode) for side in sides]
    matches = call("like", [*sides, *escape], scope.mode)
    return call("not", [matches]) if like.args.get("negate") else matches


def _case(node: Any, scope: Scope) -> Expr:
    subject = node.this and bind(node.this, scope)
    args: list[Expr] = []
    for branch in node.args["ifs"]:
        condition = bind(branch.this, scope)
        is_met = call("=", [subject, condition], scope.mode) if subject else condition
        args += [is_met, bind(branch.args["true"], scope)]
    return call("case", [*args, bind(node.args.get("default") or exp.Null(), scope)], scope.mode)


def _if(node: Any, scope: Scope) -> Expr:
    otherwise = node.args.get("false") or exp.Null()
    return call("if", [bind(part, scope) for part in (node.this, node.args["true"], otherwise)], scope.mode)


def _trim(node: Any, scope: Scope) -> Expr:
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(node.args.get("position") or "", "trim")
    return call(name, [bind(part, scope) for part in (node.this, node.expression) if part], scope.mode)


def _extract(node: Any, scope: Scope) -> Expr:
    part, value = node.this.name.lower(), bind(node.expression, scope)
    if part in ("dayofweek_iso", "dow_iso"):
        return call("+", [call("weekday", [value], scope.mode), Literal(1, pa.int32())])
    name = {"dow": "dayofweek", "doy": "dayofyear"}.get(part, part.rstrip("s"))
    return call("fractional second" if name == "second" else name, [value], scope.mode)


def _position(node: Any, scope: Scope) -> Expr:
    if node.args.get("position"):
        raise QueryError(f"takes no start position here: {node.sql(dialect='spark')}")
    return call("instr", [bind(node.this, scope), bind(node.args["substr"], scope)], scope.mode)


def _read_hex(digits: str) -> bytes:
    """Read the bytes of `X'0F'`; an odd number of digits lacks a leading zero."""
    try:
        return bytes.fromhex(digits.zfill(len(digits) + len(digits) % 2))
    except ValueError:
        raise QueryError(f"X'{digits}' is not a binary: it has other characters than 0-9 and A-F") from None


HANDLERS: dict[type[exp.Expression], Callable[[Any, Scope], Expr]] = {
    exp.Column: _column, exp.Literal: _literal, exp.Interval: _interval, exp.Neg: _negative,
    exp.Cast: _cast, exp.TryCast: _cast, exp.Not: _not, exp.Between: _between, exp.In: _in, exp.Is: _is,
    exp.Like: _like, exp.ILike: _like, exp.Escape: _like, exp.Case: _case, exp.If: _if, exp.Trim: _trim,
    exp.Extract: _extract, exp.StrPosition: _position,
    exp.RawString: lambda node, _: Literal(node.this, pa.string()),
    exp.HexString: lambda node, _: Literal(_read_hex(node.this), pa.binary()),
    exp.Dot: lambda node, scope: _field(bind(node.this, scope), node.expression.name),
    exp.Boolean: lambda node, _: Literal(bool(node.this), pa.bool_()),
    exp.Null: lambda node, _: Literal(None, pa.null()),
    exp.Paren: lambda node, scope: bind(node.this, scope),
    exp.NullSafeNEQ: lambda node, scope: call("not", [bind(exp.NullSafeEQ(**node.args), scope)]),
    exp.Bracket: lambda node, scope: call(
        "[]", [bind(node.this, scope), bind(node.expressions[0], scope)], scope.mode
    ),
    exp.Anonymous: lambda node, scope: _bind_call(node.name, node.expressions, scope),
    exp.Concat: lambda node, scope: call(
        "concat", [bind(part, scope) for part in node.expressions], scope.mode
    ),
}  # fmt: skip
# Functions whose arguments Spark writes in another order, as in ltrim('x', s), or under another name.
SPECIAL: dict[str, Callable[[list[Expr], Mode], Expr]] = {
    "ltrim": lambda args, mode: call("ltrim", args[::-1], mode),
    "rtrim": lambda args, mode: call("rtrim", args[::-1], mode),
    "btrim": lambda args, mode: call("trim", args, mode),
    "locate": lambda args, mode: call("instr", args[::-1], mode),
    "nullif": lambda args, mode: call("nullif", [*args[:1], call("=", args, mode)], mode),
    "element_at": lambda args, mode: call("element_at" if mode.ansi else "try_element_at", args, mode),
}
