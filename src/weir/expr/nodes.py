"""The nodes of a bound expression: columns are resolved, nodes are typed, immutable and hashable."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias
from typing import Literal as Choice

import pyarrow as pa

OnError: TypeAlias = Choice["fail", "null", "quarantine"]


@dataclass(frozen=True, slots=True)
class Mode:
    """What a call takes from the session, as far as it matters to this call.

    Local times are those of `zone`; None is UTC. With `ansi`, a data error fails the expression, makes its
    value NULL, or leaves the row out and reports it, as `on_error` says.
    """

    zone: str | None = None
    ansi: bool = False
    on_error: OnError = "fail"


PLAIN = Mode()
# A column that the engine computes before the join is named after its expression, with a number where names
# differ in case only. The flag beside it is true for rows for which the expression failed, and its inputs say
# what the expression read there.
_COMPUTED, _FLAG, _INPUTS = re.compile(r"weir(\d*):(.*)", re.DOTALL), "weir!", "weir?"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a stream."""

    stream: str
    name: str
    type: pa.DataType

    @property
    def text(self) -> str:
        """The column as SQL text; for a computed one, the expression that it holds."""
        computed = _COMPUTED.fullmatch(self.name)
        return f"{self.stream}.{self.name}" if computed is None else " ".join(computed[2].split())

    def __str__(self) -> str:
        return f"{self.stream}.{self.name}"


def name_computed(text: str, number: int = 0) -> str:
    """Name the column that holds a computed expression.

    >>> Column("a", name_computed("lower(a.k)"), pa.string()).text
    'lower(a.k)'
    """
    return f"weir{number or ''}:{text}"


def name_flag(column: str) -> str:
    """Name the flag that says for which rows the expression of a computed column failed."""
    return f"{_FLAG}{column}"


def name_inputs(column: str) -> str:
    """Name the text that shows what the expression of a computed column read where it failed."""
    return f"{_INPUTS}{column}"


def is_flag(column: str) -> bool:
    """True for the name of the flag of a computed column, or of what it read."""
    return column.startswith((_FLAG, _INPUTS))


def is_internal(column: str) -> bool:
    """True for the name of a computed column or its flag, which users never see."""
    return is_flag(column) or _COMPUTED.fullmatch(column) is not None


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; `value` is what `pa.scalar(value, type)` takes, None for NULL.

    Spark gives a narrow one a type as narrow as its value, where that matters: as a decimal, `3` has one
    digit and `1 + 2` has ten; a date and `INTERVAL 1 DAY` make a date, with `INTERVAL 24 HOURS` a timestamp.
    """

    value: Any
    type: pa.DataType
    is_narrow: bool = field(default=False, compare=False, repr=False)

    def __str__(self) -> str:
        return "NULL" if self.value is None else repr(self.value)


@dataclass(frozen=True, slots=True)
class Call:
    """A function or operator of the function table applied to its arguments."""

    function: str
    args: tuple[Expr, ...]
    type: pa.DataType
    mode: Mode = PLAIN

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.args))})"


Expr = Column | Literal | Call


def depth_of(expr: Expr) -> int:
    """Return how deeply calls are nested; without recursion, for expressions of any depth."""
    deepest, waiting = 0, [(expr, 0)]
    while waiting:
        node, depth = waiting.pop()
        deepest = max(deepest, depth)
        waiting += [(arg, depth + 1) for arg in node.args] if isinstance(node, Call) else []
    return deepest


def walk(expr: Expr) -> Iterator[Expr]:
    """Yield the expression and all its descendants, parents first."""
    yield expr
    if isinstance(expr, Call):
        for arg in expr.args:
            yield from walk(arg)


def columns_of(expr: Expr) -> tuple[Column, ...]:
    """Return the columns that an expression reads, each once, in order of appearance."""
    return tuple(dict.fromkeys(node for node in walk(expr) if isinstance(node, Column)))


def streams_of(expr: Expr) -> frozenset[str]:
    """Return the streams that an expression reads."""
    return frozenset(column.stream for column in columns_of(expr))


def split_conjuncts(expr: Expr) -> tuple[Expr, ...]:
    """Split a conjunction into its conjuncts, left to right; any other expression is its only conjunct."""
    if isinstance(expr, Call) and expr.function == "and":
        return tuple(part for arg in expr.args for part in split_conjuncts(arg))
    return (expr,)


def is_quarantined(expr: Expr) -> bool:
    """True if the expression may fail, and rows for which it does are left out and reported."""
    modes = [node.mode for node in walk(expr) if isinstance(node, Call)]
    return any(mode.ansi and mode.on_error == "quarantine" for mode in modes)


def without_flags(expr: Expr) -> Expr:
    """Return the expression without the flags of its computed columns, for rows that do not fail."""
    match expr:
        case Call("checked", (column, *_)):
            return column
        case Call(args=args):
            return replace(expr, args=tuple(map(without_flags, args)))
    return expr


def without_failing(expr: Expr) -> Expr:
    """Return the expression with NULL for data errors, for rows that a query may never bring together."""
    if not isinstance(expr, Call):
        return expr
    args = tuple(map(without_failing, expr.args))
    return replace(expr, args=args, mode=replace(expr.mode, on_error="null"))
