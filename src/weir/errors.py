"""The errors a user can cause, and the sentence each one should be."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class QueryError(ValueError):
    """What was asked cannot be answered; the message says what is wrong, where, and what to do."""


def unknown(kind: str, name: str, known: Iterable[str], where: str = "") -> QueryError:
    """The error for a name that does not exist, with the nearest one that does.

    >>> str(unknown("stream", "ordrs", ["orders", "clicks"]))
    "stream 'ordrs' is not known; did you mean 'orders'? There are 'orders', 'clicks'"
    """
    names = list(known)
    near = get_close_matches(name.lower(), [n.lower() for n in names], n=1)
    hint = f"; did you mean '{next(n for n in names if n.lower() == near[0])}'?" if near else ";"
    listed = ", ".join(f"'{n}'" for n in names) or "none"
    return QueryError(f"{kind} '{name}' is not known{where}{hint} There are {listed}")
