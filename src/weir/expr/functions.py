"""The function table: every operator and function with its type rule and its kernel."""

from __future__ import annotations

from collections.abc import Iterable

from weir.expr import arithmetic, arrays, conditional, dates, maths, strings
from weir.expr.rules import Function

_PARTS = (conditional, arithmetic, maths, strings, dates, arrays)

FUNCTIONS: dict[str, Function] = {name: fn for part in _PARTS for name, fn in part.FUNCTIONS.items()}
ALIASES: dict[str, str] = {alias: name for part in _PARTS for alias, name in part.ALIASES.items()}


def canonical(name: str) -> str:
    """The name a function has in the table.

    >>> canonical("NVL"), canonical("abs")
    ('coalesce', 'abs')
    """
    name = name.lower()
    return ALIASES.get(name, name)


def callable_names() -> Iterable[str]:
    """The names that can be called as a function in a text, operators left out."""
    return sorted(name for name in {*FUNCTIONS, *ALIASES} if name.isidentifier())
