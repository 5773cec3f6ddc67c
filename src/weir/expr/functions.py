"""The function table: the type rule and the kernel of every operator and function."""

from __future__ import annotations

from collections.abc import Iterable

from weir.expr import arithmetic, arrays, conditional, dates, maths, strings
from weir.expr.type_rules import Function

_MODULES = (conditional, arithmetic, maths, strings, dates, arrays)

FUNCTIONS: dict[str, Function] = {name: fn for module in _MODULES for name, fn in module.FUNCTIONS.items()}
ALIASES: dict[str, str] = {alias: name for module in _MODULES for alias, name in module.ALIASES.items()}


def canonical_name(name: str) -> str:
    """Return the name of a function in the table.

    >>> canonical_name("NVL"), canonical_name("abs")
    ('coalesce', 'abs')
    """
    name = name.lower()
    return ALIASES.get(name, name)


def callable_names() -> Iterable[str]:
    """List the names that can be called in SQL text, without operators."""
    return sorted(name for name in {*FUNCTIONS, *ALIASES} if name.isidentifier())
