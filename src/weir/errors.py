"""The errors a user can cause, and the sentence each one should be."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from difflib import get_close_matches
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")


class QueryError(ValueError):
    """What was asked cannot be answered; the message says what is wrong, where, and what to do."""


def unknown(kind: str, name: str, known: Iterable[str], where: str = "") -> QueryError:
    """The error for a name that does not exist, with the nearest one that does.

    >>> str(unknown("stream", "ordrs", ["orders", "clicks"]))
    "stream 'ordrs' is not known; did you mean 'orders'? There are 'orders', 'clicks'"
    >>> str(unknown("stream", "x", ["orders", "clicks"]))
    "stream 'x' is not known; there are 'orders', 'clicks'"
    """
    names = list(known)
    near = nearest(name, names)
    hint = "there" if near is None else f"did you mean '{near}'? There"
    return QueryError(f"{kind} '{name}' is not known{where}; {hint} {_all_of(names)}")


def strict(settings: type[T]) -> type[T]:
    """Let a class of settings refuse what it does not know as other mistakes are refused, by a QueryError.

    >>> @strict
    ... class Pace:
    ...     def __init__(self, seconds=1): ...
    >>> Pace(bpm=90)
    Traceback (most recent call last):
    weir.errors.QueryError: key 'bpm' is not known in weir.Pace; there is only 'seconds'
    """
    # Around the constructor rather than with **others in it, so that type checkers still know the keys.
    made: Any = settings.__init__
    known = list(inspect.signature(made).parameters)[1:]

    @wraps(made)
    def checked(self: T, *given: Any, **named: Any) -> None:
        for name in named:
            if name not in known:
                raise unknown("key", name, known, where=f" in weir.{settings.__name__}")
        if len(given) > len(known):
            raise QueryError(
                f"weir.{settings.__name__} takes {len(known)} values, {', '.join(known)}; got {len(given)}"
            )
        made(self, *given, **named)

    settings.__init__ = checked  # type: ignore[assignment] # it takes all that the other takes
    return settings


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The name most like this one, whatever its case, if any is like it.

    >>> nearest("WITHN", ["on", "within"])
    'within'
    """
    spelled = {one.lower(): one for one in reversed(list(known))}
    found = get_close_matches(name.lower(), list(spelled), n=1)
    return spelled[found[0]] if found else None


def _all_of(names: list[str]) -> str:
    if not names:
        return "are none"
    return f"{'is only' if len(names) == 1 else 'are'} " + ", ".join(f"'{name}'" for name in names)
